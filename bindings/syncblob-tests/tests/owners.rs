use std::io::Write;

use bytes::Bytes;
use memmap2::Mmap;
use syncblob::{Blob, Context, Model, Part, Payload, Side, Storage};

fn words(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[test]
fn bytes_are_shared_and_stay_unchanged() {
    let bytes = Bytes::from(words(&[1.0, 2.0]));
    let mut blob = Blob::<f32>::from_ne_bytes_or_copy([2], bytes.clone()).unwrap();
    blob.data_mut().unwrap()[0] = 9.0;
    assert_eq!((blob.data().unwrap(), &bytes[..]), (&[9.0, 2.0][..], &words(&[1.0, 2.0])[..]));
}

#[test]
fn a_mapped_file_is_read_in_place_and_never_written() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&words(&[1.0, 2.0, 3.0])).unwrap();
    // SAFETY: no code changes the file.
    let map = unsafe { Mmap::map(file.as_file()) }.unwrap();
    let start = map.as_ptr();
    let context = Context::builder().device("sim:0").build().unwrap();
    let mut blob = Blob::<f32>::in_context(&context).from_ne_bytes([3], map).unwrap();
    assert_eq!(blob.data().unwrap().as_ptr().cast(), start);
    blob.gpu_mut_ptr(Part::Data).unwrap();
    assert_eq!(blob.data().unwrap(), [1.0, 2.0, 3.0]);
    assert_ne!(blob.memory(Part::Data).unwrap().storage(Side::Host), Storage::ReadOnly);
}

#[test]
fn a_model_keeps_the_owner_of_its_bytes() {
    let mut model = Model::create(syncblob::Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    model.add_blob(layer, &Blob::<f32>::full([2], 1.0).unwrap(), Payload::Data).unwrap();
    let bytes = Bytes::from(model.to_bytes().unwrap());
    let model = Model::from_bytes(bytes).unwrap();
    assert_eq!(model.blob((0, 0)).unwrap().load::<f32>().unwrap().data().unwrap(), [1.0; 2]);
}
