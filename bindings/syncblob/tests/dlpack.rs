use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use syncblob::{
    Blob, BlobAny, Context, Dlpack, Dtype, ErrorKind, Head, LegacyDlpack, Part, Side, Storage,
};
use syncblob_sys as sys;

const HOST: (i32, i32) = (sys::SB_DL_DEVICE_CPU, 0);

fn simulated(number: u32) -> Context {
    Context::builder().device(format!("sim:{number}")).build().unwrap()
}

struct Foreign {
    versioned: sys::sb_dl_managed_versioned,
    legacy: sys::sb_dl_managed,
    values: Vec<f32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    ended: Arc<AtomicUsize>,
}

unsafe extern "C" fn end_versioned(tensor: *mut sys::sb_dl_managed_versioned) {
    // SAFETY: the tensor is from `Foreign::new`, and the deleter is called once.
    let foreign = unsafe { Box::from_raw((*tensor).manager_ctx.cast::<Foreign>()) };
    foreign.ended.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn end_legacy(tensor: *mut sys::sb_dl_managed) {
    // SAFETY: as in `end_versioned`.
    let foreign = unsafe { Box::from_raw((*tensor).manager_ctx.cast::<Foreign>()) };
    foreign.ended.fetch_add(1, Ordering::SeqCst);
}

impl Foreign {
    fn new(shape: &[i64], change: impl FnOnce(&mut Foreign)) -> (*mut Foreign, impl Fn() -> usize) {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        let mut strides: Vec<i64> = shape.iter().map(|_| 1).collect();
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        let values = (0..shape.iter().product::<i64>()).map(|i| i as f32).collect();
        let foreign = Box::into_raw(Box::new(Foreign {
            versioned: Default::default(),
            legacy: Default::default(),
            values,
            shape: shape.to_vec(),
            strides,
            ended,
        }));
        // SAFETY: the object was just made and is alive.
        let made = unsafe { &mut *foreign };
        made.versioned.version.major = 1;
        made.versioned.manager_ctx = foreign.cast::<c_void>();
        made.versioned.deleter = Some(end_versioned);
        made.legacy.manager_ctx = foreign.cast::<c_void>();
        made.legacy.deleter = Some(end_legacy);
        let tensor = &mut made.versioned.dl_tensor;
        tensor.data = made.values.as_mut_ptr().cast();
        tensor.device.device_type = HOST.0;
        tensor.ndim = shape.len() as i32;
        tensor.dtype = sys::sb_dl_data_type { code: 2, bits: 32, lanes: 1 };
        tensor.shape = made.shape.as_mut_ptr();
        tensor.strides = made.strides.as_mut_ptr();
        change(made);
        made.legacy.dl_tensor = made.versioned.dl_tensor;
        (foreign, move || count.load(Ordering::SeqCst))
    }

    fn versioned(foreign: *mut Self) -> syncblob::Result<Dlpack> {
        // SAFETY: the tensor is valid, and no other code uses the elements.
        unsafe { Dlpack::from_raw(NonNull::from(&mut (*foreign).versioned)) }
    }

    fn legacy(foreign: *mut Self) -> LegacyDlpack {
        // SAFETY: as in `versioned`.
        unsafe { LegacyDlpack::from_raw(NonNull::from(&mut (*foreign).legacy)) }
    }
}

#[test]
fn a_read_only_tensor_shares_the_memory_while_it_lives() {
    let mut blob = Blob::<f32>::from_fn([2, 3], |i| i as f32).unwrap();
    blob.diff_mut().unwrap().fill(2.0);
    let tensor = blob.to_dlpack(Part::Data, Side::Host).unwrap();
    let diff = blob.to_dlpack(Part::Diff, Side::Host).unwrap();
    assert!(tensor.is_read_only());
    assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[3, 1][..]));
    assert_eq!(tensor.device(), HOST);
    assert_eq!(tensor.data_ptr(), blob.data().unwrap().as_ptr().cast());
    assert_eq!(diff.data_ptr(), blob.diff().unwrap().as_ptr().cast());
    assert_eq!(blob.data_mut().unwrap_err().kind(), ErrorKind::Shared);
    assert_eq!(
        format!("{tensor:?}"),
        "Dlpack { shape: [2, 3], strides: [3, 1], device: (1, 0), .. }"
    );
    std::thread::spawn(move || drop(tensor)).join().unwrap();
    blob.data_mut().unwrap()[0] = 9.0;
    assert_eq!(blob.diff_mut().unwrap_err().kind(), ErrorKind::Shared);
    drop(blob);
    let again = Blob::<f32>::from_dlpack(diff).unwrap();
    assert_eq!(again.data().unwrap(), [2.0; 6]);
    assert_eq!(again.memory(Part::Data).unwrap().storage(Side::Host), Storage::ReadOnly);
}

