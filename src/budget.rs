//! What mirrors may cost: concurrent ones and bytes held, in the whole process.
//!
//! Workers run in VMs of their own and share one value (`table`) in the host's shared data. Each
//! root context has a row there: how many mirrors it has in flight, how many bytes it holds, and by
//! when all of that must have ended. A row past its time belongs to a VM that died, and whoever
//! reads it next reclaims it. A root writes its own true count each time, so nothing that gets lost
//! stays lost.

mod held;
mod table;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use crate::config::{Limits, MAX_TIMEOUT};
use held::Held;
pub use held::{HeadHold, Hold, Permit};
use table::{Holding, Table};

/// How long after its last mirror's timeout a root that has not renewed its row counts as dead. Long
/// beside the renewals (see [`crate::outbox::HOUSEKEEPING`]) and the stalls of a busy worker.
pub const GRACE: Duration = Duration::from_secs(1);

/// No row is valid for longer.
const LONGEST_LEASE: Duration = MAX_TIMEOUT.saturating_add(GRACE);

/// Attempts to write the table against other workers before giving up. A lost attempt means that
/// another worker has won one, and each has about one write a millisecond.
const ATTEMPTS: u32 = 16;

/// A limit of fewer bytes than this is kept to the byte. Of a larger one each root reserves a
/// thousandth ahead, and keeps what it has reserved until half the limit is, so that a busy worker
/// need not write the table for each body. Short of the limit by that much for each other worker, a
/// chunk may find no room.
const EXACT_BELOW: u64 = 16 * 1024 * 1024;

/// The most body bytes that one root holds, whatever the limit of the process. A VM may grow to 1 GiB
/// and traps beyond, while a growing buffer takes up to three times its content for a moment, and an
/// old and a new root may share a VM.
const ROOT_BODY_BYTES: u64 = 128 * 1024 * 1024;

/// The most bytes of headers that one root holds, of requests that are not yet sent: bodies are not
/// all that many slow uploads take.
const ROOT_HEAD_BYTES: u64 = 32 * 1024 * 1024;

/// A value that all VMs of the process share, changed by compare-and-swap.
pub trait Store {
    /// The value, empty if nothing is stored yet, and the version to replace it at.
    fn load(&self) -> (Vec<u8>, Version);
    /// Whether the value was replaced; not if another VM has replaced that version before.
    fn replace(&self, value: &[u8], version: Version) -> bool;
}

/// A version of the shared value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub u32);

/// Time since an origin that all VMs of the process share; it never goes back.
pub trait Clock {
    fn now(&self) -> Duration;
}

/// The budget as one root context sees it.
pub struct Budget {
    /// Names this root's row: a random number, since root contexts have the same id in every VM.
    owner: u64,
    limits: Limits,
    /// The longest that a mirror of this root may take, and [`GRACE`].
    lease: Duration,
    /// What this root really holds at this moment.
    held: Rc<Held>,
    published: Cell<Published>,
    news: Cell<News>,
}

/// What this root's row says, and in which table.
#[derive(Clone, Copy, Default)]
struct Published {
    holding: Holding,
    origin: u64,
}

/// What this root has learnt from the table since it last settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Mirrors of dead roots that this root has reclaimed.
    pub lost: u64,
    /// Whether this root itself was taken for dead: the mirrors it had in flight are counted as lost.
    pub forfeited: bool,
    /// Whether the shared value, or a row in it, made no sense and was dropped.
    pub repaired: bool,
}

/// What settling has brought.
#[must_use]
pub struct Settled {
    /// At most as many as were asked for; the rest are drops.
    pub permits: Vec<Permit>,
    /// Mirrors dropped for want of a permit, in the whole process, before and after this settling.
    pub drops: Range<u64>,
    pub news: News,
    /// Mirrors in flight and bytes held, in the whole process.
    pub in_flight: u64,
    pub bytes: u64,
}

impl Budget {
    /// `owner` is a random number; no mirror of this root takes longer than `longest_timeout`.
    pub fn new(owner: u64, limits: Limits, longest_timeout: Duration) -> Self {
        Self {
            owner,
            limits,
            lease: longest_timeout.saturating_add(GRACE),
            held: Rc::default(),
            published: Cell::default(),
            news: Cell::default(),
        }
    }

    /// The concurrent mirrors that this root's configuration allows the process.
    pub fn limit(&self) -> u32 {
        self.limits.mirrors
    }

    /// Whether the table says what is true of this root.
    pub fn is_settled(&self) -> bool {
        self.published.get().holding == self.held.holding.get()
    }

    /// The mirrors that have ended and still keep their permits, as far as other roots know.
    pub fn ended(&self) -> u32 {
        self.published.get().holding.mirrors.saturating_sub(self.held.holding.get().mirrors)
    }

