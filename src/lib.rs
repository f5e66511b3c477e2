//! Mirrors sampled live requests to a shadow cluster, as an Envoy proxy-wasm HTTP filter.
//!
//! What it promises, in order of precedence:
//!
//! 1. **The primary never notices.** Every callback returns `Continue`; nothing panics, because a
//!    panic answers what is under way on the worker with 503.
//! 2. **The copy is faithful**: method, path, authority, headers and body byte for byte, or no copy.
//! 3. **The cost is bounded**: concurrent mirrors and bytes held, process-wide, and time.
//! 4. **Nothing vanishes silently**: each selected mirror ends in exactly one counter.
//!
//! A request's way through the modules: `filter` forwards Envoy's callbacks; [`sampling`] draws, and
//! most requests are let go there; of the others [`head`] keeps the headers and [`route`] finds the
//! rule whose mirrors apply; [`mirror`] collects the body until the request is whole; [`outbox`]
//! sends whole copies from a timer tick, as far as the [`budget`] has permits, with the headers that
//! [`shadow`] makes; the outcome ends in [`stats`]. [`config`] is what all of them go by. Only
//! `host` talks to Envoy.

#![deny(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable,
    clippy::unwrap_used
)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod budget;
pub mod config;
mod filter;
pub mod head;
mod host;
pub mod mirror;
pub mod outbox;
pub mod route;
pub mod sampling;
pub mod shadow;
pub mod stats;
#[cfg(test)]
mod testing;

proxy_wasm::main! {{ filter::install(); }}
