use std::ptr::NonNull;

use dlpark::ffi::Flags;
use dlpark::prelude::{SafeManagedTensor, SafeManagedTensorVersioned};
use syncblob::half::{bf16, f16};
use syncblob::ndarray::{Array2, ArrayViewD};
use syncblob::{
    Blob, BlobAny, Context, Dlpack, Dtype, ErrorKind, LegacyDlpack, Part, Side, Storage,
};

fn given(tensor: SafeManagedTensorVersioned) -> Dlpack {
    // SAFETY: the tensor is valid, and this is its only owner.
    unsafe { Dlpack::from_raw(tensor.into_non_null().cast()) }.unwrap()
}

fn taken(tensor: Dlpack) -> SafeManagedTensorVersioned {
    // SAFETY: both types are DLPack's C struct.
    unsafe { SafeManagedTensorVersioned::from_non_null(tensor.into_raw().cast()) }
}

fn table() -> Array2<f32> {
    Array2::from_shape_fn((3, 4), |(i, j)| (i * 10 + j) as f32)
}

#[test]
fn an_array_of_dlpark_becomes_a_blob_without_a_copy() {
    let array = table();
    let (start, copy) = (array.as_ptr(), array.clone().into_dyn());
    let tensor = SafeManagedTensorVersioned::with_flags(array, Flags::empty()).unwrap();
    let mut blob = Blob::<f32>::from_dlpack(given(tensor)).unwrap();
    assert_eq!(
        (blob.data().unwrap().as_ptr(), blob.view(Part::Data).unwrap()),
        (start, copy.view())
    );
    blob.data_mut().unwrap()[0] = 5.0;
    assert_eq!(blob.data().unwrap().as_ptr(), start);
}

#[test]
fn the_read_only_flag_of_dlpark_is_kept() {
    let tensor = SafeManagedTensorVersioned::with_flags(table(), Flags::READ_ONLY).unwrap();
    let blob = Blob::<f32>::from_dlpack(given(tensor)).unwrap();
    assert_eq!(blob.memory(Part::Data).unwrap().storage(Side::Host), Storage::ReadOnly);
    let tensor = taken(blob.to_dlpack(Part::Data, Side::Host).unwrap());
    assert!(tensor.read_only());
    drop(tensor);
    assert!(!taken(blob.into_dlpack(Side::Host).unwrap()).read_only());
}

#[test]
fn dlpark_views_a_blob_as_an_array_without_a_copy() {
    let blob = Blob::<f64>::from_fn([2, 3], |i| i as f64).unwrap();
    let tensor = taken(blob.to_dlpack(Part::Data, Side::Host).unwrap());
    let view = ArrayViewD::<f64>::try_from(&tensor).unwrap();
    assert_eq!(
        (view.as_ptr(), &view),
        (blob.data().unwrap().as_ptr(), &blob.view(Part::Data).unwrap())
    );
    drop(blob);
    assert_eq!(view[[1, 2]], 5.0);
}

#[test]
fn tensors_that_no_blob_can_use_are_refused() {
    let transposed = SafeManagedTensorVersioned::new(table().reversed_axes()).unwrap();
    let refused = Blob::<f32>::from_dlpack(given(transposed)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    let truths = SafeManagedTensorVersioned::new(vec![true, false]).unwrap();
    assert_eq!(
        BlobAny::from_dlpack(&Context::host(), given(truths)).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn every_element_type_has_the_same_number_in_dlpark() {
    macro_rules! same {
        ($type:ty, $value:expr) => {
            let values: Vec<$type> = vec![$value; 2];
            let tensor = SafeManagedTensorVersioned::new(values).unwrap();
            let blob = Blob::<$type>::from_dlpack(given(tensor)).unwrap();
            assert_eq!(blob.data().unwrap(), [$value; 2]);
        };
    }
    same!(f32, 1.5);
    same!(f64, 1.5);
    same!(i32, -3);
    same!(u32, 3);
    same!(f16, f16::from_f32(1.5));
    same!(bf16, bf16::from_f32(1.5));
    let tensor = SafeManagedTensorVersioned::new(vec![0.5_f64]).unwrap();
    assert_eq!(BlobAny::from_dlpack(&Context::host(), given(tensor)).unwrap().dtype(), Dtype::F64);
}

#[test]
fn tensors_without_a_version_are_made_and_read() {
    let array = table();
    let start = array.as_ptr();
    let tensor = SafeManagedTensor::new(array).unwrap().into_non_null();
    // SAFETY: the tensor is valid, and this is its only owner.
    let tensor = unsafe { LegacyDlpack::from_raw(tensor.cast()) };
    let blob = Blob::<f32>::from_dlpack(tensor).unwrap();
    let tensor: NonNull<_> = blob.into_legacy_dlpack(Side::Host).unwrap().into_raw();
    // SAFETY: both types are DLPack's C struct.
    let tensor = unsafe { SafeManagedTensor::from_non_null(tensor.cast()) };
    let view = ArrayViewD::<f32>::try_from(&tensor).unwrap();
    assert_eq!((view.as_ptr(), view[[2, 3]]), (start, 23.0));
}
