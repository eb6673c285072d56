use std::path::Path;

include!("../generate.rs");

fn made(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = Path::new(env!("SYNCBLOB_INCLUDE"));
    generate(&root.join("wrapper.h"), include, arguments).expect("bindgen")
}

fn made_over(name: &str, headers: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(name).join("include");
    let include = format!("-I{}", folder.display());
    generate_over(headers, Path::new(env!("SYNCBLOB_INCLUDE")), &[&include]).expect("bindgen")
}

fn kept(name: &str, made: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
    if std::env::var_os("SYNCBLOB_UPDATE_BINDINGS").is_some() {
        std::fs::write(&path, made).expect("write the bindings");
    }
    std::fs::read_to_string(&path).expect("read the bindings")
}

fn compare(made: &str, kept: &str, what: &str) {
    let differing = made.lines().zip(kept.lines()).position(|(a, b)| a != b);
    assert!(
        made == kept,
        "the bindings are not {what} (first differing line: {:?}); \
         run SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-sys",
        differing.map(|line| line + 1)
    );
}

/// `SYNCBLOB_UPDATE_BINDINGS=1 cargo test -p syncblob-sys` updates the checked-in bindings.
#[test]
fn checked_in_bindings_are_what_bindgen_makes_of_the_headers() {
    let made = made(&[]);
    compare(&made, &kept("bindings.rs", &made), "those of the headers");
}

#[test]
fn the_bindings_of_libraries_over_the_core_are_those_of_their_headers() {
    for (name, headers) in [("testing", &TESTING[..]), ("comm", &COMM)] {
        let made = made_over(name, headers);
        compare(&made, &kept(&format!("{name}.rs"), &made), "those of the headers");
    }
}

/// With -ffreestanding, clang does not need the target's C library.
#[test]
fn the_bindings_are_the_same_on_x86_64_and_aarch64() {
    let [x86_64, aarch64] = ["x86_64", "aarch64"]
        .map(|arch| made(&[&format!("--target={arch}-unknown-linux-gnu"), "-ffreestanding"]));
    compare(&aarch64, &x86_64, "the same on both");
}

#[cfg(feature = "buildtime_bindgen")]
#[test]
fn bindings_made_while_building_are_the_checked_in_ones() {
    let built = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    compare(built, include_str!("../src/bindings.rs"), "what the build made");
}

#[test]
fn the_linked_library_is_of_the_version_of_the_headers() {
    // SAFETY: the function takes no argument and reads a constant.
    let version = unsafe { syncblob_sys::sb_version() };
    assert_eq!(version, syncblob_sys::SB_VERSION_NUMBER);
}

#[test]
fn the_frozen_structs_have_their_promised_size() {
    assert_eq!(size_of::<syncblob_sys::sb_error>(), 256);
    assert_eq!(syncblob_sys::SB_ERR_MALFORMED, -100);
    assert_eq!(syncblob_sys::SB_ERR_INTERNAL, -901);
}

/// An installed library may have other features than this crate.
#[cfg(not(feature = "system"))]
#[test]
fn the_features_match_those_of_the_library() {
    // SAFETY: the function takes no argument and returns a constant.
    let features = unsafe { syncblob_sys::sb_features() };
    let openblas = features & syncblob_sys::SB_FEATURE_OPENBLAS != 0;
    assert_eq!(openblas, cfg!(feature = "openblas"));
    assert_ne!(features & syncblob_sys::SB_FEATURE_CUDA, 0);
}

#[test]
fn the_library_computes() {
    use std::ptr::null_mut;
    use syncblob_sys as sys;

    let (mut blob, mut data, mut sum) = (null_mut(), null_mut(), 0.0);
    // SAFETY: every pointer is to a live variable, or NULL where the headers allow it; the blob's
    // data has three floats.
    unsafe {
        let shape = [3_i64];
        let dtype = sys::SB_DTYPE_F32;
        let err = null_mut();
        assert_eq!(
            sys::sb_blob_create_shaped(null_mut(), dtype, shape.as_ptr(), 1, &mut blob, err),
            0
        );
        assert_eq!(sys::sb_blob_mutable_cpu(blob, sys::SB_DATA, &mut data, err), 0);
        std::slice::from_raw_parts_mut(data.cast::<f32>(), 3).copy_from_slice(&[1.5, -2.0, 4.0]);
        assert_eq!(sys::sb_blob_scale(blob, sys::SB_DATA, 2.0, err), 0);
        assert_eq!(sys::sb_blob_asum(blob, sys::SB_DATA, &mut sum, err), 0);
        sys::sb_blob_destroy(blob);
    }
    assert_eq!(sum, 15.0);
}
