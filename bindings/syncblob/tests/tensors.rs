#![cfg(feature = "safetensors")]

use std::collections::HashMap;
use std::fs::File;

use memmap2::Mmap;
use syncblob::safetensors::tensor::TensorView;
use syncblob::safetensors::{self, SafeTensors};
use syncblob::{Blob, BlobAny, Context, Dtype, ErrorKind, Part, Safetensors, Side, Storage};

fn host_storage<T: syncblob::Element>(blob: &Blob<T>) -> Storage {
    blob.memory(Part::Data).unwrap().storage(Side::Host)
}

fn of_one<T: syncblob::Element>(name: &str, blob: &Blob<T>) -> Vec<u8> {
    safetensors::serialize([(name, blob.tensor_view().unwrap())], None).unwrap()
}

#[test]
fn a_view_is_the_blobs_own_bytes() {
    let context = Context::builder().device("sim:0").build().unwrap();
    let mut blob =
        Blob::<f32>::in_context(&context).from_slice([2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    blob.diff_mut().unwrap().fill(0.5);
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let view = blob.tensor_view().unwrap();
    assert_eq!((view.shape(), view.dtype()), (&[2, 2][..], safetensors::Dtype::F32));
    assert_eq!(view.data().as_ptr(), blob.data().unwrap().as_ptr().cast());
    assert_eq!(view.data(), [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).as_flattened());
    assert_eq!(
        blob.diff_tensor_view().unwrap().data(),
        [0.5_f32; 4].map(f32::to_le_bytes).concat()
    );
    let scalar = Blob::<i32>::full((), 7).unwrap();
    assert_eq!(scalar.tensor_view().unwrap().data(), 7_i32.to_le_bytes());
    assert_eq!(BlobAny::from(scalar).tensor_view().unwrap().data(), 7_i32.to_le_bytes());
    let empty = Blob::<f64>::zeros([3, 0]).unwrap();
    assert_eq!(empty.tensor_view().unwrap().shape(), [3, 0]);
    let huge = Blob::<f32>::zeros([0, 1_i64 << 40, 1 << 40]).unwrap();
    if let Err(error) = huge.tensor_view() {
        assert_eq!(error.kind(), ErrorKind::SizeOverflow);
    }
}

#[test]
fn a_written_file_is_read_by_safetensors_and_by_this_crate() {
    let weights = Blob::<f64>::from_fn([3, 2], |i| i as f64 / 3.0).unwrap();
    let indices = Blob::<u32>::from_slice([2], &[7, 8]).unwrap();
    let tensors = [("a", weights.tensor_view().unwrap()), ("b", indices.tensor_view().unwrap())];
    let bytes = safetensors::serialize(tensors, None).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("a").unwrap().shape(), [3, 2]);
    assert_eq!(file.tensor("b").unwrap().data(), [7_u32, 8].map(u32::to_le_bytes).as_flattened());
    let again = Safetensors::new(bytes).unwrap();
    assert_eq!(again.blob::<f64>("a").unwrap().data().unwrap(), weights.data().unwrap());
    assert_eq!(again.blob_any("b").unwrap().downcast::<u32>().unwrap().data().unwrap(), [7, 8]);
}

#[test]
fn a_mapped_file_is_used_in_place_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (weight, bias) =
        (Blob::<f32>::from_fn([8, 4], |i| i as f32).unwrap(), Blob::<f64>::full([3], 0.5).unwrap());
    let tensors =
        [("ip.weight", weight.tensor_view().unwrap()), ("ip.bias", bias.tensor_view().unwrap())];
    safetensors::serialize_to_file(tensors, None, &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    // SAFETY: no code changes the file.
    let map = unsafe { Mmap::map(&File::open(&path).unwrap()) }.unwrap();
    let range = map.as_ptr_range();
    let file = Safetensors::new(map).unwrap();
    assert_eq!(file.names(), ["ip.bias", "ip.weight"]); // safetensors stores larger elements first
    assert_eq!((file.shape("ip.weight"), file.shape("x")), (Some(&[8, 4][..]), None));
    assert_eq!(format!("{file:?}"), "Safetensors { tensors: 2, bytes: 152, .. }");
    let mut mapped = file.blob::<f32>("ip.weight").unwrap();
    let other = file.blob::<f64>("ip.bias").unwrap();
    drop(file);
    for (start, storage) in [
        (mapped.data().unwrap().as_ptr().cast::<u8>(), host_storage(&mapped)),
        (other.data().unwrap().as_ptr().cast::<u8>(), host_storage(&other)),
    ] {
        assert!(range.contains(&start) && storage == Storage::ReadOnly);
    }
    assert_eq!(
        (mapped.data().unwrap(), other.data().unwrap()),
        (weight.data().unwrap(), &[0.5; 3][..])
    );
    mapped.scale(Part::Data, 2.0).unwrap();
    assert_eq!(
        (mapped.at(Part::Data, [7, 3]).unwrap(), host_storage(&mapped)),
        (62.0, Storage::Owned)
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn misaligned_tensors_are_copied() {
    struct Shifted(Vec<u64>, usize, usize);
    impl AsRef<[u8]> for Shifted {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: the bytes are those of initialised integers.
            let all =
                unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 8) };
            &all[self.1..self.1 + self.2]
        }
    }
    let bytes = of_one("x", &Blob::<f32>::from_slice([2], &[1.5, 2.5]).unwrap());
    for offset in 0..8 {
        let mut shifted = Shifted(vec![0; bytes.len() / 8 + 2], offset, bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            let (word, shift) = ((i + offset) / 8, (i + offset) % 8 * 8);
            shifted.0[word] |= u64::from_le(u64::from(*byte) << shift);
        }
        let blob = Safetensors::new(shifted).unwrap().blob::<f32>("x").unwrap();
        assert_eq!(blob.data().unwrap(), [1.5, 2.5]);
        let in_place = if offset % 4 == 0 { Storage::ReadOnly } else { Storage::Owned };
        assert_eq!(host_storage(&blob), in_place, "offset {offset}");
    }
}

