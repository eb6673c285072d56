//! Builds the C library from its sources, or finds an installed one.
//!
//! Reads SYNCBLOB_NO_VENDOR and, through the crates pkg-config and cc, their
//! usual variables (PKG_CONFIG_PATH, CC, CFLAGS, ...). DOCS_RS: documentation
//! needs no library, so none is looked for.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use pkg_config::Library;

#[cfg(feature = "buildtime_bindgen")]
include!("generate.rs");

/// Oldest protobuf-c whose generated code and run time we know.
const PROTOBUF_C: &str = "1.3";

fn main() {
    if let Err(message) = run() {
        // One line; cargo shows it as the crate's error and stops.
        println!("cargo::error={}", message.replace('\n', " "));
    }
}

fn run() -> Result<(), String> {
    for name in ["SYNCBLOB_NO_VENDOR", "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("DOCS_RS").is_some() {
        return keep_checked_in_bindings();
    }
    check_target()?;
    let include = if wants_system() { link_installed()? } else { build_bundled()? };
    println!("cargo::metadata=INCLUDE={}", include.display());
    println!("cargo::rustc-env=SYNCBLOB_INCLUDE={}", include.display());
    write_bindings(&include)
}

fn check_target() -> Result<(), String> {
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if os == "linux" && (arch == "x86_64" || arch == "aarch64") {
        return Ok(());
    }
    Err(format!("syncblob runs on Linux on x86_64 and aarch64, not on {os} on {arch}"))
}

fn wants_system() -> bool {
    let forced = env::var("SYNCBLOB_NO_VENDOR").is_ok_and(|v| !v.is_empty() && v != "0");
    forced || cfg!(feature = "system")
}

// --- an installed library ---------------------------------------------------

/// Links what pkg-config finds. Returns its include folder.
fn link_installed() -> Result<PathBuf, String> {
    let (version, next) = (env!("CARGO_PKG_VERSION"), next_breaking_version());
    let library = pkg_config::Config::new()
        .range_version(version..next.as_str())
        .probe("syncblob")
        .map_err(|_| {
            format!(
                "no installed syncblob from {version} on and below {next} was found by pkg-config; install \
                 it, set PKG_CONFIG_PATH to the folder of its syncblob.pc, or unset \
                 SYNCBLOB_NO_VENDOR and the feature `system` to build the bundled sources"
            )
        })?;
    println!("cargo::metadata=VERSION={}", library.version);
    let has_header = |dir: &&PathBuf| dir.join("syncblob/syncblob.h").is_file();
    let found = library.include_paths.iter().find(has_header).cloned();
    // pkg-config drops the folders that the compiler searches anyway.
    found.or_else(include_folder_of_pc).ok_or_else(|| {
        "syncblob.pc was found but not syncblob/syncblob.h; install its headers".to_string()
    })
}

fn include_folder_of_pc() -> Option<PathBuf> {
    let dir = PathBuf::from(pkg_config::get_variable("syncblob", "includedir").ok()?);
    dir.join("syncblob/syncblob.h").is_file().then_some(dir)
}

/// Versions 0.x may break with every x.
fn next_breaking_version() -> String {
    let minor: u32 = env!("CARGO_PKG_VERSION_MINOR").parse().unwrap_or(0);
    let major: u32 = env!("CARGO_PKG_VERSION_MAJOR").parse().unwrap_or(0);
    match major {
        0 => format!("0.{}", minor + 1),
        _ => format!("{}", major + 1),
    }
}

// --- the bundled sources -----------------------------------------------------

/// Compiles and links the sources. Returns the include folder.
fn build_bundled() -> Result<PathBuf, String> {
    let root = source_root()?;
    let sources = source_list(&root)?;
    let protobuf_c = probe("libprotobuf-c", PROTOBUF_C, "libprotobuf-c-dev")?;
    let openblas = probe_openblas()?;
    let include = root.join("c/include");

    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    compile(&root, &sources, &[&protobuf_c, &openblas])?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=syncblob");
    link(&openblas);
    link(&protobuf_c);
    for system in ["pthread", "dl", "m"] {
        println!("cargo::rustc-link-lib={system}");
    }
    for watched in ["c/sources.txt", "c/src", "c/include", "proto"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    println!("cargo::metadata=ROOT={}", out.display());
    println!("cargo::metadata=RUN_PATH={}", run_path(&openblas));
    println!("cargo::metadata=VERSION={}", env!("CARGO_PKG_VERSION"));
    Ok(include)
}

/// The folder that holds `c` and `proto`: this crate's own, where they are
/// links, or the repository's, where a checkout made no links.
fn source_root() -> Result<PathBuf, String> {
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let candidates = [here.clone(), here.join("../..")];
    candidates
        .into_iter()
        .find(|dir| dir.join("c/sources.txt").is_file() && dir.join("proto").is_dir())
        .ok_or_else(|| {
            format!(
                "the C sources are not in {}: take the crate from a checkout with symbolic links, \
                 or use the installed library with SYNCBLOB_NO_VENDOR=1",
                here.display()
            )
        })
}

/// The paths of c/sources.txt, which CMake reads too.
fn source_list(root: &Path) -> Result<Vec<PathBuf>, String> {
    let list = root.join("c/sources.txt");
    let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let paths = text.lines().map(str::trim);
    Ok(paths
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| root.join(line))
        .collect())
}

