//! A real Envoy with the mirror in it, between in-process clients and backends.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use rig::{Backend, Http1, Request, Setup};
//! use serde_json::json;
//!
//! let primary = Backend::ok().await?;
//! let shadow = Backend::ok().await?;
//! let envoy = Setup::new()?
//!     .plugin(&json!({ "requestMirror": { "cluster": "shadow", "percent": 100 } }))
//!     .cluster("primary", &[primary.address()])
//!     .cluster("shadow", &[shadow.address()])
//!     .start()
//!     .await?;
//! let answer = Http1::connect(envoy.address()).await?.request(&Request::get("/x")).await?;
//! assert_eq!(answer.status, 200);
//! assert_eq!(shadow.recorded(1).await?[0].head.path, b"/x");
//! envoy.finish().await?; // every mirror accounted for, then a clean exit
//! # Ok(()) }
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`artifacts`] | where Envoy and the built module are |
//! | [`config`] | `envoy/envoy.yaml` as users read it, and the places in it that a test changes |
//! | [`setup`], [`envoy`] | what to start; the running process, its addresses, its log, its end |
//! | [`admin`], [`counters`] | what Envoy says about itself; the mirror's counters and their two identities |
//! | [`backend`] | servers that record each request byte for byte and answer as told |
//! | [`broken`] | addresses behind which nothing answers: closed, black hole, reset |
//! | [`client`] | HTTP/1 by the byte, HTTP/2 by the frame, and load |
//! | [`message`], [`wire`] | requests and answers; how HTTP/1 puts them on a socket |
//! | [`wait`] | the one way to wait: for a condition, with a deadline |
//! | [`wall_clock`] | a wall clock of Envoy's own, which can be put forwards and back |

pub mod admin;
pub mod artifacts;
pub mod backend;
pub mod broken;
pub mod client;
pub mod config;
pub mod counters;
pub mod envoy;
pub mod message;
mod process;
pub mod setup;
pub mod wait;
pub mod wall_clock;
pub mod wire;

pub use backend::{Backend, Gate, Head, Recorded, Reply};
pub use client::{Http1, Http2, LoadReport, load};
pub use config::Config;
pub use counters::Counters;
pub use envoy::Envoy;
pub use message::{Body, Fields, Request, Response};
pub use setup::Setup;
pub use wait::eventually;
