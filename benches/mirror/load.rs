//! The load, and the CPU time that Envoy spends.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rig::Envoy;

/// A block of requests, all alike.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub requests: usize,
    /// A GET has none.
    pub body_kilobytes: usize,
    pub connections: usize,
    /// At a time on each connection, over HTTP/2. `None`: one at a time, over HTTP/1.1.
    pub streams: Option<usize>,
}

impl Load {
    /// Few enough requests for a block to be over before the machine changes its mood, enough for the
    /// copies that leave after its end to be few among them, and enough connections for a worker never
    /// to sleep: to wake it costs as much as half a request.
    pub const GET: Self =
        Self { requests: 2400, body_kilobytes: 0, connections: 16, streams: None };
    pub const POST_1_KB: Self = Self { body_kilobytes: 1, ..Self::GET };
    pub const POST_64_KB: Self = Self { body_kilobytes: 64, requests: 600, ..Self::GET };
    pub const ALL: [Self; 3] = [Self::GET, Self::POST_1_KB, Self::POST_64_KB];

    /// Sends a block as fast as answers come, and returns the seconds that took.
    pub fn run(self, to: SocketAddr, core: usize) -> Result<f64> {
        let began = Instant::now();
        self.h2load(to, core, &[])?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Sends a block at this many requests a second, and returns what each took, in microseconds.
    pub fn run_at(self, pace: f64, to: SocketAddr, core: usize) -> Result<Vec<f64>> {
        let log = tempfile::NamedTempFile::new()?;
        let pace = (pace / self.connections as f64).ceil().to_string();
        let log_file = format!("--log-file={}", log.path().display());
        self.h2load(to, core, &["--rps", &pace, &log_file])?;
        let lines = std::fs::read_to_string(log.path())?;
        // Start, status and duration, with tabs between.
        let duration = |line: &str| line.split('\t').nth(2)?.parse().ok();
        lines.lines().map(duration).collect::<Option<_>>().context("h2load's log has changed")
    }

    /// Every request must be answered with success.
    fn h2load(self, to: SocketAddr, core: usize, options: &[&str]) -> Result<()> {
        let Self { requests, body_kilobytes, connections, streams } = self;
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), "h2load", "-n", &requests.to_string()]);
        command.args(["-c", &connections.to_string()]);
        match streams {
            Some(streams) => command.args(["-m", &streams.to_string()]),
            None => command.arg("--h1"),
        };
        command.arg(format!("http://{to}/api/x")).args(options);
        let mut body = tempfile::NamedTempFile::new()?;
        if body_kilobytes > 0 {
            body.write_all(&vec![b'x'; body_kilobytes * 1024])?;
            command.arg("-d").arg(body.path());
        }
        let output = command.stderr(Stdio::inherit()).output().context("cannot run h2load")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let all = format!("{requests} succeeded, 0 failed, 0 errored");
        ensure!(output.status.success() && said.contains(&all), "h2load failed:\n{said}");
        Ok(())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.body_kilobytes {
            0 => write!(f, "GET"),
            kilobytes => write!(f, "POST {kilobytes} KB"),
        }
    }
}

/// The time that the threads of an Envoy whose names begin so have spent on a core.
pub fn nanoseconds(envoy: &Envoy, threads: &str) -> Result<u64> {
    let spent = |thread: PathBuf| {
        let schedstat = std::fs::read_to_string(thread.join("schedstat"))?;
        let spent = schedstat.split(' ').next().context("an empty schedstat")?;
        Ok(spent.parse::<u64>()?)
    };
    envoy.threads(threads)?.into_iter().map(spent).sum()
}

/// Keeps a process, with all of its threads, on one core.
pub fn pin(process: u32, core: usize) -> Result<()> {
    let mut command = Command::new("taskset");
    command.args(["-a", "-c", "-p", &core.to_string(), &process.to_string()]);
    let output = command.output().context("cannot run taskset")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
