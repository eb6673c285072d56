#![cfg(feature = "testing")]

use std::sync::{Arc, Barrier};
use std::thread;

use syncblob::{
    Blob, BlobAny, Context, ErrorKind, Filler, MemoryHandle, Model, Part, Payload, Side, Stream,
    SyncedMemory,
};

type Writer = (&'static str, fn(&mut Blob<f32>) -> syncblob::Result<()>);

fn proto() -> Vec<u8> {
    Blob::<f32>::full([4], 9.0).unwrap().to_proto(Payload::Data).unwrap()
}

fn memory_of(blob: &mut Blob<f32>, part: Part) -> syncblob::Result<&mut SyncedMemory> {
    blob.memory_mut(part)
}

const WRITERS_OF_DATA: [Writer; 21] = [
    ("data_mut", |b| b.data_mut().map(drop)),
    ("gpu_mut_ptr", |b| b.gpu_mut_ptr(Part::Data).map(drop)),
    ("clear_data", |b| b.clear(Part::Data)),
    ("scale_data", |b| b.scale(Part::Data, 2.0)),
    ("update", |b| b.update()),
    ("copy_from", |b| b.copy_from(Part::Data, &Blob::full([4], 9.0)?)),
    ("copy_from_reshape", |b| b.copy_from_reshape(Part::Data, &Blob::full([4], 9.0)?)),
    ("read_proto", |b| b.read_proto(&proto())),
    ("read_proto_reshape", |b| b.read_proto_reshape(&proto())),
    ("fill_data", |b| b.fill(Part::Data, 9.0)),
    ("fill", |b| b.initialize(&Filler::Constant { value: 9.0 }, 1)),
    ("overwrite_data", |b| b.overwrite(Part::Data, &[9.0; 4])),
    ("data_and_diff_mut", |b| b.data_and_diff_mut().map(drop)),
    ("memory data_mut", |b| memory_of(b, Part::Data)?.data_mut().map(drop)),
    ("memory overwrite", |b| memory_of(b, Part::Data)?.overwrite(&[9; 16])),
    ("memory gpu_mut_ptr", |b| memory_of(b, Part::Data)?.gpu_mut_ptr().map(drop)),
    ("memory gpu_mut_ptr_on", |b| {
        memory_of(b, Part::Data)?.gpu_mut_ptr_on(Stream::DEFAULT).map(drop)
    }),
    ("memory overwrite_gpu_ptr", |b| {
        // SAFETY: no test reads the memory after this call has succeeded.
        unsafe { memory_of(b, Part::Data)?.overwrite_gpu_ptr(None).map(drop) }
    }),
    ("memory clear", |b| memory_of(b, Part::Data)?.clear()),
    ("memory set", |b| memory_of(b, Part::Data)?.set(vec![9.0_f64; 2])),
    ("memory evict", |b| memory_of(b, Part::Data)?.evict(Side::Device)),
];

const WRITERS_OF_DIFF: [Writer; 9] = [
    ("diff_mut", |b| b.diff_mut().map(drop)),
    ("gpu_diff_mut_ptr", |b| b.gpu_mut_ptr(Part::Diff).map(drop)),
    ("clear_diff", |b| b.clear(Part::Diff)),
    ("scale_diff", |b| b.scale(Part::Diff, 2.0)),
    ("copy_from", |b| b.copy_from(Part::Diff, &Blob::full([4], 9.0)?)),
    ("read_proto", |b| b.read_proto(&proto())),
    ("fill_diff", |b| b.fill(Part::Diff, 9.0)),
    ("overwrite_diff", |b| b.overwrite(Part::Diff, &[9.0; 4])),
    ("data_and_diff_mut", |b| b.data_and_diff_mut().map(drop)),
];

fn two() -> [Blob<f32>; 2] {
    let context = Context::builder().device("sim:0").build().unwrap();
    [1.0, 2.0].map(|value| {
        let mut blob = Blob::in_context(&context).from_fn([4], |_| value).unwrap();
        blob.diff_mut().unwrap().fill(value);
        blob
    })
}

#[test]
fn no_writer_writes_shared_data() {
    for (name, write) in WRITERS_OF_DATA {
        let [a, mut b] = two();
        b.share(Part::Data, &a).unwrap();
        let kind = write(&mut b).unwrap_err().kind();
        assert_eq!((name, kind), (name, ErrorKind::Shared));
        assert_eq!((a.data().unwrap(), b.data().unwrap()), (&[1.0; 4][..], &[1.0; 4][..]));
        drop(a);
        write(&mut b).unwrap_or_else(|e| panic!("{name} after the share ended: {e}"));
    }
}

#[test]
fn no_writer_writes_a_shared_diff() {
    for (name, write) in WRITERS_OF_DIFF {
        let [mut a, mut b] = two();
        b.share(Part::Diff, &a).unwrap();
        let kind = write(&mut a).unwrap_err().kind();
        assert_eq!((name, kind), (name, ErrorKind::Shared));
        assert_eq!(b.diff().unwrap(), [1.0; 4]);
        drop(b);
        write(&mut a).unwrap_or_else(|e| panic!("{name} after the share ended: {e}"));
    }
}

#[test]
fn a_handle_is_a_share_and_a_reference_is_not() {
    for (name, write) in WRITERS_OF_DATA {
        let [mut a, _] = two();
        let handle = a.handle(Part::Data).unwrap();
        let kind = write(&mut a).unwrap_err().kind();
        assert_eq!((name, kind), (name, ErrorKind::Shared));
        assert!(!handle.is_unique() && !a.is_unique(Part::Data).unwrap());
        drop(handle);
        let lent = a.memory(Part::Data).unwrap();
        assert!(lent.is_unique());
        write(&mut a).unwrap_or_else(|e| panic!("{name} after the share ended: {e}"));
    }
}

#[test]
fn a_handle_owns_a_memory_as_a_blob_does() {
    let [a, _] = two();
    let mut handle = a.handle(Part::Data).unwrap();
    assert_eq!(handle.data_mut().unwrap_err().kind(), ErrorKind::Shared);
    drop(a);
    handle.data_mut().unwrap().fill(0);
    let second = handle.clone();
    assert_eq!(handle.clear().unwrap_err().kind(), ErrorKind::Shared);
    assert_eq!(second.data().unwrap(), [0; 16]);
}

#[test]
fn make_unique_keeps_the_values_of_the_blob_and_of_its_sharers() {
    for on_device in [false, true] {
        let [a, mut b] = two();
        b.share(Part::Data, &a).unwrap();
        b.share(Part::Diff, &a).unwrap();
        if on_device {
            b.gpu_ptr(Part::Data).unwrap();
        }
        for part in [Part::Data, Part::Diff] {
            b.make_unique(part).unwrap();
            b.make_unique(part).unwrap();
        }
        assert_eq!((b.data().unwrap(), b.diff().unwrap()), (&[1.0; 4][..], &[1.0; 4][..]));
        b.fill(Part::Data, 5.0).unwrap();
        b.fill(Part::Diff, 5.0).unwrap();
        assert_eq!((a.data().unwrap(), a.diff().unwrap()), (&[1.0; 4][..], &[1.0; 4][..]));
    }
}

#[test]
fn a_write_through_a_share_changes_all_sharers() {
    let [a, mut b] = two();
    b.share(Part::Data, &a).unwrap();
    b.share(Part::Diff, &a).unwrap();
    // SAFETY: no code uses `a` meanwhile.
    unsafe {
        b.shared_mut(Part::Data).unwrap()[0] = 8.0;
        b.shared_mut(Part::Diff).unwrap()[1] = 9.0;
    }
    assert_eq!((a.at(Part::Data, [0]).unwrap(), a.at(Part::Diff, [1]).unwrap()), (8.0, 9.0));
}

#[test]
fn a_blob_that_adopts_a_memory_releases_its_share() {
    let [a, mut b] = two();
    b.share(Part::Data, &a).unwrap();
    b.set(Part::Data, vec![7.0; 4]).unwrap();
    b.data_mut().unwrap()[0] = 8.0;
    assert_eq!((a.data().unwrap(), b.data().unwrap()), (&[1.0; 4][..], &[8.0, 7.0, 7.0, 7.0][..]));
}

#[test]
fn an_existing_memory_becomes_data_or_diff() {
    let [a, mut b] = two();
    let bytes_of = |value: f32| [value; 4].map(f32::to_ne_bytes).as_flattened().to_vec();
    for part in [Part::Data, Part::Diff] {
        let mut made = b.context().memory(16).unwrap();
        made.overwrite(&bytes_of(7.0)).unwrap();
        b.set_memory(part, made).unwrap();
        assert!(b.is_unique(part).unwrap());
    }
    assert_eq!((b.data().unwrap(), b.diff().unwrap()), (&[7.0; 4][..], &[7.0; 4][..]));
    b.set_memory(Part::Diff, a.handle(Part::Data).unwrap()).unwrap();
    assert_eq!(b.diff_mut().unwrap_err().kind(), ErrorKind::Shared);
    b.update().unwrap(); // `update` only reads the diff
    assert_eq!((b.data().unwrap(), a.data().unwrap()), (&[6.0; 4][..], &[1.0; 4][..]));
    drop(a);
    b.diff_mut().unwrap()[0] = 2.0;
}

#[test]
fn memories_that_do_not_suit_a_blob_are_refused() {
    let [a, mut b] = two();
    let elsewhere = MemoryHandle::new(16).unwrap();
    let small = b.context().memory(15).unwrap();
    let askew = Blob::<u8>::in_context(&b.context()).from_shared([19], Askew::new(19)).unwrap();
    for (memory, kind) in [
        (elsewhere, ErrorKind::WrongDevice),
        (small, ErrorKind::InvalidArgument),
        (askew.handle(Part::Data).unwrap(), ErrorKind::InvalidArgument),
    ] {
        assert_eq!(b.set_memory(Part::Data, memory).unwrap_err().kind(), kind);
    }
    assert!(askew.is_unique(Part::Data).unwrap());
    assert_eq!((b.data().unwrap(), a.data().unwrap()), (&[2.0; 4][..], &[1.0; 4][..]));
    let mut bytes = Blob::<u8>::in_context(&b.context()).zeros([19]).unwrap();
    bytes.set_memory(Part::Diff, askew.handle(Part::Data).unwrap()).unwrap();
    assert_eq!(bytes.diff().unwrap(), [3; 19]);
}

struct Askew(Vec<u64>, usize);

impl Askew {
    fn new(size: usize) -> Self {
        Self(vec![u64::from_ne_bytes([3; 8]); size / 8 + 2], size)
    }
}

impl AsRef<[u8]> for Askew {
    fn as_ref(&self) -> &[u8] {
        let words = self.0.as_ptr().cast::<u8>();
        // SAFETY: the words have more than `self.1` bytes.
        unsafe { std::slice::from_raw_parts(words.add(1), self.1) }
    }
}

#[test]
fn a_dropped_diff_stays_with_its_sharers() {
    let [a, mut b] = two();
    b.share(Part::Diff, &a).unwrap();
    b.release(Part::Diff);
    assert!(a.is_unique(Part::Diff).unwrap());
    assert_eq!((a.diff().unwrap(), b.capacity(Part::Diff)), (&[1.0; 4][..], 0));
    assert_eq!((b.diff().unwrap(), b.data().unwrap()), (&[0.0; 4][..], &[2.0; 4][..]));
}

#[test]
fn types_are_send_and_sync_as_documented() {
    fn both<T: Send + Sync>() {}
    both::<(Blob<f32>, Blob<u32>, BlobAny, Context, Model)>();
    both::<(MemoryHandle, &SyncedMemory, &mut SyncedMemory, Stream<'_>)>();
    both::<(syncblob::Error, syncblob::ContextBuilder, syncblob::OpenOptions)>();
    both::<(syncblob::Layer<'_>, syncblob::StoredBlob<'_>, syncblob::Pending<'_>)>();
    both::<(syncblob::sim::Sim<'_>, syncblob::sim::SimStream)>();
}

#[test]
fn sharing_one_part_leaves_the_other_writable() {
    let [a, mut b] = two();
    b.share(Part::Diff, &a).unwrap();
    assert!(b.is_unique(Part::Data).unwrap() && !b.is_unique(Part::Diff).unwrap());
    b.update().unwrap();
    assert_eq!(b.data().unwrap(), [1.0; 4]);
}

#[test]
fn a_sharer_that_outgrows_the_memory_releases_it() {
    let [mut a, mut b] = two();
    b.share(Part::Data, &a).unwrap();
    let kept = a.data().unwrap().as_ptr();
    assert!(b.reshape([8]).unwrap().data);
    b.data_mut().unwrap().fill(7.0);
    a.data_mut().unwrap()[0] = 3.0;
    assert_eq!((a.data().unwrap().as_ptr(), a.data().unwrap()[1]), (kept, 1.0));
}

#[test]
fn sharing_needs_equal_counts() {
    let [a, _] = two();
    let mut other = Blob::<f32>::in_context(&a.context()).zeros([5]).unwrap();
    assert_eq!(other.share(Part::Data, &a).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn many_threads_read_and_the_bytes_move_once() {
    const THREADS: usize = 8;
    let context = Context::builder().device("sim:0").build().unwrap();
    let mut blob = Blob::<f32>::in_context(&context).from_fn([1000], |i| i as f32).unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let before = context.stats().unwrap().downloads;
    let (blob, barrier) = (Arc::new(blob), Arc::new(Barrier::new(THREADS)));
    let readers = (0..THREADS).map(|_| {
        let (blob, barrier) = (Arc::clone(&blob), Arc::clone(&barrier));
        thread::spawn(move || {
            barrier.wait();
            let sum: f32 = blob.data().unwrap().iter().sum();
            assert!(!blob.gpu_ptr(Part::Data).unwrap().is_null());
            (sum, blob.asum(Part::Data).unwrap())
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        assert_eq!(reader.join().unwrap(), (499_500.0, 499_500.0));
    }
    assert_eq!(context.stats().unwrap().downloads, before + 1);
}

#[test]
fn sharers_on_threads_become_writers_when_they_are_the_last() {
    for _ in 0..50 {
        let [a, mut b] = two();
        b.share(Part::Data, &a).unwrap();
        let writers = [a, b].map(|mut blob| {
            thread::spawn(move || match blob.data_mut() {
                Ok(data) => {
                    data.fill(5.0);
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Shared);
                    assert_eq!(blob.data().unwrap(), [1.0; 4]);
                    false
                }
            })
        });
        let wrote = writers.map(|writer| writer.join().unwrap());
        assert!(wrote != [true, true], "both blobs wrote the shared memory");
    }
}

#[test]
fn handles_are_cloned_and_dropped_on_threads_while_one_waits_to_write() {
    for _ in 0..50 {
        let [mut a, _] = two();
        let handle = a.handle(Part::Data).unwrap();
        let readers = (0..4).map(|_| {
            let handle = handle.clone();
            thread::spawn(move || {
                let again = handle.clone();
                drop(handle);
                again.data().unwrap().iter().map(|&byte| u64::from(byte)).sum::<u64>()
            })
        });
        let readers: Vec<_> = readers.collect();
        drop(handle);
        let before = 4 * 1.0_f32.to_ne_bytes().map(u64::from).iter().sum::<u64>();
        while a.fill(Part::Data, 5.0).is_err() {
            thread::yield_now();
        }
        assert_eq!(a.data().unwrap(), [5.0; 4]);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), before);
        }
    }
}

#[test]
fn many_threads_that_need_a_memory_get_the_same() {
    const THREADS: usize = 8;
    for _ in 0..20 {
        let blob = Blob::<f32>::zeros([100]).unwrap();
        let barrier = Barrier::new(THREADS);
        let start = || {
            barrier.wait();
            blob.diff().unwrap().as_ptr().addr()
        };
        let starts: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(starts.iter().all(|&other| other == starts[0]));
    }
}

#[test]
fn queued_copies_and_readers_share_a_memory() {
    let context = Context::builder().device("sim:0").build().unwrap();
    context.sim().unwrap().set_schedule(syncblob::sim::Schedule::Random(7)).unwrap();
    for _ in 0..20 {
        let mut blob = Blob::<f32>::in_context(&context).full([256], 1.0).unwrap();
        blob.gpu_mut_ptr(Part::Data).unwrap();
        let stream = context.stream().unwrap();
        thread::scope(|scope| {
            let pull = || blob.memory(Part::Data).unwrap().prefetch(Side::Host, stream)?.wait();
            scope.spawn(move || pull().unwrap());
            scope.spawn(|| assert_eq!(blob.data().unwrap(), [1.0; 256]));
            scope.spawn(|| assert_eq!(blob.asum(Part::Data).unwrap(), 256.0));
        });
        blob.data_mut().unwrap().fill(2.0);
    }
}
