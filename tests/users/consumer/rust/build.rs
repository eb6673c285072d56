//! Compiles C code with the metadata that syncblob-sys passes to dependent crates.

use std::env;
use std::path::PathBuf;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let include = PathBuf::from(variable("DEP_SYNCBLOB_INCLUDE"));
    let root = PathBuf::from(variable("DEP_SYNCBLOB_ROOT"));
    assert!(include.join("syncblob/syncblob.h").is_file(), "{}", include.display());
    assert!(root.join("include/syncblob/syncblob.h").is_file(), "{}", root.display());
    let libraries = ["lib/libsyncblob.a", "lib/libsyncblob.so", "lib64/libsyncblob.so"];
    assert!(libraries.iter().any(|name| root.join(name).is_file()), "{}", root.display());

    println!("cargo::rustc-env=SYNCBLOB_VERSION={}", variable("DEP_SYNCBLOB_VERSION"));
    let run_path = variable("DEP_SYNCBLOB_RUN_PATH");
    if !run_path.is_empty() {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{run_path}");
    }
    println!("cargo::rerun-if-changed=version.c");
    cc::Build::new().file("version.c").include(include).compile("consumer");
}
