//! Compiles the C loops of the benchmark, and adds the serial OpenBLAS to the run path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/loops.c");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    if std::env::var_os("DOCS_RS").is_some() {
        return;
    }
    let include = std::env::var_os("DEP_SYNCBLOB_INCLUDE").expect("syncblob-sys gives its headers");
    let mut build = cc::Build::new();
    build.cargo_metadata(false); // only the benchmark links it: see main.rs
    build.std("c17").include(include).file("src/loops.c").compile("loops");
    println!("cargo::rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap());
    if let Ok(folder) = std::env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
            println!("cargo::rustc-link-arg-tests=-Wl,-rpath,{folder}");
        }
    }
}
