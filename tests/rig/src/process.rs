//! A child process that never outlives the one that started it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::eventually;

/// A child that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts it in a process group of its own: an interrupt from the terminal reaches the parent
    /// alone, which then ends the child in its own time.
    ///
    /// On Linux the kernel kills it when the thread that called this ends, so that not even
    /// a killed test run leaves one behind. Call it from a thread that lives as long as the child
    /// is to live, such as a test's own.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        raise_file_limit();
        #[cfg(target_os = "linux")]
        die_with_parent(command);
        command.process_group(0);
        let child =
            command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Self(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let id = Pid::from_child(&self.0);
        kill_process(id, signal).with_context(|| format!("cannot send {signal:?}"))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Waits for its end.
    pub(crate) async fn end(&mut self) -> Result<ExitStatus> {
        eventually("the process to end", async || self.ended()?.context("it still runs")).await
    }

    /// Ends it now.
    pub(crate) fn kill(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets this process and its children have as many files open as the system allows: hundreds of
/// connections at a time are more than the usual 1024 leave room for.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where that is refused, the usual number has to do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    use rustix::process::{Signal, set_parent_process_death_signal};

    let ask = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into);
    // SAFETY: between fork and exec only what is safe in a signal handler may run; this is one
    // system call, which neither allocates nor locks.
    unsafe { command.pre_exec(ask) };
}
