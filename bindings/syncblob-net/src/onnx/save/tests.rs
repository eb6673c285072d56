use std::fs;

use crate::{ErrorKind, Net, NetOptions, Onnx, OnnxOptions};

fn onnx() -> Onnx {
    let text =
        b"input: 'a' input_shape { dim: 2 } layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' }";
    let net = Net::from_prototxt(text, &NetOptions::default()).unwrap();
    net.to_onnx(&OnnxOptions::default()).unwrap()
}

#[test]
fn the_size_equals_the_number_of_bytes() {
    let onnx = onnx();
    assert_eq!(onnx.size(), onnx.to_bytes().unwrap().len() as u64);
}

#[test]
fn saving_leaves_one_file_with_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.onnx");
    for _ in 0..2 {
        onnx().save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), onnx().to_bytes().unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}

#[test]
fn an_error_contains_the_path() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path().to_owned(), folder.path().join("no/net.onnx")] {
        let error = onnx().save(&place).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().starts_with(&format!("{place:?}: ")), "{error}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
