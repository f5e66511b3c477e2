//! Envoy's callbacks, forwarded. Each lets the request go on, whatever happens.

use std::rc::Rc;

use log::{debug, error, warn};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

use crate::budget::Budget;
use crate::config::Config;
use crate::host::{self, Envoy};
use crate::mirror::Request;
use crate::outbox::{CallId, HOUSEKEEPING, Outbox, Timer};
use crate::sampling::{Dice, Draws};
use crate::stats::{Gauge, Meter};

/// Tells the SDK how to make root contexts; they make the rest.
pub fn install() {
    proxy_wasm::set_root_context(|_| Box::new(Root::Unconfigured));
}

/// One plugin configuration in one VM.
enum Root {
    Unconfigured,
    /// The configuration was no good: nothing is mirrored, and the gauge says so as long as this root
    /// lives. With several listeners a newer configuration need not be one in its place.
    Rejected,
    Mirroring(Rc<Mirroring>),
    /// Its listener is gone; the last mirrors are still to end.
    Draining(Rc<Mirroring>),
}

/// What a root context shares with its requests.
struct Mirroring {
    config: Config,
    dice: Dice,
    outbox: Outbox<Envoy>,
}

/// One request.
struct Stream {
    mirroring: Option<Rc<Mirroring>>,
    request: Request,
}

impl Root {
    fn mirroring(&self) -> Option<&Rc<Mirroring>> {
        match self {
            Self::Mirroring(mirroring) | Self::Draining(mirroring) => Some(mirroring),
            Self::Unconfigured | Self::Rejected => None,
        }
    }
}

impl Mirroring {
    fn new(config: Config) -> Self {
        let budget = Budget::new(host::entropy(), config.limits, config.longest_timeout());
        Self { config, dice: Dice::new(host::entropy()), outbox: Outbox::new(Envoy, budget) }
    }

    fn begin(&self, draws: &Draws, end_of_stream: bool) -> Request {
        let Some(head) = host::request_headers() else {
            debug!("a request without readable headers is not mirrored");
            return Request::Passing;
        };
        let targets = self.config.targets(draws, &head);
        if targets.is_empty() {
            return Request::Passing;
        }
        Request::begin(&self.outbox, head, targets, end_of_stream)
    }
}

impl Context for Root {
    fn on_http_call_response(&mut self, call: u32, headers: usize, _: usize, _: usize) {
        if let Some(mirroring) = self.mirroring() {
            mirroring.outbox.ended(CallId(call), host::answer(headers));
        }
    }

    /// Asks for time until the mirrors in flight have ended.
    fn on_done(&mut self) -> bool {
        match self {
            Self::Mirroring(mirroring) if !mirroring.outbox.is_idle() => {
                *self = Self::Draining(Rc::clone(mirroring));
                false
            }
            _ => {
                host::tick_never();
                true
            }
        }
    }
}

impl RootContext for Root {
    /// Always true unless strict: to refuse a configuration would stop Envoy from starting, or make
    /// it answer 500 to every request.
    fn on_configure(&mut self, _: usize) -> bool {
        host::follow_log_level();
        host::define_metrics();
        match Config::parse(&host::plugin_configuration()) {
            Ok(config) => {
                config.warnings.iter().for_each(|warning| warn!("{warning}"));
                *self = Self::Mirroring(Rc::new(Mirroring::new(config)));
                true
            }
            Err(errors) => {
                for wrong in errors {
                    error!("configuration rejected, nothing is mirrored: {wrong}");
                }
                *self = Self::Rejected;
                Envoy.gauge(Gauge::ConfigRejected, 1);
                Envoy.tick_every(HOUSEKEEPING);
                !host::is_strict()
            }
        }
    }

    fn on_tick(&mut self) {
        match self {
            Self::Unconfigured => {}
            // Said again and again, since another rejected root that ends takes it back.
            Self::Rejected => Envoy.gauge(Gauge::ConfigRejected, 1),
            Self::Mirroring(mirroring) => mirroring.outbox.tick(),
            Self::Draining(mirroring) => {
                mirroring.outbox.tick();
                if mirroring.outbox.is_idle() {
                    *self = Self::Unconfigured;
                    host::tick_never();
                    host::done();
                }
            }
        }
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        let mirroring = self.mirroring().cloned();
        Some(Box::new(Stream { mirroring, request: Request::Passing }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if matches!(self, Self::Rejected) {
            Envoy.gauge(Gauge::ConfigRejected, 0);
        }
    }
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        #[cfg(feature = "trap")]
        host::trap_if_asked();
        if let Some(mirroring) = &self.mirroring {
            // Before anything is asked about the request: most are not picked, and for them this is
            // all.
            let draws = mirroring.dice.for_request();
            if mirroring.config.may_mirror(&draws) {
                self.request = mirroring.begin(&draws, end_of_stream);
            }
        }
        Action::Continue
    }

    fn on_http_request_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if let Some(mirroring) = &self.mirroring {
            let read = || host::request_body(size);
            self.request.body(&mirroring.outbox, size, end_of_stream, read);
        }
        Action::Continue
    }

    fn on_http_request_trailers(&mut self, _: usize) -> Action {
        if let Some(mirroring) = &self.mirroring {
            self.request.trailers(&mirroring.outbox);
        }
        Action::Continue
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(mirroring) = &self.mirroring {
            self.request.over(&mirroring.outbox);
        }
    }
}
