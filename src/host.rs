//! The only module that talks to Envoy.
//!
//! The SDK's host calls panic on every status that they do not list, and a panic is a 503 for the
//! request at hand. So each function here says why its call cannot meet such a status, or makes the
//! call itself. Host calls never call back into the filter, except for memory.
#![allow(clippy::disallowed_methods, unsafe_code)]

use std::cell::OnceCell;
use std::ptr::null_mut;
use std::time::Duration;

use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, MetricType, Status};

use crate::budget::{Clock, Store, Version};
use crate::config::Target;
use crate::head::{Head, Header};
use crate::outbox::{CallId, Caller, Refusal, Timer};
use crate::stats::{Answer, COUNTERS, Counter, DURATION, GAUGES, Gauge, Meter};

/// The budget's key in the host's shared data. A new format of the value takes a new key: versions of
/// this module with the same `vm_id` may run side by side, and would spoil each other's value.
const SHARED_KEY: &str = "request_mirror.budget.1";

/// A version that no value has: the host counts versions up from 1. Where the key is absent, a
/// value is stored at any version but 0, which overwrites; so this is insert-if-absent.
const ABSENT: Version = Version(u32::MAX);

/// The proxy that this module runs in.
pub struct Envoy;

/// The ids that Envoy gave to this VM's metrics.
struct Metrics {
    counters: [u32; COUNTERS.len()],
    gauges: [u32; GAUGES.len()],
    duration: u32,
}

thread_local! {
    /// Defined once for each VM, which has one thread: every definition makes a new id.
    static METRICS: OnceCell<Metrics> = const { OnceCell::new() };
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_get_header_map_pairs(map: MapType, data: *mut *mut u8, size: *mut usize) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u16;
    fn random_get(buffer: *mut u8, length: usize) -> u16;
}

/// Logs at the level that Envoy itself logs at now.
pub fn follow_log_level() {
    // Envoy answers with a level, never with an error.
    if let Ok(level) = hostcalls::get_log_level() {
        proxy_wasm::set_log_level(level);
    }
}

/// Makes the metrics show before the first count; all but the first call in a VM do nothing.
pub fn define_metrics() {
    METRICS.with(|metrics| {
        metrics.get_or_init(Metrics::define);
    });
}

impl Metrics {
    fn define() -> Self {
        // Envoy refuses only a type that it does not know, and then the SDK panics: no id is made up.
        let define = |kind, name| hostcalls::define_metric(kind, name).unwrap_or_default();
        Self {
            counters: COUNTERS.map(|(_, name)| define(MetricType::Counter, name)),
            gauges: GAUGES.map(|(_, name)| define(MetricType::Gauge, name)),
            duration: define(MetricType::Histogram, DURATION),
        }
    }
}

/// The plugin configuration, empty if there is none.
pub fn plugin_configuration() -> Vec<u8> {
    // Read while the plugin is being configured, when the buffer exists.
    let buffer = hostcalls::get_buffer(BufferType::PluginConfiguration, 0, usize::MAX);
    buffer.ok().flatten().unwrap_or_default()
}

/// Whether the VM's environment asks for bad configurations to be refused.
pub fn is_strict() -> bool {
    // Whoever sets it at all wants a check: it is off only where it says so.
    let strict = std::env::var("REQUEST_MIRROR_STRICT");
    strict.is_ok_and(|strict| !matches!(strict.as_str(), "" | "0" | "false"))
}

/// A random word of the host's.
pub fn entropy() -> u64 {
    let mut word = [0; 8];
    // SAFETY: the host writes `length` bytes to `buffer`, which has as many.
    let errno = unsafe { random_get(word.as_mut_ptr(), word.len()) };
    match errno {
        0 => u64::from_ne_bytes(word),
        // The time at least differs from VM to VM, in nanoseconds.
        _ => u64::try_from(Envoy.now().as_nanos()).unwrap_or_default(),
    }
}

/// The headers of the request at hand; readable in its headers callback alone.
pub fn request_headers() -> Option<Head> {
    let (mut data, mut size) = (null_mut(), 0);
    // Called directly, since the SDK's reading of it panics on a name or value that is not UTF-8.
    // SAFETY: on success the host has stored a pointer it got from proxy_on_memory_allocate.
    let status =
        unsafe { proxy_get_header_map_pairs(MapType::HttpRequestHeaders, &mut data, &mut size) };
    if status != Status::Ok as u32 || data.is_null() {
        return None;
    }
    // SAFETY: proxy_on_memory_allocate made a boxed slice of `size` bytes and gave it away; the host
    // has filled it, and nothing else owns it.
    Head::parse(unsafe { Vec::from_raw_parts(data, size, size) })
}

