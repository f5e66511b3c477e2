//! A running Envoy: its start, its addresses, its log and its end.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::admin::Admin;
use crate::config::{GATEWAY, PLAIN};
use crate::counters::{Counters, PREFIX};
use crate::process::Process;
use crate::setup::Setup;
use crate::wait::{DEADLINE, eventually, eventually_within};

/// How many Envoys run at a time, however many tests do: each takes its workers' share of the
/// machine. A test that held one and started another could wait for ever; the listener without
/// the mirror is there so that none has to.
static SLOTS: Semaphore = Semaphore::const_new(3);

/// What the names of workers' threads begin with.
pub const WORKERS: &str = "wrk:";

/// A running Envoy. Dropped, it is killed; dropped without [`finish`](Envoy::finish) or
/// [`stop`](Envoy::stop), as when a test fails, it shows its log first.
pub struct Envoy {
    process: Process,
    home: Home,
    admin: Admin,
    gateway: SocketAddr,
    plain: SocketAddr,
    ended: bool,
    _slot: SemaphorePermit<'static>,
}

/// What `envoy --mode validate` said.
#[derive(Debug)]
pub struct Validation {
    pub status: ExitStatus,
    pub log: String,
}

impl Envoy {
    /// Starts Envoy and waits until its workers serve.
    pub(crate) async fn start(setup: Setup) -> Result<Self> {
        let slot = SLOTS.acquire().await?;
        let home = Home::new()?;
        let deadline = if setup.under.is_empty() { DEADLINE } else { 10 * DEADLINE };
        let admin_file = home.path("admin");
        let mut command = home.command(setup)?;
        command.arg("--admin-address-path").arg(&admin_file);
        let mut process = Process::spawn(&mut command)?;

        let ready = eventually_within(deadline, "Envoy to serve", async || {
            if let Some(status) = process.ended()? {
                return Ok(Err(anyhow!("Envoy ended at once with {status}")));
            }
            let admin = Admin::new(std::fs::read_to_string(&admin_file)?.parse()?);
            let started = admin.stats("^listener_manager.workers_started$").await?;
            ensure!(started.values().eq([&1]), "the workers have not started");
            let listeners = admin.listeners().await?;
            let address = |name| listeners.get(name).copied().context("a listener is missing");
            Ok(Ok((admin, address(GATEWAY)?, address(PLAIN)?)))
        });
        let (admin, gateway, plain) = ready
            .await
            .and_then(|ready| ready)
            .with_context(|| format!("Envoy's log:\n{}", home.log()))?;
        Ok(Self { process, home, admin, gateway, plain, ended: false, _slot: slot })
    }

    /// Runs `envoy --mode validate`.
    pub(crate) async fn validate(setup: Setup) -> Result<Validation> {
        let _slot = SLOTS.acquire().await?;
        let home = Home::new()?;
        let mut command = home.command(setup)?;
        let status = Process::spawn(command.args(["--mode", "validate"]))?.end().await?;
        Ok(Validation { status, log: home.log() })
    }

    /// Where requests are mirrored.
    pub fn address(&self) -> SocketAddr {
        self.gateway
    }

    /// The same listener without the mirror: what the client would see if there were none.
    pub fn plain_address(&self) -> SocketAddr {
        self.plain
    }

    /// The admin interface.
    pub fn admin(&self) -> Admin {
        self.admin
    }

