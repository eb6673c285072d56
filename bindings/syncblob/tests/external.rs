//! Tests blobs that use the caller's memory.
#![cfg(feature = "testing")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use syncblob::sim::Schedule;
use syncblob::{
    Blob, Context, ErrorKind, Filler, Head, MemoryHandle, Part, Payload, Side, Storage,
};

fn simulated() -> Context {
    Context::builder().device("sim:0").build().unwrap()
}

fn host_storage(blob: &Blob<f32>) -> Storage {
    blob.memory(Part::Data).unwrap().storage(Side::Host)
}

struct Counted<T> {
    values: Vec<T>,
    dropped: Arc<AtomicUsize>,
    panics: bool,
}

impl<T> Counted<T> {
    fn new(values: Vec<T>) -> (Self, impl Fn() -> usize) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dropped);
        (Self { values, dropped, panics: false }, move || count.load(Ordering::SeqCst))
    }
}

impl<T> AsRef<[T]> for Counted<T> {
    fn as_ref(&self) -> &[T] {
        &self.values
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "a destructor that panics, on purpose");
    }
}

#[test]
fn a_vector_is_used_in_place_and_written() {
    let values = vec![1.0_f32, 2.0, 3.0];
    let start = values.as_ptr();
    let mut blob = Blob::in_context(&simulated()).from_vec([3], values).unwrap();
    assert_eq!((blob.data().unwrap().as_ptr(), host_storage(&blob)), (start, Storage::Borrowed));
    assert_eq!(blob.context().stats().unwrap().borrowed_bytes, 12);
    blob.gpu_mut_ptr(Part::Data).unwrap();
    blob.data_mut().unwrap()[0] = 7.0;
    assert_eq!(blob.data().unwrap().as_ptr(), start);
    assert_eq!(blob.data().unwrap(), [7.0, 2.0, 3.0]);
    let boxed: Box<[f32]> = Box::from([4.0, 5.0]);
    let start = boxed.as_ptr();
    let blob = Blob::from_vec([2], boxed.into_vec()).unwrap();
    assert_eq!(blob.data().unwrap().as_ptr(), start);
}

#[test]
fn an_empty_vector_makes_an_empty_blob() {
    let mut blob = Blob::<f64>::from_vec([3, 0], Vec::new()).unwrap();
    assert_eq!((blob.data().unwrap().len(), blob.data_mut().unwrap().len()), (0, 0));
}

#[test]
fn elements_of_a_vector_beyond_the_count_are_capacity() {
    let mut blob = Blob::<i32>::zeros([2]).unwrap();
    blob.set(Part::Data, vec![1, 2, 3, 4]).unwrap();
    assert_eq!(blob.data().unwrap(), [1, 2]);
    assert!(!blob.reshape([4]).unwrap().data);
    assert_eq!(blob.data().unwrap(), [1, 2, 3, 4]);
    let kind = blob.set(Part::Data, vec![1, 2, 3]).unwrap_err().kind();
    assert_eq!((kind, blob.data().unwrap()), (ErrorKind::InvalidArgument, &[1, 2, 3, 4][..]));
}

type Writer = fn(&mut Blob<f32>) -> syncblob::Result<()>;
const WRITERS: [(&str, Writer); 10] = [
    ("data_mut", |b| b.data_mut().map(|data| data.fill(9.0))),
    ("fill_data", |b| b.fill(Part::Data, 9.0)),
    ("fill", |b| b.initialize(&Filler::Constant { value: 9.0 }, 1)),
    ("overwrite_data", |b| b.overwrite(Part::Data, &[9.0; 4])),
    ("scale_data", |b| b.scale(Part::Data, 9.0)),
    ("clear_data", |b| b.clear(Part::Data)),
    ("update", |b| b.update()),
    ("copy_from", |b| b.copy_from(Part::Data, &Blob::full([4], 9.0)?)),
    ("read_proto", |b| b.read_proto(&Blob::<f32>::full([4], 9.0)?.to_proto(Payload::Data)?)),
    ("device", |b| {
        let sim = b.context();
        let on_device = b.gpu_mut_ptr(Part::Data)?;
        sim.sim().unwrap().poke(on_device.cast(), &[0; 16])?;
        b.data().map(drop)
    }),
];

