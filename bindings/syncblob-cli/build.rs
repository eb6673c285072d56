//! Adds the serial OpenBLAS's folder to the run path: if the threaded OpenBLAS is installed too,
//! the loader would find that one first.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
        }
    }
}
