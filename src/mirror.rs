//! One request's life: collected chunk by chunk as it passes by, until it is whole and can be copied.

use std::rc::Rc;

use crate::budget::{HeadHold, Hold};
use crate::config::Target;
use crate::head::{Body, Head};
use crate::outbox::{Copy, Host, Outbox, Whole};
use crate::stats::Counter;

/// A request on its way to the primary.
pub enum Request {
    /// Nothing of it is copied (any more).
    Passing,
    /// A copy is being made for at least one target.
    Collecting(Collecting),
}

/// The part of a request that has passed so far.
pub struct Collecting {
    head: Head,
    head_hold: HeadHold,
    body: Vec<u8>,
    hold: Hold,
    /// The mirrors that still want the copy.
    targets: Vec<Rc<Target>>,
}

impl Request {
    /// A request that a draw has selected for these targets begins. `whole` if it has no body.
    pub fn begin<H: Host>(
        outbox: &Outbox<H>,
        head: Head,
        targets: Vec<Rc<Target>>,
        whole: bool,
    ) -> Self {
        let Body::Bytes(announced) = head.announces() else {
            outbox.count(Counter::SkippedUpgrade, 1);
            return Self::Passing;
        };
        outbox.count(Counter::Selected, targets.len());
        let Some(head_hold) = outbox.hold_head(head.size()) else {
            outbox.count(Counter::DroppedBufferFull, targets.len());
            return Self::Passing;
        };
        let (body, hold) = (Vec::new(), outbox.hold());
        let mut collecting = Collecting { head, head_hold, body, hold, targets };
        collecting.drop_targets_below(outbox, announced);
        Self::Collecting(collecting).step(outbox, whole)
    }

    /// A chunk of `size` bytes passes by; `last` if it ends the request. `read` copies it.
    pub fn body<H: Host>(
        &mut self,
        outbox: &Outbox<H>,
        size: usize,
        last: bool,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        if let Self::Collecting(collecting) = self {
            if size > 0 {
                collecting.append(outbox, size, read);
            }
            *self = self.take().step(outbox, last);
        }
    }

    /// Trailers end the request. They are not copied: Envoy does not send them with a call.
    pub fn trailers<H: Host>(&mut self, outbox: &Outbox<H>) {
        *self = self.take().step(outbox, true);
    }

    /// The stream is over, perhaps before the request was whole.
    pub fn over<H: Host>(&mut self, outbox: &Outbox<H>) {
        if let Self::Collecting(mut collecting) = self.take() {
            collecting.drop_all(outbox, Counter::DroppedIncomplete);
        }
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Passing)
    }

    /// Moves on: to nothing if no target is left, to the outbox if the request is whole.
    fn step<H: Host>(self, outbox: &Outbox<H>, whole: bool) -> Self {
        match self {
            Self::Collecting(collecting) if collecting.targets.is_empty() => Self::Passing,
            Self::Collecting(collecting) if whole => {
                collecting.finish(outbox);
                Self::Passing
            }
            unfinished => unfinished,
        }
    }
}

impl Collecting {
    fn append<H: Host>(
        &mut self,
        outbox: &Outbox<H>,
        size: usize,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        let length = self.body.len().saturating_add(size);
        self.drop_targets_below(outbox, u64::try_from(length).unwrap_or(u64::MAX));
        if self.targets.is_empty() {
            return;
        }
        let room = outbox.grow(&mut self.hold, u64::try_from(size).unwrap_or(u64::MAX));
        if !room || (!self.body.is_empty() && self.body.try_reserve(size).is_err()) {
            return self.drop_all(outbox, Counter::DroppedBufferFull);
        }
        match read().filter(|chunk| chunk.len() == size) {
            // Most bodies come in one chunk, which then need not be copied once more.
            Some(chunk) if self.body.is_empty() => self.body = chunk,
            Some(chunk) => self.body.extend(chunk),
            None => self.drop_all(outbox, Counter::DroppedIncomplete),
        }
    }

    /// Drops the mirrors for which a body of this length is too long.
    fn drop_targets_below<H: Host>(&mut self, outbox: &Outbox<H>, length: u64) {
        let before = self.targets.len();
        self.targets.retain(|target| target.max_body_bytes >= length);
        outbox.count(Counter::DroppedBodyTooLarge, before.saturating_sub(self.targets.len()));
    }

    fn drop_all<H: Host>(&mut self, outbox: &Outbox<H>, why: Counter) {
        outbox.count(why, self.targets.len());
        self.targets.clear();
        outbox.hasten();
    }

    fn finish<H: Host>(self, outbox: &Outbox<H>) {
        let Self { head, head_hold, body, hold, targets } = self;
        let request = Rc::new(Whole { head, head_hold, body, hold: Rc::new(hold) });
        for target in targets {
            outbox.push(Copy { request: Rc::clone(&request), target });
        }
    }
}

#[cfg(test)]
mod tests;
