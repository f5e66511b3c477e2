//! Whole copies on their way out: queued until the next tick, then sent as far as permits go, then
//! in flight until Envoy calls back.
//!
//! Calls are made from the root context's tick and not from the request's own callbacks. So the
//! primary request leaves first, one VM entry and one write to the shared table serve all copies of
//! some milliseconds, and the callback finds its context even when the primary is long done.

mod pace;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use log::warn;

use crate::budget::{Budget, Clock, HeadHold, Hold, Permit, Settled, Store};
use crate::config::Target;
use crate::head::{Head, Header};
use crate::shadow;
use crate::stats::{Answer, Counter, Gauge, Meter, Outcome, Tally};
pub use pace::HOUSEKEEPING;
use pace::SOON;

/// One warning for so many drops.
const DROPS_PER_WARNING: u64 = 256;

/// A request with all of its body.
pub struct Whole {
    pub head: Head,
    pub head_hold: HeadHold,
    pub body: Vec<u8>,
    /// Outlives the body: Envoy holds bytes of its own while a call runs.
    pub hold: Rc<Hold>,
}

/// One copy of a request: several mirrors of one request share its bytes.
pub struct Copy {
    pub request: Rc<Whole>,
    pub target: Rc<Target>,
}

/// Names a call that Envoy has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u32);

/// Why Envoy would not take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such cluster.
    NoCluster,
    /// The cluster has no host, or a circuit breaker is open.
    Refused,
}

/// Sends a copy, and answers later through [`Outbox::ended`], if at all.
pub trait Caller {
    fn call(&self, target: &Target, headers: Vec<Header>, body: &[u8]) -> Result<CallId, Refusal>;
}

/// Has [`Outbox::tick`] called, from now on once a period.
pub trait Timer {
    fn tick_every(&self, period: Duration);
}

/// All that an outbox needs of the proxy it runs in.
pub trait Host: Store + Clock + Meter + Caller + Timer {}

impl<T: Store + Clock + Meter + Caller + Timer> Host for T {}

/// One root context's copies, from whole to ended.
pub struct Outbox<H> {
    host: H,
    budget: Budget,
    queue: RefCell<Vec<Copy>>,
    /// Since when the next tick is to come soon.
    due_since: Cell<Duration>,
    calls: RefCell<HashMap<CallId, Call>>,
    tally: Tally,
    /// Budget drops that the shared table does not know of yet.
    untold_drops: Cell<u32>,
    period: Cell<Duration>,
}

/// A call under way.
struct Call {
    permit: Permit,
    _hold: Rc<Hold>,
    sent: Duration,
    timeout: Duration,
}

impl<H: Host> Outbox<H> {
    pub fn new(host: H, budget: Budget) -> Self {
        host.tick_every(HOUSEKEEPING);
        Self {
            host,
            budget,
            queue: RefCell::default(),
            due_since: Cell::default(),
            calls: RefCell::default(),
            tally: Tally::default(),
            untold_drops: Cell::default(),
            period: Cell::new(HOUSEKEEPING),
        }
    }

    pub fn count(&self, counter: Counter, by: usize) {
        if by > 0 {
            self.host.count(counter, u64::try_from(by).unwrap_or(u64::MAX));
        }
    }

    /// A hold on nothing yet, for the body of a request.
    pub fn hold(&self) -> Hold {
        self.budget.hold()
    }

    /// A hold on the headers of a request, unless there are too many already.
    pub fn hold_head(&self, bytes: usize) -> Option<HeadHold> {
        self.budget.hold_head(bytes)
    }

    /// Adds bytes to a hold, unless the process holds too many already.
    #[must_use]
    pub fn grow(&self, hold: &mut Hold, by: u64) -> bool {
        let grown = self.budget.grow(&self.host, hold, by);
        self.hasten();
        grown
    }

    /// Takes a copy to be sent at the next tick. The queue holds no more than could be sent at once,
    /// so that a stalled tick does not let it grow.
    pub fn push(&self, copy: Copy) {
        if self.waiting() < self.budget.limit() {
            self.queue.borrow_mut().push(copy);
        } else {
            self.drop_for_budget(1);
        }
        self.hasten();
    }

    /// Makes the next tick come as soon as what there is to do is worth it: to send, or to publish.
    pub fn hasten(&self) {
        let period = self.due();
        if period < self.period.get() {
            if period == SOON {
                self.due_since.set(self.host.now());
            }
            self.tick_every(period);
        }
    }