fn compile(root: &Path, sources: &[PathBuf], libraries: &[&Library]) -> Result<(), String> {
    let mut build = cc::Build::new();
    build
        .std("c17")
        .define("_GNU_SOURCE", None)
        .flag("-fvisibility=hidden")
        .include(root.join("c/include"))
        .include(root.join("c/src"))
        .include(root.join("proto"))
        .includes(libraries.iter().flat_map(|library| &library.include_paths))
        .warnings(false)
        .cargo_metadata(false);
    let generated = root.join("proto/syncblob.pb-c.c");
    let (messages, ours): (Vec<_>, Vec<_>) = sources
        .iter()
        .chain([&generated])
        .partition(|path| path.ends_with("proto/syncblob.pb-c.c"));
    // Generated code checks its arguments with assert, which would abort.
    let mut messages_build = build.clone();
    messages_build.define("NDEBUG", None).file(messages[0]);
    let compiler = |e: cc::Error| match e.to_string() {
        e if e.contains("ToolNotFound") => {
            "no C compiler was found; install gcc or clang, or set CC".to_string()
        }
        e => format!("the C sources do not compile: {e}"),
    };
    let objects = messages_build.try_compile_intermediates().map_err(compiler)?;
    build.files(ours).objects(objects).try_compile("syncblob").map_err(compiler)
}

fn probe(name: &str, version: &str, package: &str) -> Result<Library, String> {
    pkg_config::Config::new().atleast_version(version).cargo_metadata(false).probe(name).map_err(
        |e| match e {
            pkg_config::Error::Command { .. } => "pkg-config is missing; install pkg-config".into(),
            _ => {
                format!("{name} {version} or newer was not found by pkg-config; install {package}")
            }
        },
    )
}

/// OpenBLAS, its serial build where Debian's layout has one: the threaded one
/// starts threads before `main`. A PKG_CONFIG_PATH that is set goes first.
fn probe_openblas() -> Result<Library, String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let serial = format!("/usr/lib/{arch}-linux-gnu/openblas-serial/pkgconfig");
    if Path::new(&serial).is_dir() && env::var("HOST") == env::var("TARGET") {
        let path = match env::var("PKG_CONFIG_PATH") {
            Ok(own) if !own.is_empty() => format!("{own}:{serial}"),
            _ => serial,
        };
        env::set_var("PKG_CONFIG_PATH", path);
    }
    probe("openblas", "0.3", "libopenblas-serial-dev (or libopenblas-dev)")
}

/// The folder of a serial OpenBLAS that the loader would not look into: both
/// of Debian's builds have one SONAME, and without it the threaded one is found.
fn run_path(openblas: &Library) -> String {
    let mut folders = openblas.link_paths.iter();
    let serial = folders.find(|dir| dir.ends_with("openblas-serial"));
    serial.map(|dir| dir.display().to_string()).unwrap_or_default()
}

fn link(library: &Library) {
    for dir in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
    for name in &library.libs {
        println!("cargo::rustc-link-lib={name}");
    }
}

// --- the bindings ------------------------------------------------------------

/// For the feature `buildtime_bindgen` where there is no libclang.
fn keep_checked_in_bindings() -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let copied = fs::copy("src/bindings.rs", out.join("bindings.rs"));
    copied.map(|_| ()).map_err(|e| format!("src/bindings.rs: {e}"))
}

#[cfg(not(feature = "buildtime_bindgen"))]
fn write_bindings(_include: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(feature = "buildtime_bindgen")]
fn write_bindings(include: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed=generate.rs");
    println!("cargo::rerun-if-changed=wrapper.h");
    let made = generate(Path::new("wrapper.h"), include)?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("bindings.rs"), made).map_err(|e| e.to_string())
}
