//! Adds the folder of the serial OpenBLAS to the run path. Otherwise, if the threaded OpenBLAS is
//! installed, too, the loader would find the threaded one first.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
        }
    }
}
