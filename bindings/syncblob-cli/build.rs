//! Adds the serial OpenBLAS to the run path, because the loader prefers a threaded OpenBLAS.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(root) = std::env::var("DEP_SYNCBLOB_ROOT") {
        println!("cargo::rustc-env=SYNCBLOB_ROOT={root}"); // tests/devices.rs links the C library
    }
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
        }
    }
}