#[test]
fn every_element_type_is_used_in_place() {
    for dtype in Dtype::ALL {
        let Ok(mut blob) = BlobAny::new(&Context::host(), *dtype) else { continue };
        blob.reshape([3]).unwrap();
        blob.bytes_mut(Part::Data).unwrap().fill(0xfe);
        let file = safetensors::serialize([("t", blob.tensor_view().unwrap())], None).unwrap();
        let read = Safetensors::new(file).unwrap().blob_any("t").unwrap();
        assert_eq!(read.dtype(), *dtype);
        assert_eq!(read.bytes(Part::Data).unwrap(), blob.bytes(Part::Data).unwrap());
        let storage = read.memory(Part::Data).unwrap().storage(Side::Host);
        assert!(matches!(storage, Storage::ReadOnly | Storage::Owned)); // unaligned: copied
    }
    let bytes = Blob::<u8>::from_slice([3], &[0, 1, 255]).unwrap();
    let file = safetensors::serialize([("b", bytes.tensor_view().unwrap())], None).unwrap();
    let file = Safetensors::new(file).unwrap();
    let read = file.blob_any("b").unwrap().downcast::<u8>().unwrap();
    assert_eq!((read.data().unwrap(), host_storage(&read)), (&[0, 1, 255][..], Storage::ReadOnly));
    assert_eq!(file.blob::<i8>("b").unwrap_err().kind(), ErrorKind::DtypeMismatch);
}

#[test]
fn half_precision_needs_its_feature() {
    let halves = TensorView::new(safetensors::Dtype::BF16, vec![1], &[0x80, 0x3f]).unwrap();
    let bytes = safetensors::serialize([("h", halves)], None).unwrap();
    let any = Safetensors::new(bytes).unwrap().blob_any("h");
    #[cfg(feature = "half")]
    assert_eq!(
        any.unwrap().downcast::<syncblob::half::bf16>().unwrap().data().unwrap(),
        [syncblob::half::bf16::ONE]
    );
    #[cfg(not(feature = "half"))]
    assert_eq!(any.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn invalid_files_and_tensors_are_refused() {
    let file = Safetensors::new(of_one("x", &Blob::<f32>::zeros([2]).unwrap())).unwrap();
    assert_eq!(file.blob::<f32>("y").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(file.blob_any("y").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(file.blob::<i32>("x").unwrap_err().kind(), ErrorKind::DtypeMismatch);
    let wide = r#"{"x":{"dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0]}}"#;
    let bytes = [&(wide.len() as u64).to_le_bytes()[..], wide.as_bytes()].concat();
    let wide = Safetensors::new(bytes).unwrap();
    assert_eq!(wide.blob::<u8>("x").unwrap_err().kind(), ErrorKind::SizeOverflow);
    let long = TensorView::new(safetensors::Dtype::C64, vec![1; 33], &[0; 8]).unwrap();
    let axes = TensorView::new(safetensors::Dtype::U32, vec![1; 33], &[0; 4]).unwrap();
    let bytes = safetensors::serialize(HashMap::from([("l", long), ("a", axes)]), None).unwrap();
    let file = Safetensors::new(bytes.clone()).unwrap();
    assert_eq!(file.blob_any("l").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(file.blob_any("a").unwrap_err().kind(), ErrorKind::OverLimit);
    for cut in [0, 7, 20, bytes.len() - 1] {
        let error = Safetensors::new(bytes[..cut].to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{cut} bytes");
    }
}

#[test]
fn names_are_escaped_in_messages() {
    let name = "a\u{1b}[31m\n";
    let long = TensorView::new(safetensors::Dtype::C64, vec![1], &[0; 8]).unwrap();
    let file = Safetensors::new(safetensors::serialize([(name, long)], None).unwrap()).unwrap();
    let error = file.blob::<f32>(name).unwrap_err();
    assert!(error.message().starts_with(r#""a\u{1b}[31m\n" holds C64"#), "{error:?}");
    let error = file.blob_any(name).unwrap_err();
    assert!(error.message().ends_with(r#"the type C64 of "a\u{1b}[31m\n""#), "{error:?}");
    let header = r#"{"x":{"dtype":"\u001b[31m","shape":[],"data_offsets":[0,0]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let error = Safetensors::new(bytes).unwrap_err();
    assert!(!error.message().contains(char::is_control), "{error:?}");
}