    /// Publishes what this root holds and takes permits: `wanted` of them, for mirrors that are
    /// ready to be sent. `dropped` ones could not even ask.
    ///
    /// `None` if other workers won every attempt to write: nothing is granted, nothing published.
    pub fn settle(
        &self,
        host: &(impl Store + Clock),
        wanted: u32,
        dropped: u32,
    ) -> Option<Settled> {
        let (granted, mine, mut settled) = self.update(host, |others, _| {
            let mut mine = self.held.holding.get();
            let taken = others.mirrors().saturating_add(u64::from(mine.mirrors));
            let free = u64::from(self.limits.mirrors).saturating_sub(taken);
            let granted = wanted.min(u32::try_from(free).unwrap_or(u32::MAX));
            mine.mirrors = mine.mirrors.saturating_add(granted);
            let reserved = others.reserved().saturating_add(mine.reserved);
            if mine.bytes == 0 || reserved > self.unhurried() {
                mine.reserved = mine.reserved.min(self.ahead_of(mine.bytes));
            }
            let before = others.drops;
            let refused = wanted.saturating_sub(granted).saturating_add(dropped);
            others.drops = before.saturating_add(u64::from(refused));
            let settled = Settled {
                permits: Vec::new(),
                drops: before..others.drops,
                news: News::default(),
                in_flight: taken.saturating_add(u64::from(granted)),
                bytes: others.bytes().saturating_add(mine.bytes),
            };
            Some((mine, (granted, mine, settled)))
        })?;
        self.held.holding.set(mine);
        settled.permits.extend((0..granted).map(|_| Permit::new(&self.held)));
        settled.news = self.news.take();
        Some(settled)
    }

    /// A hold on nothing yet.
    pub fn hold(&self) -> Hold {
        Hold::new(&self.held)
    }

    /// A hold on the headers of a request, unless this root holds too many already.
    pub fn hold_head(&self, bytes: usize) -> Option<HeadHold> {
        HeadHold::new(&self.held, u64::try_from(bytes).ok()?, ROOT_HEAD_BYTES)
    }

    /// Adds bytes to a hold, unless the process would then hold more than its limit.
    #[must_use]
    pub fn grow(&self, host: &(impl Store + Clock), hold: &mut Hold, by: u64) -> bool {
        let mut mine = self.held.holding.get();
        mine.bytes = mine.bytes.saturating_add(by);
        if mine.bytes > ROOT_BODY_BYTES {
            return false;
        }
        if mine.bytes > mine.reserved {
            let reserved = self.update(host, |others, published| {
                let free = self.limits.bytes.saturating_sub(others.reserved());
                let reserved = self.ahead_of(mine.bytes).min(free);
                // Mirrors that have ended stay published until they are settled, with their outcomes.
                let row = Holding { mirrors: published.mirrors, bytes: mine.bytes, reserved };
                (reserved >= mine.bytes).then_some((row, reserved))
            });
            let Some(reserved) = reserved else { return false };
            self.held.change(|mine| mine.reserved = reserved);
        }
        hold.grow(by);
        true
    }

    /// The bytes to reserve for holding so many.
    fn ahead_of(&self, bytes: u64) -> u64 {
        let step = if self.is_exact() { 1 } else { self.limits.bytes / 1024 };
        bytes.checked_next_multiple_of(step).unwrap_or(bytes)
    }

    /// The bytes that all roots may have reserved before each gives back what it does not need.
    fn unhurried(&self) -> u64 {
        if self.is_exact() { 0 } else { self.limits.bytes / 2 }
    }

    fn is_exact(&self) -> bool {
        self.limits.bytes < EXACT_BELOW
    }

    /// Replaces this root's row. `change` is given the other roots' rows and what this root's row
    /// says, and tells what it shall say, or leaves the table alone (`None`).
    fn update<T>(
        &self,
        host: &(impl Store + Clock),
        change: impl Fn(&mut Table, Holding) -> Option<(Holding, T)>,
    ) -> Option<T> {
        for _ in 0..ATTEMPTS {
            let (value, version) = host.load();
            // After the value: every row in it was written before, so none can end later than this
            // plus the longest lease.
            let now = host.now();
            let decoded = Table::decode(&value);
            let mut repaired = decoded.is_none() && !value.is_empty();
            let mut table = decoded.unwrap_or_else(|| Table::new(nanoseconds(now)));
            repaired |= table.drop_beyond(nanoseconds(now.saturating_add(LONGEST_LEASE)));
            let row = table.take(self.owner);
            if row.is_none() {
                self.forfeit(table.origin);
            }
            let lost = table.reclaim(nanoseconds(now));
            let (holding, result) = change(&mut table, row.unwrap_or_default())?;
            let expires = now.saturating_add(self.lease);
            table.put(self.owner, nanoseconds(expires), holding);
            let changed = table.encode();
            if changed == value || host.replace(&changed, version) {
                self.published.set(Published { holding, origin: table.origin });
                self.learn(|news| {
                    news.lost = news.lost.saturating_add(lost);
                    news.repaired |= repaired;
                });
                return Some(result);
            }
        }
        None
    }

    /// This root has no row in the table of this origin. If it had one there, it was taken for dead.
    fn forfeit(&self, origin: u64) {
        let published = self.published.get();
        if published.holding != Holding::default() && published.origin == origin {
            self.published.set(Published::default());
            self.held.forfeit();
            self.learn(|news| news.forfeited = true);
        }
    }

    fn learn(&self, learn: impl FnOnce(&mut News)) {
        let mut news = self.news.get();
        learn(&mut news);
        self.news.set(news);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
