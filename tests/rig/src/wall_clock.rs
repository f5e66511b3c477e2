//! An Envoy's wall clock, which a test can put forwards and back; nobody else's changes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// By how much a wall clock is off.
#[derive(Debug)]
pub struct WallClock {
    folder: TempDir,
    offset: File,
}

impl WallClock {
    /// Right. Needs a C compiler, whose linker Rust uses too.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let offset = File::create(folder.path().join("offset"))?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-xc", "-", "-o"]);
        compile.arg(folder.path().join("wall_clock.so"));
        let source = folder.path().join("wall_clock.c");
        std::fs::write(&source, include_str!("wall_clock.c"))?;
        let status = compile.stdin(File::open(source)?).status().context("no C compiler")?;
        ensure!(status.success(), "the clock does not compile");
        let clock = Self { folder, offset };
        clock.put(0)?;
        Ok(clock)
    }

    /// The environment in which a process goes by it.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let file = |name| self.folder.path().join(name);
        [("LD_PRELOAD", file("wall_clock.so")), ("WALL_CLOCK", file("offset"))]
    }

    /// Puts it off by so many seconds, at once.
    pub fn put(&self, seconds: i64) -> Result<()> {
        Ok(self.offset.write_all_at(&seconds.to_ne_bytes(), 0)?)
    }
}
