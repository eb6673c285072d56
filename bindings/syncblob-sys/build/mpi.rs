//! Links libsyncblob-mpi: compiles its one source with MPI's compiler, or finds the installed
//! library. The crate mpi-sys links the MPI library.

use std::env;
use std::path::Path;

use crate::{bundled, packages};

pub fn link(include: &Path, is_installed: bool) -> Result<(), String> {
    if is_installed {
        let otherwise = "install libsyncblob-mpi, or drop the feature `mpi`";
        return packages::find("syncblob-mpi", env!("CARGO_PKG_VERSION"), otherwise).map(drop);
    }
    println!("cargo::rerun-if-env-changed=MPICC");
    let folder = bundled::source_root()?.join("c/mpi");
    println!("cargo::rerun-if-changed={}", folder.display());
    let compiler = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    cc::Build::new()
        .compiler(&compiler)
        .std("c17")
        .define("_GNU_SOURCE", None)
        .define("SB__STATIC", None)
        .flag("-fvisibility=hidden")
        .include(folder.join("include"))
        .include(include)
        .warnings(false)
        .file(folder.join("engine.c"))
        .try_compile("syncblob-mpi")
        .map_err(|e| {
            format!("{compiler} does not compile syncblob-mpi (set MPICC to MPI's compiler): {e}")
        })
}
