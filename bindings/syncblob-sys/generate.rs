// Runs bindgen. The build script and tests/bindings.rs include this file.

fn generate(
    wrapper: &std::path::Path,
    include: &std::path::Path,
    arguments: &[&str],
) -> Result<String, String> {
    let wrapper = wrapper
        .to_str()
        .ok_or("the path of wrapper.h is not UTF-8")?;
    bindings_of(
        builder(include, arguments)
            .header(wrapper)
            .allowlist_item("(sb|SB)_.*"),
    )
}

#[allow(dead_code)] // unused if the build script does not link this library
const TESTING: [&str; 1] = ["sim.h"];
#[allow(dead_code)]
const COMM: [&str; 5] = ["comm.h", "comm_engine.h", "nccl.h", "reducer.h", "sim_comm.h"];

/// Omits the core's types, because the core's bindings declare them.
#[allow(dead_code)]
fn generate_over(
    headers: &[&str],
    include: &std::path::Path,
    arguments: &[&str],
) -> Result<String, String> {
    bindings_of(
        builder(include, arguments)
            .header_contents("over.h", &included(headers))
            .allowlist_file(format!(".*/syncblob/({})", headers.join("|").replace('.', "\\.")))
            .allowlist_recursively(false)
            .raw_line("use crate::*;"),
    )
}

fn included(headers: &[&str]) -> String {
    headers
        .iter()
        .map(|header| format!("#include <syncblob/{header}>\n"))
        .collect()
}

fn bindings_of(builder: bindgen::Builder) -> Result<String, String> {
    builder
        .generate()
        .map(|bindings| type_constants(&bindings.to_string()))
        .map_err(|e| e.to_string())
}

fn builder(include: &std::path::Path, arguments: &[&str]) -> bindgen::Builder {
    bindgen::Builder::default()
        .clang_arg(format!("-I{}", include.display()))
        .clang_arg("-std=c11")
        .clang_args(arguments)
        // A newer library may return unknown values, which are undefined behaviour in a Rust enum.
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .merge_extern_blocks(true)
        .sort_semantically(true)
        .derive_default(true)
        .layout_tests(true)
        // The crate contains the headers, whose comments document the functions.
        .generate_comments(false)
        .use_core()
        .rust_target(bindgen::RustTarget::stable(85, 0).expect("a Rust that bindgen knows"))
        .rust_edition(bindgen::RustEdition::Edition2021)
        .formatter(bindgen::Formatter::Prettyplease)
}

/// bindgen writes this line above the checks of a struct's layout.
const LAYOUTS: &str = "#[allow(clippy::unnecessary_operation, clippy::identity_op)]";

/// Gives constants of unnamed enums the type u32 for flags, and i32 for all others. bindgen numbers
/// its types of unnamed enums, so a new enum would rename these types.
fn type_constants(source: &str) -> String {
    const NUMBERS: [&str; 17] = [
        "OK:", "DATA:", "DIFF:", "STATUS_", "ERR_", "DTYPE_", "HEAD_", "SIDE_", "STORAGE_", "FORMAT_", "LAYER_",
        "SIM_", "FILLER_", "VARIANCE_", "DL_DEVICE_", "COMM_SUM", "COMM_M",
    ];
    let is_number = |name: &str| NUMBERS.iter().any(|prefix| name.starts_with(prefix));
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        if line.starts_with("pub type _bindgen_ty_") {
            continue;
        }
        if line == LAYOUTS {
            out += "#[cfg(target_pointer_width = \"64\")]\n";
        }
        match (
            line.strip_prefix("pub const SB_"),
            line.find(": _bindgen_ty_"),
            line.find(" = "),
        ) {
            (Some(name), Some(colon), Some(equals)) => {
                let kind = if is_number(name) { "i32" } else { "u32" };
                out += &format!("{}: {kind}{}", &line[..colon], &line[equals..]);
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out
}
