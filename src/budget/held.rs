//! What one root holds, as values that give it back when they are dropped.

use std::cell::Cell;
use std::rc::Rc;

use super::table::Holding;

/// What one root really holds at this moment.
#[derive(Default)]
pub struct Held {
    pub holding: Cell<Holding>,
    /// Bytes of headers; those of all roots in a VM matter to that VM alone, so no table has them.
    head_bytes: Cell<u64>,
    /// Counts how often this root's row was reclaimed. Permits of an earlier lease are void: their
    /// mirrors have been counted as lost and their places given away.
    lease: Cell<u32>,
}

impl Held {
    pub fn change(&self, change: impl FnOnce(&mut Holding)) {
        let mut holding = self.holding.get();
        change(&mut holding);
        self.holding.set(holding);
    }

    /// Makes all permits void.
    pub fn forfeit(&self) {
        self.change(|mine| mine.mirrors = 0);
        self.lease.set(self.lease.get().wrapping_add(1));
    }
}

/// The right to have one mirror in flight. Dropped, it returns to its root, whose next
/// [`super::Budget::settle`] publishes that.
#[must_use]
pub struct Permit {
    held: Rc<Held>,
    lease: u32,
}

impl Permit {
    /// One that its root has counted already.
    pub(super) fn new(held: &Rc<Held>) -> Self {
        Self { held: Rc::clone(held), lease: held.lease.get() }
    }

    /// Whether this mirror has been counted as lost, so that its end counts no more.
    pub fn is_void(&self) -> bool {
        self.lease != self.held.lease.get()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_void() {
            self.held.change(|mine| mine.mirrors = mine.mirrors.saturating_sub(1));
        }
    }
}

/// Bytes of one request's body, held for its mirrors until the last one ends.
#[must_use]
pub struct Hold {
    held: Rc<Held>,
    bytes: u64,
}

impl Hold {
    pub(super) fn new(held: &Rc<Held>) -> Self {
        Self { held: Rc::clone(held), bytes: 0 }
    }

    pub(super) fn grow(&mut self, by: u64) {
        self.held.change(|mine| mine.bytes = mine.bytes.saturating_add(by));
        self.bytes = self.bytes.saturating_add(by);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.change(|mine| mine.bytes = mine.bytes.saturating_sub(self.bytes));
    }
}

/// Bytes of one request's headers, held until its copies are sent.
#[must_use]
pub struct HeadHold {
    held: Rc<Held>,
    bytes: u64,
}

impl HeadHold {
    /// `None` if the root would hold more than the limit.
    pub(super) fn new(held: &Rc<Held>, bytes: u64, limit: u64) -> Option<Self> {
        let sum = held.head_bytes.get().saturating_add(bytes);
        (sum <= limit).then(|| {
            held.head_bytes.set(sum);
            Self { held: Rc::clone(held), bytes }
        })
    }
}

impl Drop for HeadHold {
    fn drop(&mut self) {
        self.held.head_bytes.set(self.held.head_bytes.get().saturating_sub(self.bytes));
    }
}
