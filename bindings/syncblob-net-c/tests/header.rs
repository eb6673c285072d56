//! Tests that the checked-in header equals the header that cbindgen generates from the crate.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn made() -> String {
    let config = cbindgen::Config::from_root_or_default(root());
    let sources = ["types", "net", "onnx"].map(|name| root().join(format!("src/{name}.rs")));
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources.iter().fold(builder, cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.generate().expect("cbindgen").write(&mut header);
    in_our_style(&String::from_utf8(header).expect("a header of UTF-8"))
}

fn in_our_style(header: &str) -> String {
    let (top, rest) = header.split_at(header.find("#ifndef").expect("a guard"));
    let mut styled = top.to_owned();
    let mut lines = rest.lines().peekable();
    while let Some(line) = lines.next() {
        let end = match (line.trim_start(), lines.peek().map(|next| next.trim_start())) {
            ("/**", Some(_)) | (_, Some("*/")) => " ",
            ("SB_API", Some("SB_MUST_CHECK")) => " ",
            _ => "\n",
        };
        let joined = styled.ends_with(' ');
        let line = if joined { line.trim_start() } else { line };
        let line = if joined { line.strip_prefix("* ").unwrap_or(line) } else { line };
        match line.starts_with("typedef struct") {
            true => styled.push_str(line),
            false => styled.push_str(&line.replace("struct sb_", "sb_")),
        }
        styled.push_str(end);
    }
    styled
}

/// `SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-net-c` updates the header.
#[test]
fn the_header_equals_that_of_cbindgen() {
    let path = root().join("include/syncblob/net.h");
    let made = made();
    if std::env::var_os("SYNCBLOB_UPDATE_BINDINGS").is_some() {
        std::fs::write(&path, &made).expect("write the header");
    }
    let stored = std::fs::read_to_string(&path).expect("read the header");
    let differing = made.lines().zip(stored.lines()).position(|(a, b)| a != b);
    assert!(
        made == stored,
        "the header is not what cbindgen makes (first differing line: {:?}); \
         run SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-net-c",
        differing.map(|line| line + 1)
    );
}