#[test]
fn memory_that_others_may_read_is_never_written() {
    for (name, write) in WRITERS {
        for on_device in [false, true] {
            let arc: Arc<[f32]> = Arc::from([1.0; 4]);
            let mut blob =
                Blob::in_context(&simulated()).from_shared([4], Arc::clone(&arc)).unwrap();
            blob.fill(Part::Diff, 0.5).unwrap();
            assert_eq!(blob.data().unwrap().as_ptr(), arc.as_ptr());
            assert_eq!(host_storage(&blob), Storage::ReadOnly);
            if on_device {
                blob.gpu_ptr(Part::Data).unwrap();
            }
            write(&mut blob).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_ne!(blob.data().unwrap(), [1.0; 4], "{name}");
            assert_eq!(*arc, [1.0; 4], "{name}");
            assert_eq!(Arc::strong_count(&arc), 1, "{name} still holds the Arc");
        }
    }
}

#[test]
fn an_arc_is_unchanged_when_the_device_side_is_written() {
    let arc: Arc<[f32]> = Arc::from([1.0, 2.0]);
    let context = simulated();
    let mut blob = Blob::in_context(&context).from_shared([2], Arc::clone(&arc)).unwrap();
    let on_device = blob.gpu_mut_ptr(Part::Data).unwrap();
    let new = [7.0_f32, 8.0].map(f32::to_ne_bytes);
    context.sim().unwrap().poke(on_device.cast(), new.as_flattened()).unwrap();
    assert_eq!(blob.data().unwrap(), [7.0, 8.0]);
    assert_eq!(*arc, [1.0, 2.0]);
}

#[test]
fn the_last_user_of_the_memory_drops_the_owner_once() {
    let (owner, dropped) = Counted::new(vec![1.0_f32; 4]);
    let blob = Blob::from_shared([4], owner).unwrap();
    let mut other = Blob::zeros([4]).unwrap();
    other.share(Part::Data, &blob).unwrap();
    let handle = blob.handle(Part::Data).unwrap();
    drop(blob);
    other.reshape([100]).unwrap();
    assert_eq!((dropped(), handle.data().unwrap().len()), (0, 16));
    drop(handle);
    assert_eq!(dropped(), 1);
}

#[test]
fn an_owner_that_was_refused_is_dropped_too() {
    let (owner, dropped) = Counted::new(vec![1.0_f32; 4]);
    let kind = Blob::from_shared([5], owner).unwrap_err().kind();
    assert_eq!((kind, dropped()), (ErrorKind::ShapeMismatch, 1));
    let mut refused = 0;
    for cap in (0..1 << 16).step_by(16) {
        let Ok(context) = Context::builder().max_host_bytes(cap).build() else { continue };
        let (owner, dropped) = Counted::new(vec![1.0_f32; 4]);
        match Blob::in_context(&context).from_shared([4], owner) {
            Ok(blob) => drop(blob),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::CapReached);
                refused += 1;
            }
        }
        assert_eq!(dropped(), 1);
    }
    assert!(refused > 2, "the cap refused {refused} times");
}

#[test]
fn a_panic_of_a_destructor_does_not_reach_the_caller() {
    let (mut owner, dropped) = Counted::new(vec![1.0_f32; 4]);
    owner.panics = true;
    let mut blob = Blob::from_shared([4], owner).unwrap();
    blob.data_mut().unwrap().fill(2.0);
    assert_eq!((dropped(), blob.data().unwrap()), (1, &[2.0; 4][..]));
}

