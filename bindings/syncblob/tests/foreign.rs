#[path = "foreign/kinds.rs"]
mod kinds;

use kinds::kinds;
use syncblob::{Blob, Error, ErrorKind, Format, Model};

fn explains(error: &Error, words: &str) -> bool {
    error.to_string().ends_with(&format!("; this is {words}"))
}

#[test]
fn each_kind_is_named_from_bytes_files_and_readers() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (bytes, words) in kinds() {
        std::fs::write(file.path(), &bytes).unwrap();
        for error in [
            Model::from_bytes(bytes.clone()).unwrap_err(),
            Model::open(file.path()).unwrap_err(),
            Model::open_reader(bytes).unwrap_err(),
        ] {
            assert!(explains(&error, &words), "{error}");
        }
    }
}

#[test]
fn a_net_instead_of_a_mean_file_is_named() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.add_layer("conv", "Convolution").unwrap();
    let error = Blob::<f32>::from_proto(&model.to_bytes().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(explains(&error, "a caffemodel, not a blob such as a mean file"), "{error}");
}
