use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use syncblob::{Blob, Format, Model, Payload};

use crate::{ErrorKind, Net, NetOptions, Onnx, OnnxOptions};

const TEXT: &[u8] = b"input: 'a' input_shape { dim: 1 dim: 2 } \
    layer { name: 'fc' type: 'InnerProduct' bottom: 'a' top: 'b' \
            inner_product_param { num_output: 3 bias_term: false } }";

fn onnx(prototxt: &Path, model: &Path) -> Onnx {
    let mut made = Model::create(Format::Caffemodel).unwrap();
    let layer = made.add_layer("fc", "InnerProduct").unwrap();
    let blob = Blob::<f32>::full([3, 2], 0.5).unwrap();
    made.add_blob(layer, &blob, Payload::Data).unwrap();
    made.save(model).unwrap();
    let opened = Arc::new(Model::open(model).unwrap());
    let net = Net::open(Some(TEXT), Some(opened), &NetOptions::default()).unwrap();
    net.with_sources(Some(prototxt), Some(model)).to_onnx(&OnnxOptions::default()).unwrap()
}

#[test]
fn each_write_contains_the_digests_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let [prototxt, model] = ["a.prototxt", "a.caffemodel"].map(|name| folder.path().join(name));
    fs::write(&prototxt, TEXT).unwrap();
    let onnx = onnx(&prototxt, &model);
    let digests = [&prototxt, &model].map(|path| blake3::hash(&fs::read(path).unwrap()).to_hex());
    for _ in 0..2 {
        let bytes = onnx.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, onnx.size());
        for digest in &digests {
            assert!(bytes.windows(digest.len()).any(|part| part == digest.as_bytes()));
        }
    }
}

/// The digest of the whole sparse file would take hours.
#[test]
fn a_failing_writer_stops_the_digests() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.prototxt");
    File::create(&huge).unwrap().set_len(4 << 40).unwrap();
    let error = onnx(&huge, &folder.path().join("a.caffemodel")).write(Full).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_model_that_changes_after_its_weights_are_read_is_an_error() {
    struct Changing<'a>(&'a Path);
    impl Write for Changing<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.windows(6).any(|part| part == b"blake3") {
                File::options().append(true).open(self.0)?.write_all(b"\0")?;
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("a.caffemodel");
    let error = onnx(&folder.path().join("none"), &model).write(Changing(&model)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Weights);
}
