//! Where the things under test are: Envoy and the built module.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// The Envoy to run: `ENVOY`, or the one that `make envoy` fetches.
pub fn envoy() -> Result<PathBuf> {
    find("ENVOY", ".envoy/1.40.0/envoy", "make envoy")
}

/// The shipped module: `REQUEST_MIRROR_WASM`, or the one that `make build` makes.
pub fn module() -> Result<PathBuf> {
    find("REQUEST_MIRROR_WASM", "dist/request_mirror.wasm", "make build")
}

/// The module that traps on a header (`REQUEST_MIRROR_TRAP_WASM`), for the tests of a crash.
pub fn trap_module() -> Result<PathBuf> {
    find("REQUEST_MIRROR_TRAP_WASM", "target/trap/request_mirror.wasm", "make trap")
}

/// The example configuration that users read.
pub fn example() -> PathBuf {
    root().join("envoy/envoy.yaml")
}

fn find(variable: &str, default: &str, target: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map_or_else(|| PathBuf::from(default), PathBuf::from);
    let path = root().join(path); // an absolute path stays as it is
    ensure!(
        path.is_file(),
        "{} is missing: `{target}` makes it, or name another in {variable}",
        path.display()
    );
    Ok(path)
}

/// The top of the repository, whatever directory cargo runs a binary in.
fn root() -> &'static Path {
    const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Path::new(TOP)
}
