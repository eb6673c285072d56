//! Builds the C library from its sources, or finds an installed library.
//!
//! If DOCS_RS is set, the script links no library, because documentation needs no library.

mod bindings;
mod bundled;
mod installed;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "testing", feature = "comm"))]
mod over;
mod packages;

use std::env;
use std::path::PathBuf;

struct Linked {
    /// The folder of `syncblob/syncblob.h`.
    include: PathBuf,
    /// The prefix, which contains `lib` and `include`.
    root: PathBuf,
    version: String,
    /// The folder that a program should have in its run path, or an empty string.
    run_path: String,
}

fn main() {
    if let Err(message) = run() {
        // Cargo shows this line as the crate's error and stops. The error must be one line.
        println!("cargo::error={}", message.replace('\n', " "));
    }
}

fn run() -> Result<(), String> {
    for name in ["SYNCBLOB_NO_VENDOR", "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=build");
    if env::var_os("DOCS_RS").is_some() {
        return bindings::keep_checked_in();
    }
    check_target()?;
    let linked = if wants_installed() { installed::link()? } else { bundled::build()? };
    #[cfg(feature = "testing")]
    over::link("testing", &linked.include, wants_installed())?;
    #[cfg(feature = "comm")]
    over::link("comm", &linked.include, wants_installed())?;
    #[cfg(feature = "mpi")]
    mpi::link(&linked.include, wants_installed())?;
    println!("cargo::metadata=INCLUDE={}", linked.include.display());
    println!("cargo::metadata=ROOT={}", linked.root.display());
    println!("cargo::metadata=VERSION={}", linked.version);
    println!("cargo::metadata=RUN_PATH={}", linked.run_path);
    println!("cargo::rustc-env=SYNCBLOB_INCLUDE={}", linked.include.display());
    bindings::write(&linked.include)
}

fn check_target() -> Result<(), String> {
    let of_target = |name: &str| variable(&format!("CARGO_CFG_TARGET_{name}"));
    match (of_target("OS")?.as_str(), of_target("ARCH")?.as_str(), of_target("ENV")?.as_str()) {
        ("linux" | "macos", "x86_64" | "aarch64", _)
        | ("linux", "x86", _) // for 32-bit tests
        | ("windows", "x86_64", "gnu")
        | ("wasi", "wasm32", "p1") => Ok(()),
        ("windows", "x86_64", _) => Err("on Windows the C sources are compiled by MinGW, so that \
             syncblob needs Rust's target x86_64-pc-windows-gnu"
            .into()),
        (os, arch, _) => Err(format!(
            "syncblob is for Linux and macOS on x86_64 and aarch64, for Windows on x86_64 and for \
             WASI (wasm32-wasip1), not for {os} on {arch}"
        )),
    }
}

fn wants_installed() -> bool {
    let forced = env::var("SYNCBLOB_NO_VENDOR").is_ok_and(|v| !v.is_empty() && v != "0");
    forced || cfg!(feature = "system")
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
