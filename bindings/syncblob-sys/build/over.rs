//! Links the library in `c/NAME`: compiles its sources, or finds the installed library.

use std::path::{Path, PathBuf};

use crate::{bundled, packages, variable};

pub fn link(name: &str, include: &Path, is_installed: bool) -> Result<(), String> {
    let library = format!("syncblob-{name}");
    if is_installed {
        let otherwise = format!("install lib{library}, or drop the feature `{name}`");
        return packages::find(&library, env!("CARGO_PKG_VERSION"), &otherwise).map(drop);
    }
    let root = bundled::source_root()?;
    let folder = root.join("c").join(name);
    println!("cargo::rerun-if-changed={}", folder.display());
    bundled::add_headers(&folder.join("include/syncblob"), &include.join("syncblob"))?;
    let out = PathBuf::from(variable("OUT_DIR")?).join("lib");
    bundled::new_build(&root, &out)?
        .include(include)
        .files(bundled::listed(&root, &folder.join("sources.txt"))?)
        .try_compile(&library)
        .map_err(bundled::explain)
}