    /// Envoy's process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops the process where it stands, until [`Envoy::resume`].
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// The memory that the process has in use, in bytes.
    pub fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        Ok(number(&status, "VmRSS:")? * 1024)
    }

    /// How often its workers have waited for something, and been woken.
    pub fn wakeups(&self) -> Result<u64> {
        let woken = |thread: PathBuf| {
            let status = std::fs::read_to_string(thread.join("status"))?;
            number(&status, "voluntary_ctxt_switches:")
        };
        self.threads(WORKERS)?.into_iter().map(woken).sum()
    }

    /// Where /proc tells of its threads, those whose names begin so.
    pub fn threads(&self, name: &str) -> Result<Vec<PathBuf>> {
        let mut threads = Vec::new();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let thread = thread?.path();
            if std::fs::read_to_string(thread.join("comm"))?.starts_with(name) {
                threads.push(thread);
            }
        }
        Ok(threads)
    }

    /// The mirror's counters now.
    pub async fn counters(&self) -> Result<Counters> {
        Ok(Counters::from_stats(self.admin.stats(&format!("^{PREFIX}")).await?))
    }

    /// Waits until the mirror's counters are as the condition wants them, and returns them.
    pub async fn wait_for(
        &self,
        what: &str,
        condition: impl Fn(&Counters) -> bool,
    ) -> Result<Counters> {
        eventually(what, async || {
            let counters = self.counters().await?;
            ensure!(condition(&counters), "the counters are {counters:?}");
            Ok(counters)
        })
        .await
    }

    /// Waits until no mirror is under way and each ended in exactly one counter.
    pub async fn settled(&self) -> Result<Counters> {
        eventually("every mirror to be accounted for", async || {
            let counters = self.counters().await?;
            counters.settled().map(|()| counters)
        })
        .await
    }

    /// Envoy's log so far.
    pub fn log(&self) -> String {
        self.home.log()
    }

    /// The lines the mirror logged at that level (`error`, `warning`, `info`, …).
    pub fn mirror_log(&self, level: &str) -> Vec<String> {
        let level = format!("[{level}]");
        let own = |line: &&str| line.contains("wasm log") && line.contains(&level);
        self.log().lines().filter(own).map(str::to_owned).collect()
    }

    /// Ends a test: every mirror must be accounted for, and Envoy must exit cleanly.
    pub async fn finish(self) -> Result<Counters> {
        let counters = self.settled().await?;
        self.stop().await?;
        Ok(counters)
    }

    /// Ends a test in which a VM crashed (see [`Counters::settled_after_crash`]).
    pub async fn finish_after_crash(self) -> Result<Counters> {
        let counters = eventually("every lease to be reclaimed", async || {
            let counters = self.counters().await?;
            counters.settled_after_crash().map(|()| counters)
        });
        let counters = counters.await?;
        self.stop().await?;
        Ok(counters)
    }

    /// Asks Envoy to exit, and fails unless it does so with success.
    pub async fn stop(mut self) -> Result<()> {
        self.admin.post("/quitquitquit").await?;
        let status = self.process.end().await?;
        ensure!(status.success(), "Envoy ended with {status}");
        self.ended = true;
        Ok(())
    }
}

/// The number behind a name in a `status` file of /proc, without its unit.
fn number(status: &str, name: &str) -> Result<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next());
    Ok(number.with_context(|| format!("no {name}"))?.parse()?)
}

impl Drop for Envoy {
    fn drop(&mut self) {
        if !self.ended {
            self.process.kill();
            eprintln!("Envoy's log:\n{}", self.home.log());
        }
    }
}

/// The directory of one Envoy: its configuration and its log.
struct Home(TempDir);

impl Home {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn log(&self) -> String {
        let log = std::fs::read(self.path("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The command that runs Envoy on this configuration.
    fn command(&self, setup: Setup) -> Result<Command> {
        const STRICT: &str = "REQUEST_MIRROR_STRICT";
        let envoy = crate::artifacts::envoy()?;
        let mut command = match setup.under.split_first() {
            None => Command::new(envoy),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(envoy);
                command
            }
        };
        command.arg("--disable-hot-restart").args(["--concurrency", &setup.workers.to_string()]);
        // Of Envoy's own start-up chatter only what is wrong, of the mirror all that it says.
        let wasm = if setup.trace { "wasm:trace" } else { "wasm:info" };
        command.args(["--log-level", "warning", "--component-log-level", wasm]);
        command.args(&setup.arguments);
        command.envs(setup.environment.clone());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(self.path("log"))?);
        match setup.strict {
            true => command.env(STRICT, "true"),
            false => command.env_remove(STRICT),
        };
        std::fs::write(self.path("envoy.json"), setup.bootstrap().to_string())?;
        command.arg("--config-path").arg(self.path("envoy.json"));
        Ok(command)
    }
}