#[test]
fn a_blob_keeps_its_memory_when_it_moves_through_tensors() {
    let values = vec![1.0_f32, 2.0, 3.0];
    let start = values.as_ptr();
    let blob = Blob::from_vec([3], values).unwrap();
    let tensor = blob.into_dlpack(Side::Host).unwrap();
    assert!(!tensor.is_read_only());
    let mut blob = Blob::<f32>::from_dlpack(tensor).unwrap();
    blob.data_mut().unwrap()[0] = 5.0;
    let blob = Blob::<f32>::from_dlpack(blob.into_legacy_dlpack(Side::Host).unwrap()).unwrap();
    assert_eq!(
        (blob.data().unwrap(), blob.data().unwrap().as_ptr()),
        (&[5.0, 2.0, 3.0][..], start)
    );
    let share = blob.handle(Part::Data).unwrap();
    assert_eq!(blob.into_dlpack(Side::Host).unwrap_err().kind(), ErrorKind::Shared);
    drop(share);
}

#[test]
fn writes_through_a_tensor_change_the_blob() {
    let mut blob = Blob::<f32>::zeros([4]).unwrap();
    // SAFETY: no slice of the blob is alive while the tensor is written.
    let (tensor, legacy) = unsafe {
        let legacy = blob.to_legacy_dlpack_mut(Part::Diff, Side::Host).unwrap();
        (blob.to_dlpack_mut(Part::Data, Side::Host).unwrap(), legacy)
    };
    // SAFETY: each tensor has four floats.
    unsafe {
        tensor.data_ptr().cast_mut().cast::<f32>().add(3).write(7.0);
        legacy.data_ptr().cast_mut().cast::<f32>().write(8.0);
    }
    assert_eq!(blob.data().unwrap(), [0.0, 0.0, 0.0, 7.0]);
    assert_eq!(blob.diff().unwrap(), [8.0, 0.0, 0.0, 0.0]);
}

