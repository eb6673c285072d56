//! Adds the serial OpenBLAS to the run path, because the loader prefers a threaded OpenBLAS.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-tests=-Wl,-rpath,{folder}");
            println!("cargo::rustc-link-arg-examples=-Wl,-rpath,{folder}");
        }
    }
}
