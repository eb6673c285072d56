//! Uses the checked-in bindings or, with the feature `buildtime_bindgen`, runs bindgen.

use std::path::Path;

use crate::variable;

/// Copies the checked-in bindings to OUT_DIR on docs.rs, which has no libclang.
pub fn keep_checked_in() -> Result<(), String> {
    let out = variable("OUT_DIR")?;
    println!("cargo::rerun-if-changed=src");
    for name in ["bindings.rs", "testing.rs", "comm.rs"] {
        std::fs::copy(Path::new("src").join(name), Path::new(&out).join(name))
            .map_err(|e| format!("src/{name}: {e}"))?;
    }
    Ok(())
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
        // bindgen's build script makes cargo watch the other variables that bindgen reads.
        println!("cargo::rerun-if-env-changed=CLANG_PATH");
        for read in ["generate.rs", "wrapper.h"] {
            println!("cargo::rerun-if-changed={read}");
        }
        let out = variable("OUT_DIR")?;
        let write = |name: &str, made: String| {
            std::fs::write(Path::new(&out).join(name), made).map_err(|e| format!("{name}: {e}"))
        };
        #[cfg(feature = "testing")]
        write("testing.rs", quietly(|| generate_over(&TESTING, include, &[]))?)?;
        #[cfg(feature = "comm")]
        write("comm.rs", quietly(|| generate_over(&COMM, include, &[]))?)?;
        write("bindings.rs", quietly(|| generate(Path::new("wrapper.h"), include, &[]))?)
    }

    /// Converts a panic to an error, because bindgen panics if it finds no libclang.
    fn quietly(
        make: impl FnOnce() -> Result<String, String> + panic::UnwindSafe,
    ) -> Result<String, String> {
        panic::set_hook(Box::new(|_| ()));
        let made = panic::catch_unwind(make);
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
