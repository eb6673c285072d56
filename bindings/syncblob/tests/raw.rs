use std::ptr;

use syncblob::{
    sys, Blob, BlobAny, Context, ErrorKind, Format, MemoryHandle, Model, OpenOptions, Part, Payload,
};

#[test]
fn a_context_goes_to_c_and_back() {
    let context = Context::builder().device("sim:0").build().unwrap();
    let raw = context.clone().into_raw();
    // SAFETY: `raw` is the reference that `into_raw` returned.
    let again = unsafe { Context::from_raw(raw) };
    assert_eq!(again, context);
    drop(context);
    assert_eq!(again.device(), "sim:0");
    assert!(Context::host().into_raw().is_null());
    // SAFETY: NULL is the built-in context.
    assert_eq!(unsafe { Context::from_raw(ptr::null_mut()) }, Context::host());
}

#[test]
fn a_blob_goes_to_c_and_back() {
    let raw = Blob::<f32>::full([2, 3], 1.5).unwrap().into_raw();
    // SAFETY: the blob has no other owner, and its elements are f32.
    unsafe {
        assert_eq!(
            sys::sb_blob_scale(raw.as_ptr(), sys::SB_DATA, 2.0, ptr::null_mut()),
            sys::SB_OK
        );
        let blob = Blob::<f32>::from_raw(raw);
        assert_eq!((blob.shape(), blob.data().unwrap()), (&[2, 3][..], &[3.0; 6][..]));
        let any = BlobAny::from_raw(blob.into_raw()).unwrap();
        assert_eq!(
            any.bytes(Part::Data).unwrap(),
            [3.0_f32; 6].map(f32::to_ne_bytes).as_flattened()
        );
        assert_eq!(any.bytes(Part::Diff).unwrap(), [0; 24]);
        assert_eq!(any.try_clone().unwrap().downcast::<f32>().unwrap().data().unwrap(), [3.0; 6]);
    }
}

fn sharer(raw: *mut sys::sb_blob) -> Blob<f32> {
    let blob = Blob::<f32>::zeros([2]).unwrap();
    // SAFETY: both blobs are live and have the same shape; no code writes.
    let status = unsafe { sys::sb_blob_share(blob.as_ptr(), sys::SB_DATA, raw, ptr::null_mut()) };
    assert_eq!(status, sys::SB_OK);
    blob
}

#[test]
fn a_share_of_c_code_prevents_writes() {
    let mut lent = Blob::<f32>::zeros([2]).unwrap();
    lent.data_mut().unwrap().fill(1.0);
    let shares_lent = sharer(lent.as_ptr());
    let raw = Blob::<f32>::zeros([2]).unwrap().into_raw();
    let shares_given = sharer(raw.as_ptr());
    // SAFETY: the blob has no other owner, and its elements are f32.
    let given = unsafe { Blob::<f32>::from_raw(raw) };
    for (mut blob, mut other) in [(lent, shares_lent), (given, shares_given)] {
        assert_eq!(blob.data_mut().unwrap_err().kind(), ErrorKind::Shared);
        assert_eq!(blob.update().unwrap_err().kind(), ErrorKind::Shared);
        assert_eq!(other.data_mut().unwrap_err().kind(), ErrorKind::Shared);
        drop(other);
        blob.data_mut().unwrap().fill(2.0);
    }
}

#[test]
fn a_memory_goes_to_c_and_back() {
    let blob = Blob::<u8>::full([4], 7).unwrap();
    let raw = blob.handle(Part::Data).unwrap().into_raw();
    assert!(!blob.is_unique(Part::Data).unwrap());
    // SAFETY: `raw` is the reference that `into_raw` returned.
    let handle = unsafe { MemoryHandle::from_raw(raw) };
    assert_eq!(handle.data().unwrap(), [7; 4]);
    drop(handle);
    assert!(blob.is_unique(Part::Data).unwrap());
}

#[test]
fn a_model_goes_to_c_and_back() {
    let context = Context::builder().build().unwrap();
    let mut model = OpenOptions::new().context(&context).create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    model.add_blob(layer, &Blob::<f32>::zeros([2]).unwrap(), Payload::Data).unwrap();
    model.set_progress(|_, _| panic!("the callback was removed"));
    let raw = model.into_raw();
    // SAFETY: the model has no other owner, and was made in this context.
    let model = unsafe { Model::from_raw(raw, &context) };
    assert_eq!(model.load::<f32>((0, 0)).unwrap().count(), 2);
    assert!(model.to_bytes().unwrap().len() > 10);
}

#[test]
fn a_borrowed_model_still_belongs_to_c() {
    let raw = Model::create(Format::Caffemodel).unwrap().into_raw();
    // SAFETY: the model outlives its borrow and does not change.
    unsafe {
        let borrowed = Model::borrow_raw(raw, &Context::host());
        assert_eq!((borrowed.format(), borrowed.num_layers()), (Format::Caffemodel, 0));
        drop(borrowed);
        drop(Model::from_raw(raw, &Context::host()));
    }
}
