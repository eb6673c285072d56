//! Builds the library from the sources in this crate.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use pkg_config::Library;

use crate::{packages, variable, Linked};

/// The oldest supported version of protobuf-c.
const PROTOBUF_C: &str = "1.3";
/// CMake also reads these lists of sources.
const LISTS: [&str; 2] = [CORE, "cuda/sources.txt"];
/// WASI builds only these sources, because WASI cannot open CUDA's shared libraries.
const CORE: &str = "c/sources.txt";
const HARDENING: &str = "c/hardening.txt";
const MESSAGES: &str = "proto/syncblob.pb-c.c";
const PACKER: &[&str] = if cfg!(feature = "protobuf-c") {
    &[MESSAGES, "c/src/proto/pack_protobuf_c.c"]
} else {
    &["c/src/proto/pack_plain.c"]
};

pub fn build() -> Result<Linked, String> {
    let sources = source_root()?;
    let list = source_list(&sources)?;
    // Find OpenBLAS first: the linker must search OpenBLAS's folder before the general folder.
    let openblas = if cfg!(feature = "openblas") { Some(find_openblas()?) } else { None };
    let protobuf_c = if cfg!(feature = "protobuf-c") { Some(find_protobuf_c()?) } else { None };

    let root = PathBuf::from(variable("OUT_DIR")?);
    let include = root.join("include");
    copy_headers(&sources.join("c/include/syncblob"), &include.join("syncblob"))?;
    let libraries = [protobuf_c.as_ref(), openblas.as_ref()];
    compile(&sources, &list, libraries.into_iter().flatten(), &root.join("lib"))?;
    let system: &[_] = match target_os()?.as_str() {
        "windows" => &["advapi32"],
        "wasi" => &[], // Rust links WASI's C library
        _ => &["pthread", "dl", "m"],
    };
    for library in system {
        println!("cargo::rustc-link-lib={library}");
    }
    watch(&sources, &list);
    Ok(Linked {
        include,
        root,
        version: env!("CARGO_PKG_VERSION").into(),
        run_path: openblas.as_ref().map(packages::run_path).unwrap_or_default(),
    })
}

/// Returns this crate's folder if it contains `c`, `cuda` and `proto`, else the repository's root.
pub fn source_root() -> Result<PathBuf, String> {
    let has_sources = |dir: &Path| {
        LISTS.iter().all(|list| dir.join(list).is_file()) && dir.join("proto").is_dir()
    };
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    if has_sources(&here) {
        return Ok(here);
    }
    let repository = here.join("../..");
    if !has_sources(&repository) {
        return Err(format!(
            "the C sources are not in {}: the crate was packed from a checkout without symbolic \
             links; get another copy, or use the installed library with SYNCBLOB_NO_VENDOR=1",
            here.display()
        ));
    }
    println!(
        "cargo::warning={}/c is not a symbolic link, so that `cargo package` would pack no C \
         sources: check the repository out anew with `git -c core.symlinks=true`",
        here.display()
    );
    Ok(repository)
}

fn source_list(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths: Vec<_> = PACKER.iter().map(|path| root.join(path)).collect();
    let lists = if is_wasi()? { &[CORE][..] } else { &LISTS };
    for list in lists {
        paths.extend(listed(root, &root.join(list))?);
    }
    check_whole(paths)
}

pub fn listed(root: &Path, list: &Path) -> Result<Vec<PathBuf>, String> {
    check_whole(lines(list)?.iter().map(|line| root.join(line)).collect())
}

fn check_whole(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    match paths.iter().find(|path| !path.is_file()) {
        None => Ok(paths),
        Some(missing) => Err(format!("the crate is incomplete: {} is missing", missing.display())),
    }
}

fn lines(list: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(list).map_err(|e| format!("{}: {e}", list.display()))?;
    let listed = text.lines().map(str::trim);
    Ok(listed.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Into::into).collect())
}

