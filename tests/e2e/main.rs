//! What the mirror promises, each promise on a real Envoy.
//!
//! A test is one sentence of the contract and runs against an Envoy of its own, between backends
//! in this process. Nothing here measures time or waits for it: a test waits for a condition, and
//! where one must show that nobody waits for a shadow, the shadow stays silent for a minute.
//! Every test ends with the two accounting identities (see [`stage`]).
//!
//! `make test` builds what this needs. One test: `cargo test --test e2e a_shadow_slower`.

mod stage;
mod xds;

mod bodies;
mod budget;
mod capabilities;
mod churn;
mod clock_steps;
mod clusters;
mod configuration;
mod copies;
mod counters;
mod crash;
mod crash_loop;
mod examples;
mod flood;
mod hostile;
mod module;
mod old_http;
mod primary_first;
mod raw_http1;
mod raw_http2;
mod retries;
mod routes;
mod sampling;
mod spoilt_data;
mod stalls;
mod updates;
mod upgrades;
