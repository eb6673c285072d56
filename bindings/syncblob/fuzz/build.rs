//! Adds the serial OpenBLAS to the run path, as the build script of `syncblob` does.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
        }
    }
}