/// Makes cargo watch whole folders, so that a new header also causes a build.
fn watch(root: &Path, sources: &[PathBuf]) {
    let folders = sources.iter().filter_map(|path| path.parent()).map(Path::to_path_buf);
    let others = LISTS.iter().chain(&["c/include", "c/src", HARDENING]).map(|path| root.join(path));
    for path in folders.chain(others).collect::<BTreeSet<_>>() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Copies the headers, so that dependent crates find headers and library in one prefix.
fn copy_headers(from: &Path, to: &Path) -> Result<(), String> {
    if to.exists() {
        // Also removes headers that the sources no longer contain.
        fs::remove_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    add_headers(from, to)
}

/// Copies headers to `to`, and keeps other headers there.
pub fn add_headers(from: &Path, to: &Path) -> Result<(), String> {
    let copy = || {
        fs::create_dir_all(to)?;
        for header in fs::read_dir(from)? {
            let header = header?;
            fs::copy(header.path(), to.join(header.file_name()))?;
        }
        Ok(())
    };
    copy().map_err(|e: std::io::Error| format!("{} to {}: {e}", from.display(), to.display()))
}

fn target_os() -> Result<String, String> {
    variable("CARGO_CFG_TARGET_OS")
}

fn is_wasi() -> Result<bool, String> {
    Ok(target_os()? == "wasi")
}

fn compile<'a>(
    root: &Path,
    sources: &[PathBuf],
    libraries: impl Iterator<Item = &'a Library>,
    out: &Path,
) -> Result<(), String> {
    let mut build = new_build(root, out)?;
    build
        .define("SB_EXPERIMENTAL", None)
        // Without this flag, compilers would round the results of fillers and sums differently.
        .flag("-ffp-contract=off")
        .flag("-fno-math-errno") // allows vector instructions
        .include(root)
        .include(root.join("c/include"))
        .include(root.join("c/src"))
        .include(root.join("proto"))
        .includes(libraries.flat_map(|library| &library.include_paths));
    if !is_wasi()? {
        build.define("SYNCBLOB_CUDA", None);
    }
    if cfg!(feature = "openblas") {
        build.define("SYNCBLOB_OPENBLAS", None);
    }
    let (messages, ours): (Vec<_>, Vec<_>) =
        sources.iter().partition(|path| path.ends_with(MESSAGES));
    // Generated code checks arguments with `assert`. NDEBUG removes these checks.
    let mut messages_build = build.clone();
    let objects = messages_build.define("NDEBUG", None).files(messages).try_compile_intermediates();
    build.files(ours).objects(objects.map_err(explain)?).try_compile("syncblob").map_err(explain)
}

pub fn new_build(root: &Path, out: &Path) -> Result<cc::Build, String> {
    let mut build = cc::Build::new();
    build
        .std("c17")
        .define("_GNU_SOURCE", None)
        // Hides the library's functions. If a program exported them, they could replace the
        // functions of another copy of syncblob in the same process.
        .define("SB__STATIC", None)
        .flag("-fvisibility=hidden")
        .warnings(false)
        .out_dir(out);
    if variable("CARGO_CFG_TARGET_POINTER_WIDTH")? == "32" {
        build.define("_FILE_OFFSET_BITS", "64");
    }
    match target_os()?.as_str() {
        // Not hardened: hardened code needs a DLL on Windows.
        // gcc assumes a stack alignment of 32 bytes, but Windows aligns the stack to 16 bytes.
        "windows" => {
            build.flag("-Wa,-muse-unaligned-vector-move");
        }
        // Not hardened: WASI's stack has no return addresses, and its libc has no checked
        // functions.
        "wasi" => {}
        _ => harden(&mut build, root, out)?,
    }
    Ok(build)
}

/// Adds the flags in HARDENING that the compiler supports. CFLAGS come later and take precedence.
fn harden(build: &mut cc::Build, root: &Path, out: &Path) -> Result<(), String> {
    for flag in lines(&root.join(HARDENING))? {
        build.flag_if_supported(flag);
    }
    let compiler = build.try_get_compiler().map_err(explain)?;
    let flags: Vec<_> = compiler.args().iter().map(|flag| flag.to_string_lossy()).collect();
    let optimises =
        flags.iter().rfind(|flag| flag.starts_with("-O")).is_some_and(|flag| flag != "-O0");
    let is_decided =
        |flag: &str| flag.contains("_FORTIFY_SOURCE") || flag.starts_with("-fsanitize");
    if optimises && !flags.iter().any(|flag| is_decided(flag)) {
        if let Some(level) = fortification(out)? {
            build.flag("-U_FORTIFY_SOURCE").define("_FORTIFY_SOURCE", level);
        }
    }
    Ok(())
}

/// Returns the highest level of _FORTIFY_SOURCE for which glibc's headers give no warning.
fn fortification(out: &Path) -> Result<Option<&'static str>, String> {
    let probe = out.join("fortification.c");
    fs::create_dir_all(out)
        .and_then(|()| fs::write(&probe, "#include <string.h>\n"))
        .map_err(|e| format!("{}: {e}", probe.display()))?;
    let is_taken = |level: &&str| {
        let mut build = cc::Build::new();
        build
            .opt_level(2)
            .flag("-Werror")
            .flag("-U_FORTIFY_SOURCE")
            .define("_FORTIFY_SOURCE", *level);
        build.file(&probe).cargo_warnings(false).try_expand().is_ok()
    };
    Ok(["3", "2"].into_iter().find(is_taken))
}

pub fn explain(error: cc::Error) -> String {
    match error.to_string() {
        e if e.starts_with("ToolNotFound") => {
            format!("no C compiler was found ({e}): install gcc or clang, or set CC")
        }
        e => format!("the C sources do not compile: {e}"),
    }
}

fn find_protobuf_c() -> Result<Library, String> {
    packages::find(
        "libprotobuf-c",
        PROTOBUF_C,
        "install libprotobuf-c-dev, or drop the feature `protobuf-c`: the same files are written",
    )
}

/// Prefers Debian's serial OpenBLAS, because the threaded OpenBLAS starts threads before `main`.
fn find_openblas() -> Result<Library, String> {
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    let serial = format!("/usr/lib/{arch}-linux-gnu/openblas-serial/pkgconfig");
    if Path::new(&serial).is_dir() && env::var("HOST") == env::var("TARGET") {
        let path = match env::var("PKG_CONFIG_PATH") {
            Ok(own) if !own.is_empty() => format!("{own}:{serial}"),
            _ => serial,
        };
        env::set_var("PKG_CONFIG_PATH", path);
    }
    packages::find(
        "openblas",
        "0.3",
        "install libopenblas-serial-dev (or libopenblas-dev), or drop the feature `openblas`",
    )
}