#[test]
fn an_owner_may_be_a_blob_and_is_dropped_on_any_thread() {
    struct Lender(Blob<f32>);
    impl AsRef<[f32]> for Lender {
        fn as_ref(&self) -> &[f32] {
            self.0.data().unwrap()
        }
    }
    let inner = Blob::full([4], 3.0).unwrap();
    let blob = Blob::from_shared([4], Lender(inner)).unwrap();
    std::thread::spawn(move || assert_eq!(blob.data().unwrap(), [3.0; 4])).join().unwrap();
}

#[test]
fn a_queued_copy_keeps_the_owner() {
    let context = simulated();
    let sim = context.sim().unwrap();
    sim.set_schedule(Schedule::Lazy).unwrap();
    let stream = sim.stream().unwrap();
    let (owner, dropped) = Counted::new(vec![5.0_f32; 4]);
    let mut blob = Blob::in_context(&context).from_shared([4], owner).unwrap();
    let copy = blob.memory(Part::Data).unwrap().push((&stream).into()).unwrap();
    std::mem::forget(copy); // the result must not depend on the drop of `copy`
    assert_eq!((dropped(), blob.head(Part::Data).unwrap()), (0, Head::Synced));
    blob.memory_mut(Part::Data).unwrap().evict(Side::Host).unwrap();
    assert_eq!((dropped(), blob.head(Part::Data).unwrap()), (1, Head::AtGpu));
    assert_eq!(blob.data().unwrap(), [5.0; 4]);
}

/// The bytes of a vector from index `.1` to index `.2`.
struct At(Vec<u64>, usize, usize);

impl AsRef<[u8]> for At {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the vector has `len * 8` bytes, and all are initialised.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 8) };
        &bytes[self.1..self.2]
    }
}

