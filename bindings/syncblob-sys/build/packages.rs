//! Finds libraries with pkg-config.

use std::path::Path;

use pkg_config::{Config, Error, Library};

use crate::variable;

/// Finds and links library `name`. If `name` is missing, the error contains the advice `otherwise`.
pub fn find(name: &str, version: &str, otherwise: &str) -> Result<Library, String> {
    let library = Config::new().atleast_version(version).probe(name).map_err(|e| {
        explain(name, e)
            .unwrap_or_else(|| format!("{name} {version} or newer was not found: {otherwise}"))
    })?;
    watch(name);
    Ok(library)
}

/// Explains why pkg-config cannot be used. Returns None if it works but does not find the library.
pub fn explain(name: &str, error: Error) -> Option<String> {
    match error {
        Error::EnvNoPkgConfig(variable) => {
            Some(format!("unset {variable}: only pkg-config can find {name}"))
        }
        Error::CrossCompilation => {
            let target = variable("TARGET").unwrap_or_default();
            Some(format!(
                "pkg-config is not set up for {target}: set PKG_CONFIG_SYSROOT_DIR and \
                 PKG_CONFIG_LIBDIR to its libraries"
            ))
        }
        Error::Command { .. } => Some("pkg-config is missing: install pkg-config".into()),
        _ => None,
    }
}

pub fn watch(name: &str) {
    let folder =
        pkg_config::get_variable(name, "pcfiledir").unwrap_or_default().replace("\\ ", " ");
    let file = Path::new(&folder).join(format!("{name}.pc"));
    // cargo runs the build script every time if a watched path does not exist.
    if file.is_file() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// Returns the folder of Debian's serial OpenBLAS if the library links it, else an empty string.
/// The threaded OpenBLAS has the same SONAME, so a program needs this folder in its run path.
pub fn run_path(library: &Library) -> String {
    let mut folders = library.link_paths.iter();
    let serial = folders.find(|dir| dir.ends_with("openblas-serial"));
    serial.map(|dir| dir.display().to_string()).unwrap_or_default()
}
