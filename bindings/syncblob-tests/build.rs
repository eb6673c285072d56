use std::env;
use std::path::{Path, PathBuf};

fn make_backend(include: &Path) {
    let library = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("backend.so");
    let mut link = cc::Build::new().cargo_metadata(false).get_compiler().to_command();
    link.args(["-std=c17", "-shared", "-fPIC", "src/backend.c", "-I"]).arg(include);
    assert!(link.arg("-o").arg(&library).status().unwrap().success(), "{link:?}");
    println!("cargo::rerun-if-changed=src/backend.c");
    println!("cargo::rustc-env=BACKEND_LIBRARY={}", library.display());
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/loops.c");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    let include = env::var_os("DEP_SYNCBLOB_INCLUDE").expect("syncblob-sys sets the path");
    make_backend(Path::new(&include));
    let mut build = cc::Build::new();
    build.cargo_metadata(false); // only the benchmark links this library: see main.rs
    build.std("c17").include(include).file("src/loops.c").compile("loops");
    println!("cargo::rustc-link-search=native={}", env::var("OUT_DIR").unwrap());
    if let Ok(folder) = env::var("DEP_SYNCBLOB_RUN_PATH") {
        if !folder.is_empty() {
            println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
            println!("cargo::rustc-link-arg-tests=-Wl,-rpath,{folder}");
        }
    }
}
