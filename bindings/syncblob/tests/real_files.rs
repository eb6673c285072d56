//! Tests files that Caffe wrote, in the folder SYNCBLOB_TEST_DATA (by default shared/data).

use std::path::PathBuf;

use syncblob::{Blob, Format, Generation, Model};

fn real_file(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let dir = std::env::var_os("SYNCBLOB_TEST_DATA").unwrap_or(beside.into());
    let path = PathBuf::from(dir).join(name);
    if !path.is_file() {
        eprintln!("not tested: {} is absent; set SYNCBLOB_TEST_DATA", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn a_mean_image_of_legacy_dimensions_is_read() {
    let Some(path) = real_file("mean_cifar10_skywang666.binaryproto") else { return };
    let mean = Blob::<f32>::read_file(path).unwrap();
    assert_eq!(mean.shape(), [1, 3, 32, 32]);
    assert!(mean.data().unwrap().iter().all(|value| (0.0..256.0).contains(value)));
}

#[test]
fn a_model_of_v1_layers_is_read_and_saved_unchanged() {
    let Some(path) = real_file("cifar10_full_everpeace_iter70000.caffemodel") else { return };
    let model = Model::open(&path).unwrap();
    let conv1 = model.layer_by_name("conv1").unwrap();
    assert_eq!((conv1.generation(), &*conv1.layer_type()), (Generation::V1, "CONVOLUTION"));
    assert_eq!(conv1.blob(0).unwrap().info().shape(), [32, 3, 5, 5]);
    assert_eq!(conv1.blob(0).unwrap().load::<f32>().unwrap().count(), 2400);
    assert!(model.to_bytes().unwrap() == std::fs::read(path).unwrap());
}

#[test]
fn a_solver_state_has_its_history() {
    let Some(path) = real_file("cifar10_quick_skywang666_iter4000.solverstate") else { return };
    let model = Model::open(path).unwrap();
    assert_eq!((model.format(), model.iteration().unwrap()), (Format::Solverstate, 4000));
    assert_eq!(model.blobs().len(), 10);
}
