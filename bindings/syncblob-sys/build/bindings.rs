//! The bindings: those of src/bindings.rs or, with the feature
//! `buildtime_bindgen`, made while building.

use std::path::Path;

use crate::variable;

/// For the feature `buildtime_bindgen` where there is no libclang.
pub fn keep_checked_in() -> Result<(), String> {
    let out = Path::new(&variable("OUT_DIR")?).join("bindings.rs");
    let copied = std::fs::copy("src/bindings.rs", out);
    println!("cargo::rerun-if-changed=src/bindings.rs");
    copied.map(|_| ()).map_err(|e| format!("src/bindings.rs: {e}"))
}

#[cfg(not(feature = "buildtime_bindgen"))]
pub fn write(_include: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(feature = "buildtime_bindgen")]
pub use made::write;

#[cfg(feature = "buildtime_bindgen")]
mod made {
    use std::panic;
    use std::path::Path;

    use crate::variable;

    include!("../generate.rs");

    pub fn write(include: &Path) -> Result<(), String> {
        // bindgen's own build script watches its other variables.
        println!("cargo::rerun-if-env-changed=CLANG_PATH");
        for read in ["generate.rs", "wrapper.h"] {
            println!("cargo::rerun-if-changed={read}");
        }
        let out = Path::new(&variable("OUT_DIR")?).join("bindings.rs");
        std::fs::write(&out, generate_quietly(include)?).map_err(|e| e.to_string())
    }

    /// bindgen panics where it finds no libclang.
    fn generate_quietly(include: &Path) -> Result<String, String> {
        panic::set_hook(Box::new(|_| ()));
        let made = panic::catch_unwind(|| generate(Path::new("wrapper.h"), include, &[]));
        let _ = panic::take_hook();
        made.unwrap_or_else(|cause| {
            let cause = cause.downcast_ref::<String>().map_or("", String::as_str);
            Err(format!(
                "bindgen found no libclang: install libclang-dev, set LIBCLANG_PATH, or drop the \
                 feature `buildtime_bindgen` ({cause})"
            ))
        })
    }
}
