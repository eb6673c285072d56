//! The checked-in bindings are those of the headers.

use std::path::Path;

include!("../generate.rs");

/// `SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-sys` writes them anew.
#[test]
fn checked_in_bindings_are_what_bindgen_makes_of_the_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = Path::new(env!("SYNCBLOB_INCLUDE"));
    let made = generate(&root.join("wrapper.h"), include).expect("bindgen");
    let path = root.join("src/bindings.rs");
    if std::env::var_os("SYNCBLOB_UPDATE_BINDINGS").is_some() {
        std::fs::write(&path, &made).expect("write src/bindings.rs");
    }
    let kept = std::fs::read_to_string(&path).expect("read src/bindings.rs");
    let differing = made.lines().zip(kept.lines()).position(|(a, b)| a != b);
    assert!(
        made == kept,
        "src/bindings.rs is not what the headers say (first differing line: {:?}); \
         run SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-sys",
        differing.map(|line| line + 1)
    );
}

#[test]
fn the_linked_library_is_of_the_version_of_the_headers() {
    // SAFETY: takes no argument and reads a constant.
    let version = unsafe { syncblob_sys::sb_version() };
    assert_eq!(version, syncblob_sys::SB_VERSION_NUMBER);
}

#[test]
fn the_frozen_structs_have_their_promised_size() {
    assert_eq!(size_of::<syncblob_sys::sb_error>(), 256);
    assert_eq!(syncblob_sys::SB_ERR_MALFORMED, -100);
    assert_eq!(syncblob_sys::SB_ERR_INTERNAL, -901);
}