    /// Whether nothing is left to be sent, to end or to be published.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.calls.borrow().is_empty() && self.is_settled()
    }

    /// Settles with the other workers, then sends what is queued, or as much as is good at once.
    pub fn tick(&self) {
        let mut ready = self.take_batch().into_iter();
        let wanted = u32::try_from(ready.len()).unwrap_or(u32::MAX);
        match self.budget.settle(&self.host, wanted, self.untold_drops.get()) {
            Some(settled) => {
                self.untold_drops.set(0);
                self.report(&settled);
                let permitted = settled.permits.into_iter().zip(ready.by_ref());
                let taken = permitted.map(|(permit, copy)| self.send(copy, permit));
                self.count(Counter::Sent, taken.filter(|taken| *taken).count());
                self.count(Counter::DroppedBudget, ready.len());
            }
            None => self.drop_for_budget(wanted),
        }
        drop(ready); // what is left of it gives back the bytes it held
        // What was left in the queue has waited once.
        self.tick_every(if self.waiting() > 0 { SOON } else { self.due() });
    }

    /// A call has ended, with an answer or without.
    pub fn ended(&self, id: CallId, answer: Option<Answer>) {
        let Some(call) = self.calls.borrow_mut().remove(&id) else { return };
        if !call.permit.is_void() {
            let elapsed = self.host.now().saturating_sub(call.sent);
            let outcome = Outcome::of(answer, elapsed, call.timeout);
            if matches!(outcome, Outcome::Completed(_)) {
                self.host.duration(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            }
            self.tally.add(outcome);
        }
        drop(call);
        self.hasten();
    }

    /// What this tick sends, as far as permits go.
    fn take_batch(&self) -> Vec<Copy> {
        let mut queue = self.queue.borrow_mut();
        if queue.is_empty() {
            return Vec::new();
        }
        let now = self.host.now();
        let waited = now.saturating_sub(self.due_since.replace(now));
        let batch = pace::batch(queue.len(), waited);
        queue.drain(..batch).collect()
    }

    /// Whether Envoy has taken the copy. What it has not is counted here.
    fn send(&self, copy: Copy, permit: Permit) -> bool {
        let Copy { request, target } = copy;
        let length = u64::try_from(request.body.len()).unwrap_or(u64::MAX);
        let headers = shadow::headers(&request.head, length);
        let sent = self.host.now();
        let called = headers.ok_or(Refusal::Refused);
        match called.and_then(|headers| self.host.call(&target, headers, &request.body)) {
            Ok(id) => {
                let hold = Rc::clone(&request.hold);
                let call = Call { permit, _hold: hold, sent, timeout: target.timeout };
                self.calls.borrow_mut().insert(id, call);
                true
            }
            Err(refusal) => {
                let why = match refusal {
                    Refusal::NoCluster => Counter::DroppedNoCluster,
                    Refusal::Refused => Counter::DroppedRefused,
                };
                self.count(why, 1);
                false
            }
        }
    }

    /// Counts what settling has brought to light.
    fn report(&self, settled: &Settled) {
        let outcomes = self.tally.take();
        if !settled.news.forfeited {
            outcomes.for_each(|(counter, by)| self.host.count(counter, by));
        }
        if settled.news.repaired {
            warn!("the shared budget held what no mirror has written; that was dropped");
        }
        if settled.news.lost > 0 {
            self.host.count(Counter::Lost, settled.news.lost);
        }
        self.host.gauge(Gauge::InFlight, settled.in_flight);
        self.host.gauge(Gauge::BufferedBytes, settled.bytes);
        let warned = |drop: &u64| drop.is_multiple_of(DROPS_PER_WARNING);
        for drop in settled.drops.clone().filter(warned) {
            warn!(
                "{} mirrors dropped so far for want of one of the {} permits of requestMirrorBudget",
                drop.saturating_add(1),
                self.budget.limit()
            );
        }
    }

    fn drop_for_budget(&self, mirrors: u32) {
        self.host.count(Counter::DroppedBudget, u64::from(mirrors));
        self.untold_drops.set(self.untold_drops.get().saturating_add(mirrors));
    }

    /// Copies in the queue.
    fn waiting(&self) -> u32 {
        u32::try_from(self.queue.borrow().len()).unwrap_or(u32::MAX)
    }

    /// When what there is to do is due.
    fn due(&self) -> Duration {
        match self.waiting().saturating_add(self.budget.ended()) {
            0 if self.is_settled() => HOUSEKEEPING,
            to_do => pace::tick_for(to_do, self.budget.limit()),
        }
    }

    fn is_settled(&self) -> bool {
        self.budget.is_settled() && self.tally.is_empty() && self.untold_drops.get() == 0
    }

    fn tick_every(&self, period: Duration) {
        if self.period.replace(period) != period {
            self.host.tick_every(period);
        }
    }
}

#[cfg(test)]
mod tests;