/// The chunk of `size` body bytes at hand; readable in the body callback alone.
pub fn request_body(size: usize) -> Option<Vec<u8>> {
    // In a body callback the buffer exists, and the range lies within it.
    hostcalls::get_buffer(BufferType::HttpRequestBody, 0, size).ok().flatten()
}

/// The answer to the call that has ended; `headers` as the callback was told.
pub fn answer(headers: usize) -> Option<Answer> {
    if headers == 0 {
        // The call failed: there is no header map, and reading it would panic.
        return None;
    }
    let header = |name| {
        hostcalls::get_map_value_bytes(MapType::HttpCallResponseHeaders, name).ok().flatten()
    };
    let status = std::str::from_utf8(&header(":status")?).ok()?.parse().ok()?;
    // Envoy makes up errors only, and marks only what came from a host with the time that took.
    let local = status >= 400 && header("x-envoy-upstream-service-time").is_none();
    Some(Answer { status, local })
}

/// Ends the root context's ticks. Envoy goes on with the timer of a root that is gone.
pub fn tick_never() {
    Envoy.tick_every(Duration::ZERO);
}

/// Lets Envoy delete a root context whose `on_done` asked for time. Panics for any other.
pub fn done() {
    let _ = hostcalls::done();
}

/// Kills the VM on a header, for the tests of what a crash leaves behind.
#[cfg(feature = "trap")]
pub fn trap_if_asked() {
    if request_headers().is_some_and(|head| head.get("x-request-mirror-trap").is_some()) {
        std::process::abort();
    }
}

impl Clock for Envoy {
    fn now(&self) -> Duration {
        const MONOTONIC: u32 = 1;
        let mut nanoseconds = 0;
        // Called directly, since std's Instant cannot be stored. It cannot fail for this clock.
        // SAFETY: the host writes one u64 to `time`.
        unsafe { clock_time_get(MONOTONIC, 0, &mut nanoseconds) };
        Duration::from_nanos(nanoseconds)
    }
}

impl Store for Envoy {
    fn load(&self) -> (Vec<u8>, Version) {
        // Answers with a value or that there is none.
        let (value, version) = hostcalls::get_shared_data(SHARED_KEY).unwrap_or_default();
        (value.unwrap_or_default(), version.map_or(ABSENT, Version))
    }

    fn replace(&self, value: &[u8], version: Version) -> bool {
        // Fails only for another version, which the SDK expects.
        hostcalls::set_shared_data(SHARED_KEY, Some(value), Some(version.0)).is_ok()
    }
}

// The host knows each id, and each metric has the type of its use.
impl Meter for Envoy {
    fn count(&self, counter: Counter, by: u64) {
        if let Some(id) = metric(|metrics| metrics.counters.get(counter as usize).copied()) {
            let _ = hostcalls::increment_metric(id, i64::try_from(by).unwrap_or(i64::MAX));
        }
    }

    fn gauge(&self, gauge: Gauge, value: u64) {
        if let Some(id) = metric(|metrics| metrics.gauges.get(gauge as usize).copied()) {
            let _ = hostcalls::record_metric(id, value);
        }
    }

    fn duration(&self, milliseconds: u64) {
        if let Some(id) = metric(|metrics| Some(metrics.duration)) {
            let _ = hostcalls::record_metric(id, milliseconds);
        }
    }
}

fn metric(of: impl FnOnce(&Metrics) -> Option<u32>) -> Option<u32> {
    METRICS.with(|metrics| metrics.get().and_then(of))
}

impl Caller for Envoy {
    fn call(&self, target: &Target, headers: Vec<Header>, body: &[u8]) -> Result<CallId, Refusal> {
        // SAFETY: the SDK takes `&str` but only copies its bytes. The bytes need not be UTF-8, and
        // must arrive as they are; no str method looks at them.
        let text = |bytes| unsafe { std::str::from_utf8_unchecked(bytes) };
        let headers = headers.into_iter().map(|(name, value)| (text(name), text(value))).collect();
        let body = (!body.is_empty()).then_some(body);
        hostcalls::dispatch_http_call(&target.cluster, headers, body, vec![], target.timeout)
            .map(CallId)
            .map_err(|status| match status {
                // The headers that Envoy needs are there, so what it objects to is the cluster.
                Status::BadArgument => Refusal::NoCluster,
                _ => Refusal::Refused,
            })
    }
}

impl Timer for Envoy {
    fn tick_every(&self, period: Duration) {
        // Never fails. From an HTTP context's callback it sets the timer of its root.
        let _ = hostcalls::set_tick_period(period);
    }
}
