//! Whatever lies in the shared data, a root settles with it: no panic, no more permits than it has
//! asked for or its limit allows, and what it leaves is a table again.
#![no_main]

use std::cell::{Cell, RefCell};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use request_mirror::budget::{Budget, Clock, Store, Version};
use request_mirror::config::Limits;

const LIMITS: Limits = Limits { mirrors: 8, bytes: 1000 };
const OWNER: u64 = u64::from_le_bytes(*b"AAAAAAAA"); // a fuzzer can hit upon it

/// The shared value, and a clock.
struct Host {
    value: RefCell<Vec<u8>>,
    now: Cell<Duration>,
}

impl Store for Host {
    fn load(&self) -> (Vec<u8>, Version) {
        (self.value.borrow().clone(), Version(1))
    }

    fn replace(&self, value: &[u8], _: Version) -> bool {
        self.value.replace(value.to_vec());
        true
    }
}

impl Clock for Host {
    fn now(&self) -> Duration {
        self.now.get()
    }
}

fuzz_target!(|value: &[u8]| {
    let host = Host { value: RefCell::default(), now: Cell::new(Duration::from_secs(1)) };
    let budget = Budget::new(OWNER, LIMITS, Duration::from_millis(100));
    let before = budget.settle(&host, 2, 0);
    host.value.replace(value.to_vec());
    let mut hold = budget.hold();
    let _ = budget.grow(&host, &mut hold, 100);
    let after = budget.settle(&host, 5, 1).expect("every write succeeds");
    assert!(after.permits.len() <= 5);
    assert!(after.permits.is_empty() || after.in_flight <= u64::from(LIMITS.mirrors));
    let again = budget.settle(&host, 0, 0).expect("every write succeeds");
    assert!(!again.news.repaired, "a table that was just written is no table");
    drop((before, after, again, hold));
    // All is given back, and what no living root can have written is gone after the longest lease.
    host.now.set(Duration::from_secs(2 * 3600));
    let last = budget.settle(&host, 8, 0).expect("every write succeeds");
    assert_eq!(last.permits.len(), 8, "the budget is stuck");
});
