//! Tests that the archive exports no symbol to other copies of syncblob in the same process.

use std::path::Path;
use std::process::Command;

/// Returns (visibility, name) of a defined global symbol.
fn defined(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace().skip(4);
    let (binding, visibility) = (words.next()?, words.next()?);
    let (section, name) = (words.next()?, words.next()?);
    (matches!(binding, "GLOBAL" | "WEAK") && section != "UND").then_some((visibility, name))
}

#[test]
fn every_symbol_of_the_bundled_library_is_hidden() {
    let archive = Path::new(env!("SYNCBLOB_INCLUDE")).with_file_name("lib/libsyncblob.a");
    if !cfg!(target_os = "linux") || !archive.is_file() {
        println!("skipped: no bundled library in ELF: {}", archive.display());
        return;
    }
    let Ok(listed) = Command::new("readelf").arg("-sW").arg(&archive).output() else {
        println!("skipped: readelf is not installed");
        return;
    };
    let table = String::from_utf8_lossy(&listed.stdout);
    let symbols: Vec<_> = table.lines().filter_map(defined).collect();
    assert!(symbols.iter().any(|(_, name)| *name == "sb_blob_create"), "{table}");
    let exported: Vec<_> = symbols.iter().filter(|(seen, _)| *seen != "HIDDEN").collect();
    assert!(exported.is_empty(), "{exported:?}");
}
