//! The load, and the CPU time it makes Envoy spend.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// A block of requests, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Get,
    Post { kilobytes: usize },
}

const CONNECTIONS: u32 = 4;

impl Load {
    pub const ALL: [Self; 3] =
        [Self::Get, Self::Post { kilobytes: 1 }, Self::Post { kilobytes: 64 }];

    /// How many; few enough for a block to be over before the machine changes its mood.
    pub fn requests(self) -> usize {
        match self {
            Self::Post { kilobytes: 64 } => 300,
            _ => 600,
        }
    }

    /// Sends a block as fast as answers come, and returns the seconds that took.
    pub fn run(self, to: SocketAddr, core: usize) -> Result<f64> {
        let began = Instant::now();
        self.h2load(to, core, &[])?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Sends a block at this many requests a second, and returns what each took, in microseconds.
    pub fn run_at(self, pace: f64, to: SocketAddr, core: usize) -> Result<Vec<f64>> {
        let log = tempfile::NamedTempFile::new()?;
        let pace = (pace / f64::from(CONNECTIONS)).ceil().to_string();
        let log_file = format!("--log-file={}", log.path().display());
        self.h2load(to, core, &["--rps", &pace, &log_file])?;
        let lines = std::fs::read_to_string(log.path())?;
        // Start, status and duration, with tabs between.
        let duration = |line: &str| line.split('\t').nth(2)?.parse().ok();
        lines.lines().map(duration).collect::<Option<_>>().context("h2load's log has changed")
    }

    /// Every request must be answered with success.
    fn h2load(self, to: SocketAddr, core: usize, options: &[&str]) -> Result<()> {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), "h2load", "--h1", "-c", &CONNECTIONS.to_string()]);
        command.args(["-n", &self.requests().to_string(), &format!("http://{to}/api/x")]);
        command.args(options);
        let mut body = tempfile::NamedTempFile::new()?;
        if let Self::Post { kilobytes } = self {
            body.write_all(&vec![b'x'; kilobytes * 1024])?;
            command.arg("-d").arg(body.path());
        }
        let output = command.stderr(Stdio::inherit()).output().context("cannot run h2load")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let all = format!("{} succeeded, 0 failed, 0 errored", self.requests());
        ensure!(output.status.success() && said.contains(&all), "h2load failed:\n{said}");
        Ok(())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => f.pad("GET"),
            Self::Post { kilobytes } => f.pad(&format!("POST {kilobytes} KB")),
        }
    }
}

/// The time that all threads of a process have spent on a core.
pub fn cpu_nanoseconds(process: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let schedstat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let spent = schedstat.split(' ').next().context("an empty schedstat")?;
        sum += spent.parse::<u64>()?;
    }
    Ok(sum)
}

/// Keeps a process, with all of its threads, on one core.
pub fn pin(process: u32, core: usize) -> Result<()> {
    let mut command = Command::new("taskset");
    command.args(["-a", "-c", "-p", &core.to_string(), &process.to_string()]);
    let output = command.output().context("cannot run taskset")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
