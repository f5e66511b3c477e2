//! The built file itself: what it asks of its host, and what must not be in it.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use wasmparser::{Parser, Payload};

use crate::examples;

/// The WASI functions that every supported Envoy provides. A module with any other import does not
/// even load.
const WASI: [&str; 15] = [
    "args_get",
    "args_sizes_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_close",
    "fd_fdstat_get",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_read",
    "fd_seek",
    "fd_write",
    "path_open",
    "proc_exit",
    "random_get",
];

#[test]
fn the_module_imports_only_what_every_supported_envoy_provides() -> Result<()> {
    for (module, name) in imports()? {
        let known = match module.as_str() {
            "env" => name.starts_with("proxy_"),
            "wasi_snapshot_preview1" => WASI.contains(&name.as_str()),
            _ => false,
        };
        ensure!(known, "the module imports {module}.{name}");
    }
    Ok(())
}

/// Each callback that a module exports costs every request an entry into the VM: none more than the
/// mirror needs, however it was built.
#[test]
fn the_module_exports_only_the_callbacks_that_a_mirror_needs() -> Result<()> {
    let mut needed = BTreeSet::from(["proxy_on_memory_allocate".to_owned()]); // always allowed
    needed.extend(examples::capabilities()?);
    needed.retain(|name| name.starts_with("proxy_on_"));
    let module = std::fs::read(rig::artifacts::module()?)?;
    let mut callbacks = BTreeSet::new();
    for part in Parser::new(0).parse_all(&module) {
        if let Payload::ExportSection(section) = part? {
            for export in section {
                callbacks.insert(export?.name.to_owned());
            }
        }
    }
    callbacks.retain(|name| name.starts_with("proxy_on_"));
    ensure!(callbacks == needed, "the module exports {callbacks:?}");
    Ok(())
}

/// Envoy compiles it at each start, at 1.5 ms of CPU for each KB.
#[test]
fn the_module_is_small() -> Result<()> {
    let bytes = std::fs::metadata(rig::artifacts::module()?)?.len();
    ensure!(bytes <= 256 * 1024, "the module has {bytes} bytes");
    Ok(())
}

/// Workers start within the same microseconds: only entropy tells their generators apart.
#[test]
fn the_module_draws_on_the_hosts_entropy() -> Result<()> {
    let random = ("wasi_snapshot_preview1".to_owned(), "random_get".to_owned());
    ensure!(imports()?.contains(&random), "the module does not import random_get");
    Ok(())
}

#[test]
fn the_shipped_module_has_no_trap_in_it() -> Result<()> {
    const TRAP: &[u8] = b"x-request-mirror-trap";
    let shipped = std::fs::read(rig::artifacts::module()?)?;
    ensure!(
        !shipped.windows(TRAP.len()).any(|window| window == TRAP),
        "the trap is in the shipped module"
    );
    Ok(())
}

fn imports() -> Result<BTreeSet<(String, String)>> {
    let module = std::fs::read(rig::artifacts::module()?)?;
    let mut imports = BTreeSet::new();
    for part in Parser::new(0).parse_all(&module) {
        if let Payload::ImportSection(section) = part? {
            for import in section {
                let import = import?;
                imports.insert((import.module.to_owned(), import.name.to_owned()));
            }
        }
    }
    ensure!(!imports.is_empty(), "the module imports nothing at all");
    Ok(imports)
}