#[test]
fn device_memory_is_accepted_only_in_its_own_context() {
    let context = simulated(4);
    let blob = Blob::<f64>::in_context(&context).from_slice([2], &[1.5, 2.5]).unwrap();
    let tensor = blob.into_dlpack(Side::Device).unwrap();
    assert_eq!(tensor.device(), (sys::SB_DL_DEVICE_EXTENSION, 4));
    let again = Blob::<f64>::in_context(&context).from_dlpack(tensor).unwrap();
    assert_eq!(again.head(Part::Data).unwrap(), Head::AtGpu);
    assert_eq!(again.data().unwrap(), [1.5, 2.5]);
    let tensor = again.to_dlpack(Part::Data, Side::Device).unwrap();
    let wrong = Blob::<f64>::in_context(&simulated(4)).from_dlpack(tensor).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::WrongDevice);
    let tensor = again.to_dlpack(Part::Data, Side::Device).unwrap();
    assert_eq!(Blob::<f64>::from_dlpack(tensor).unwrap_err().kind(), ErrorKind::NoDevice);
    let host = Blob::<f64>::zeros([2]).unwrap();
    assert_eq!(host.to_dlpack(Part::Data, Side::Device).unwrap_err().kind(), ErrorKind::NoDevice);
    let unshaped = Blob::<f64>::new().unwrap().into_dlpack(Side::Host).unwrap_err();
    assert_eq!(unshaped.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_foreign_tensor_is_used_in_place_and_ended_once() {
    for legacy in [false, true] {
        let (foreign, ended) = Foreign::new(&[2, 2], |_| {});
        // SAFETY: the object was just made and is alive.
        let start = unsafe { (*foreign).values.as_ptr() };
        let mut blob = if legacy {
            Blob::<f32>::from_dlpack(Foreign::legacy(foreign)).unwrap()
        } else {
            Blob::<f32>::from_dlpack(Foreign::versioned(foreign).unwrap()).unwrap()
        };
        assert_eq!((blob.data().unwrap().as_ptr(), blob.shape()), (start, &[2, 2][..]));
        blob.data_mut().unwrap()[3] = 9.0;
        assert_eq!((blob.data().unwrap().as_ptr(), ended()), (start, 0));
        std::thread::spawn(move || drop(blob)).join().unwrap();
        assert_eq!(ended(), 1);
    }
}

#[test]
fn a_read_only_tensor_is_never_written() {
    let (foreign, ended) = Foreign::new(&[3], |foreign| foreign.versioned.flags = 1);
    let mut blob = Blob::<f32>::from_dlpack(Foreign::versioned(foreign).unwrap()).unwrap();
    assert_eq!(blob.memory(Part::Data).unwrap().storage(Side::Host), Storage::ReadOnly);
    let reader = blob.to_dlpack(Part::Data, Side::Host).unwrap();
    // SAFETY: no other code reads the blob's elements now.
    let elements = unsafe { blob.shared_mut(Part::Data) }.unwrap();
    elements[0] = 8.0;

    // SAFETY: the tensor keeps its floats alive.
    assert_eq!((unsafe { reader.data_ptr().cast::<f32>().read() }, ended()), (0.0, 0));
    drop(reader);
    assert_eq!((blob.data().unwrap(), ended()), (&[8.0, 1.0, 2.0][..], 1));
}

#[test]
fn a_refused_tensor_is_ended() {
    type Change = fn(&mut Foreign);
    let cases: [(Change, ErrorKind); 6] = [
        (|f| f.versioned.version.major = 2, ErrorKind::AbiMismatch),
        (|f| f.versioned.dl_tensor.dtype.bits = 64, ErrorKind::DtypeMismatch),
        (|f| f.versioned.dl_tensor.dtype.lanes = 4, ErrorKind::Unsupported),
        (|f| f.strides = vec![1, 2], ErrorKind::Unsupported),
        (|f| f.shape[0] = -2, ErrorKind::InvalidArgument),
        (|f| f.versioned.dl_tensor.device.device_type = 2, ErrorKind::NoDevice),
    ];
    for (change, kind) in cases {
        let (foreign, ended) = Foreign::new(&[2, 2], |foreign| {
            change(foreign);
            foreign.versioned.dl_tensor.strides = foreign.strides.as_mut_ptr();
        });
        let refused = Foreign::versioned(foreign).and_then(Blob::<f32>::from_dlpack);
        assert_eq!((refused.unwrap_err().kind(), ended()), (kind, 1));
    }
}

#[test]
fn a_tensor_becomes_a_part_of_a_blob() {
    let mut blob = Blob::<f32>::full([2, 2], 1.0).unwrap();
    let sharer = blob.handle(Part::Data).unwrap();
    for (part, legacy) in
        [(Part::Diff, false), (Part::Data, false), (Part::Diff, true), (Part::Data, true)]
    {
        let (foreign, ended) = Foreign::new(&[2, 2], |_| {});
        if legacy {
            blob.set_dlpack(part, Foreign::legacy(foreign)).unwrap();
        } else {
            blob.set_dlpack(part, Foreign::versioned(foreign).unwrap()).unwrap();
        }
        assert_eq!(blob.memory(part).unwrap().storage(Side::Host), Storage::Borrowed);
        let values = if part == Part::Data { blob.data() } else { blob.diff() };
        assert_eq!((values.unwrap(), ended()), (&[0.0, 1.0, 2.0, 3.0][..], 0));
    }
    assert_eq!(sharer.data().unwrap(), [1.0_f32; 4].map(f32::to_ne_bytes).as_flattened());
    let (foreign, ended) = Foreign::new(&[4], |_| {});
    let other = blob.set_dlpack(Part::Data, Foreign::versioned(foreign).unwrap());
    assert_eq!((other.unwrap_err().kind(), ended()), (ErrorKind::ShapeMismatch, 1));
}

#[test]
fn a_blob_gets_the_element_type_of_its_tensor() {
    let tensor = Blob::<u32>::full([2], 7).unwrap().into_dlpack(Side::Host).unwrap();
    let any = BlobAny::from_dlpack(&Context::host(), tensor).unwrap();
    assert_eq!((any.dtype(), any.shape()), (Dtype::U32, &[2][..]));
    let tensor = Blob::<i64>::full([2], i64::MIN).unwrap().into_dlpack(Side::Host).unwrap();
    let wide = BlobAny::from_dlpack(&Context::host(), tensor).unwrap().downcast::<i64>().unwrap();
    assert_eq!(wide.data().unwrap(), [i64::MIN; 2]);
    let (foreign, ended) =
        Foreign::new(&[2], |foreign| foreign.versioned.dl_tensor.dtype.bits = 16);
    let any = BlobAny::from_dlpack(&Context::host(), Foreign::versioned(foreign).unwrap());
    if cfg!(feature = "half") {
        assert_eq!(any.unwrap().dtype(), Dtype::F16);
    } else {
        assert_eq!(any.unwrap_err().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(ended(), 1);
}
