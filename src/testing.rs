//! A proxy in memory for the unit tests: it shares one value, keeps a clock that tests set, takes
//! calls, and remembers what was counted. What the real one does is for the end-to-end tests.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use crate::budget::{Clock, Store, Version};
use crate::config::{Limits, Target};
use crate::head::{Head, Header};
use crate::outbox::{CallId, Caller, Refusal, Timer};
use crate::sampling::Fraction;
use crate::stats::{COUNTERS, Counter, GAUGES, Gauge, Meter};

/// One VM's view of the process; a clone is the same VM, [`FakeHost::another_vm`] gives another.
#[derive(Clone, Default)]
pub struct FakeHost {
    process: Rc<Process>,
    pub period: Rc<Cell<Duration>>,
}

#[derive(Default)]
pub struct Process {
    pub shared: RefCell<Vec<u8>>,
    version: Cell<u32>,
    /// The time that passes while the value is read.
    pub load_takes: Cell<Duration>,
    /// How often the value was read.
    pub loads: Cell<u32>,
    /// How many more writes other workers win.
    pub lost_races: Cell<u32>,
    pub now: Cell<Duration>,
    counts: RefCell<HashMap<&'static str, u64>>,
    gauges: RefCell<HashMap<&'static str, u64>>,
    pub durations: RefCell<Vec<u64>>,
    /// Cluster and body of each call that was taken.
    pub calls: RefCell<Vec<(String, Vec<u8>)>>,
    pub refuses: Cell<Option<Refusal>>,
}

impl std::ops::Deref for FakeHost {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl FakeHost {
    pub fn another_vm(&self) -> Self {
        Self { process: Rc::clone(&self.process), period: Rc::default() }
    }

    pub fn sleep(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    pub fn counted(&self, name: &str) -> u64 {
        self.counts.borrow().get(format!("request_mirror.{name}").as_str()).copied().unwrap_or(0)
    }

    pub fn gauged(&self, name: &str) -> u64 {
        self.gauges.borrow()[format!("request_mirror.{name}").as_str()]
    }
}

impl Clock for FakeHost {
    fn now(&self) -> Duration {
        self.now.get()
    }
}

impl Store for FakeHost {
    fn load(&self) -> (Vec<u8>, Version) {
        self.loads.set(self.loads.get() + 1);
        self.sleep(self.load_takes.get());
        (self.shared.borrow().clone(), Version(self.version.get()))
    }

    fn replace(&self, value: &[u8], version: Version) -> bool {
        let races = self.lost_races.get();
        self.lost_races.set(races.saturating_sub(1));
        if races > 0 || version != Version(self.version.get()) {
            return false;
        }
        self.version.set(version.0 + 1);
        self.shared.replace(value.to_vec());
        true
    }
}

impl Meter for FakeHost {
    fn count(&self, counter: Counter, by: u64) {
        *self.counts.borrow_mut().entry(COUNTERS[counter as usize].1).or_default() += by;
    }

    fn gauge(&self, gauge: Gauge, value: u64) {
        self.gauges.borrow_mut().insert(GAUGES[gauge as usize].1, value);
    }

    fn duration(&self, milliseconds: u64) {
        self.durations.borrow_mut().push(milliseconds);
    }
}

impl Caller for FakeHost {
    fn call(&self, target: &Target, _: Vec<Header>, body: &[u8]) -> Result<CallId, Refusal> {
        if let Some(refusal) = self.refuses.get() {
            return Err(refusal);
        }
        let mut calls = self.calls.borrow_mut();
        calls.push((target.cluster.clone(), body.to_vec()));
        Ok(CallId(u32::try_from(calls.len()).unwrap()))
    }
}

impl Timer for FakeHost {
    fn tick_every(&self, period: Duration) {
        self.period.set(period);
    }
}

pub fn limits(mirrors: u32, bytes: u64) -> Limits {
    Limits { mirrors, bytes }
}

/// A target that wants every request with a body of up to so many bytes.
pub fn target(cluster: &str, max_body_bytes: u64) -> Rc<Target> {
    Rc::new(Target {
        cluster: cluster.to_owned(),
        fraction: Fraction::new(1, 1).unwrap(),
        timeout: Duration::from_millis(100),
        max_body_bytes,
    })
}

/// A header map as the host serializes it.
pub fn serialize(headers: &[(&str, &[u8])]) -> Vec<u8> {
    let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let mut map = number(headers.len()).to_vec();
    for (name, value) in headers {
        map.extend([number(name.len()), number(value.len())].concat());
    }
    for (name, value) in headers {
        map.extend([name.as_bytes(), b"\0", value, b"\0"].concat());
    }
    map
}

/// A request's head: a POST with these headers besides.
pub fn post(headers: &[(&str, &[u8])]) -> Head {
    let pseudo: [(&str, &[u8]); 3] = [(":authority", b"a"), (":path", b"/"), (":method", b"POST")];
    Head::parse(serialize(&[pseudo.as_slice(), headers].concat())).unwrap()
}