#[test]
fn bytes_are_used_in_place_when_they_are_aligned_and_whole() {
    let words = || {
        vec![
            u64::from_ne_bytes([1.0_f32, 2.0].map(f32::to_ne_bytes).concat().try_into().unwrap());
            2
        ]
    };
    let blob = Blob::<f32>::from_ne_bytes([2, 2], At(words(), 0, 16)).unwrap();
    assert_eq!(blob.data().unwrap(), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(host_storage(&blob), Storage::ReadOnly);
    for (wrong, kind) in [
        (At(words(), 1, 9), ErrorKind::InvalidArgument),
        (At(words(), 0, 7), ErrorKind::InvalidArgument),
        (At(words(), 0, 12), ErrorKind::ShapeMismatch),
    ] {
        assert_eq!(Blob::<f32>::from_ne_bytes([2], wrong).unwrap_err().kind(), kind);
    }
    let copy = Blob::<u32>::from_ne_bytes_or_copy([2], At(vec![u64::MAX; 2], 1, 9)).unwrap();
    assert_eq!(copy.data().unwrap(), [u32::MAX; 2]);
    assert_eq!(copy.memory(Part::Data).unwrap().storage(Side::Host), Storage::Owned);
    let kept = Blob::<u32>::from_ne_bytes_or_copy([2], At(vec![7; 2], 0, 8)).unwrap();
    assert_eq!(kept.memory(Part::Data).unwrap().storage(Side::Host), Storage::ReadOnly);
    let odd = Blob::<u32>::from_ne_bytes_or_copy([2], At(vec![7; 2], 1, 8));
    assert_eq!(odd.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_memory_accepts_only_bytes_of_its_size_that_suit_every_type() {
    let mut memory = MemoryHandle::new(16).unwrap();
    memory.set(vec![1_u32; 4]).unwrap();
    assert_eq!(memory.storage(Side::Host), Storage::Borrowed);
    assert_eq!(memory.data().unwrap(), [1_u32; 4].map(u32::to_ne_bytes).as_flattened());
    memory.set_shared(At(vec![2; 4], 8, 24)).unwrap();
    assert_eq!(memory.data().unwrap(), [2_u64; 2].map(u64::to_ne_bytes).as_flattened());
    for wrong in [At(vec![3; 4], 4, 20), At(vec![3; 4], 0, 8)] {
        let kind = memory.set_shared(wrong).unwrap_err().kind();
        assert_eq!((kind, memory.data().unwrap()[0]), (ErrorKind::InvalidArgument, 2));
    }
    let kind = memory.set(vec![1_u32; 3]).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::InvalidArgument);
}

#[test]
fn empty_memory_is_aligned_for_every_type() {
    let empty = || At(vec![0], 1, 1);
    let mut memory = MemoryHandle::new(0).unwrap();
    memory.set_shared(empty()).unwrap();
    assert!(memory.data().unwrap().is_empty());
    memory.set(Vec::<u32>::new()).unwrap();
    assert!(memory.data().unwrap().is_empty());
    let blob = Blob::<f64>::from_ne_bytes([0, 3], empty()).unwrap();
    assert!(blob.data().unwrap().is_empty());
    let mut blob = Blob::<f64>::zeros([0]).unwrap();
    blob.memory_mut(Part::Data).unwrap().set_shared(empty()).unwrap();
    assert!(blob.data().unwrap().as_ptr().is_aligned());
}

#[test]
fn the_callers_device_memory_is_used_in_place() {
    let context = simulated();
    let source = Blob::<f32>::in_context(&context).from_slice([2], &[1.0, 2.0]).unwrap();
    let ptr = source.gpu_ptr(Part::Data).unwrap().cast_mut();
    let mut blob = Blob::<f32>::in_context(&context).zeros([2]).unwrap();
    // SAFETY: the blob takes ownership of the memory's owner, and no code writes the memory.
    unsafe { blob.set_gpu(Part::Data, ptr, 2, syncblob::Access::ReadOnly, source).unwrap() };
    assert_eq!(blob.gpu_ptr(Part::Data).unwrap(), ptr.cast_const());
    assert_eq!(blob.data().unwrap(), [1.0, 2.0]);
    assert_ne!(blob.gpu_mut_ptr(Part::Data).unwrap(), ptr);
}

#[test]
fn into_vec_returns_the_same_vector_or_a_copy() {
    let vector = || vec![1.0_f32, 2.0, 3.0, 4.0];
    let values = vector();
    let start = values.as_ptr();
    let again = Blob::from_vec([2, 2], values).unwrap().into_vec().unwrap();
    assert_eq!((again.as_ptr(), again), (start, vector()));

    let mut blob = Blob::from_vec([4], vector()).unwrap();
    let start = blob.data().unwrap().as_ptr();
    blob.memory_mut(Part::Diff).unwrap().set(vec![9.0_f64, 9.0]).unwrap();
    blob.reshape([3]).unwrap();
    let again = blob.into_vec().unwrap();
    assert_eq!((again.as_ptr(), &*again), (start, &[1.0, 2.0, 3.0][..]));

    let mut blob = Blob::<f32>::zeros([2]).unwrap();
    blob.memory_mut(Part::Data).unwrap().set(vec![0.1_f64]).unwrap();
    let bits = 0.1_f64.to_ne_bytes();
    let halves: Vec<_> =
        bits.chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect();
    assert_eq!(blob.into_vec().unwrap(), halves);

    let shared: Arc<[f32]> = Arc::from(vector());
    assert_eq!(Blob::from_shared([4], shared.clone()).unwrap().into_vec().unwrap(), vector());
    assert_eq!(Arc::strong_count(&shared), 1);
    let blob = Blob::from_vec([4], vector()).unwrap();
    let handle = blob.handle(Part::Data).unwrap();
    assert_eq!(blob.into_vec().unwrap(), vector());
    assert_eq!(handle.data().unwrap().len(), 16);
    let context = Context::builder().device("sim:0").build().unwrap();
    let blob = Blob::in_context(&context).from_vec([4], vector()).unwrap();
    blob.gpu_ptr(Part::Data).unwrap();
    assert_eq!(blob.into_vec().unwrap(), vector());
    assert_eq!(Blob::<f32>::full([2], 0.5).unwrap().into_vec().unwrap(), [0.5; 2]);
    assert!(Blob::<f32>::new().unwrap().into_vec().unwrap().is_empty());
    assert!(Blob::<f32>::from_vec([0], vec![]).unwrap().into_vec().unwrap().is_empty());
}

#[test]
fn into_vec_returns_the_vector_behind_a_tensor() {
    let start_of = |values: &Vec<f32>| values.as_ptr();
    let values = vec![1.0_f32, 2.0, 3.0];
    let start = start_of(&values);
    let tensor = Blob::from_vec([3], values).unwrap().into_dlpack(Side::Host).unwrap();
    let mut blob = Blob::<f32>::from_dlpack(tensor).unwrap();
    blob.data_mut().unwrap()[0] = 5.0;
    let again = blob.into_vec().unwrap();
    assert_eq!((again.as_ptr(), &*again), (start, &[5.0, 2.0, 3.0][..]));

    for first_is_lender in [true, false] {
        let values = vec![1.0_f32, 2.0, 3.0];
        let start = start_of(&values);
        let lender = Blob::from_vec([3], values).unwrap();
        let tensor = lender.to_dlpack(Part::Data, Side::Host).unwrap();
        let other = Blob::<f32>::from_dlpack(tensor).unwrap();
        let (first, last) = if first_is_lender { (lender, other) } else { (other, lender) };
        let (copy, own) = (first.into_vec().unwrap(), last.into_vec().unwrap());
        assert_ne!(copy.as_ptr(), start);
        assert_eq!((own.as_ptr(), copy, &*own), (start, vec![1.0, 2.0, 3.0], &[1.0, 2.0, 3.0][..]));
    }

    let blob = Blob::from_vec([3], vec![1.0_f32; 3]).unwrap();
    let tensor = blob.to_dlpack(Part::Data, Side::Host).unwrap();
    assert_eq!(blob.into_vec().unwrap(), [1.0; 3]);
    // SAFETY: the tensor keeps three floats alive.
    assert_eq!(unsafe { tensor.data_ptr().cast::<f32>().read() }, 1.0);
}

struct Unwraps(Vec<f32>, Arc<AtomicUsize>);

impl AsRef<[f32]> for Unwraps {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Unwraps {
    fn drop(&mut self) {
        let values = vec![8.0_f32; 2];
        let start = values.as_ptr();
        let again = Blob::from_vec([2], values).unwrap().into_vec().unwrap();
        assert_eq!((again.as_ptr(), &*again), (start, &[8.0; 2][..]));
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_drop_of_an_owner_may_call_into_vec() {
    let ended = Arc::new(AtomicUsize::new(0));
    let owner = || Unwraps(vec![1.0; 3], Arc::clone(&ended));
    let values = vec![1.0_f32, 2.0, 3.0];
    let start = values.as_ptr();
    let mut blob = Blob::from_vec([3], values).unwrap();
    blob.memory_mut(Part::Diff).unwrap().set_shared(Bytes(owner())).unwrap();
    let again = blob.into_vec().unwrap();
    assert_eq!((again.as_ptr(), &*again), (start, &[1.0, 2.0, 3.0][..]));
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert_eq!(Blob::from_shared([3], owner()).unwrap().into_vec().unwrap(), [1.0; 3]);
    assert_eq!(ended.load(Ordering::SeqCst), 2);
}

struct Bytes(Unwraps);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the elements are initialised floats of four bytes each.
        unsafe { std::slice::from_raw_parts(self.0 .0.as_ptr().cast(), 4 * self.0 .0.len()) }
    }
}

#[test]
fn into_vec_returns_the_vector_after_work_on_the_device() {
    let values = vec![1.0_f32, 2.0];
    let start = values.as_ptr();
    let mut blob = Blob::in_context(&simulated()).from_vec([2], values).unwrap();
    blob.scale(Part::Data, 2.0).unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let again = blob.into_vec().unwrap();
    assert_eq!((again.as_ptr(), &*again), (start, &[2.0, 4.0][..]));
}
