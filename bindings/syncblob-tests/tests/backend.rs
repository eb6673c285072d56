use std::{fs, io};

use syncblob::{load_backend, Blob, Context, ErrorKind, Head, Part, Result};

const LIBRARY: &str = env!("BACKEND_LIBRARY");

#[test]
fn a_loaded_backend_opens_by_its_name() {
    let open = || Context::builder().device("loaded:2").build();
    let unknown = open().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unsupported);
    assert!(unknown.message().contains("sb_backend_load"), "{unknown}");
    for _ in 0..2 {
        // SAFETY: the library was made for this version.
        assert_eq!(unsafe { load_backend(LIBRARY) }.unwrap(), "loaded");
    }
    let context = open().unwrap();
    assert_eq!(context.device(), "loaded:2");
    let mut blob = Blob::<f32>::in_context(&context).from_slice([2], &[1.0, 2.0]).unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap();
    assert_eq!(blob.memory(Part::Data).unwrap().head(), Head::AtGpu);
    assert_eq!(blob.data().unwrap(), [1.0, 2.0]);
}

fn refused(path: &str) -> Result<&'static str> {
    // SAFETY: the loader refuses the file before it runs any of the file's code.
    unsafe { load_backend(path) }
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let missing = refused("missing/backend.so").unwrap_err();
    assert_eq!(io::Error::from(missing).kind(), io::ErrorKind::NotFound);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backend.so");
    fs::write(&path, "not a library").unwrap();
    let error = refused(path.to_str().unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*path)));
    assert_eq!(refused("a\0b").unwrap_err().kind(), ErrorKind::InvalidArgument);
}
