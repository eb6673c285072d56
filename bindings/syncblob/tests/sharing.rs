//! The rule of sharing: who may write, and when; and use from many threads.

use std::sync::{Arc, Barrier};
use std::thread;

use syncblob::{Blob, Context, ErrorKind, Part, Payload};

/// A writing call and its name.
type Writer = (&'static str, fn(&mut Blob<f32>) -> syncblob::Result<()>);

fn proto() -> Vec<u8> {
    Blob::<f32>::full([4], 9.0).unwrap().to_proto(Payload::Data).unwrap()
}

const WRITERS_OF_DATA: [Writer; 7] = [
    ("data_mut", |b| b.data_mut().map(drop)),
    ("gpu_data_mut_ptr", |b| b.gpu_data_mut_ptr().map(drop)),
    ("clear_data", |b| b.clear_data()),
    ("scale_data", |b| b.scale_data(2.0)),
    ("update", |b| b.update()),
    ("copy_from", |b| b.copy_from(&Blob::full([4], 9.0)?, Part::Data)),
    ("read_proto", |b| b.read_proto(&proto())),
];

const WRITERS_OF_DIFF: [Writer; 6] = [
    ("diff_mut", |b| b.diff_mut().map(drop)),
    ("gpu_diff_mut_ptr", |b| b.gpu_diff_mut_ptr().map(drop)),
    ("clear_diff", |b| b.clear_diff()),
    ("scale_diff", |b| b.scale_diff(2.0)),
    ("copy_from", |b| b.copy_from(&Blob::full([4], 9.0)?, Part::Diff)),
    ("read_proto", |b| b.read_proto(&proto())),
];

fn two() -> [Blob<f32>; 2] {
    let context = Context::builder().device("sim:0").build().unwrap();
    [1.0, 2.0].map(|value| {
        let mut blob = Blob::from_fn_in(&context, [4], |_| value).unwrap();
        blob.diff_mut().unwrap().fill(value);
        blob
    })
}

#[test]
fn no_writer_writes_shared_data() {
    for (name, write) in WRITERS_OF_DATA {
        let [a, mut b] = two();
        b.share_data(&a).unwrap();
        let kind = write(&mut b).unwrap_err().kind();
        assert_eq!((name, kind), (name, ErrorKind::Shared));
        assert_eq!((a.data().unwrap(), b.data().unwrap()), (&[1.0; 4][..], &[1.0; 4][..]));
        drop(a);
        write(&mut b).unwrap_or_else(|e| panic!("{name} when alone again: {e}"));
    }
}

#[test]
fn no_writer_writes_a_shared_diff() {
    for (name, write) in WRITERS_OF_DIFF {
        let [mut a, mut b] = two();
        b.share_diff(&a).unwrap();
        let kind = write(&mut a).unwrap_err().kind();
        assert_eq!((name, kind), (name, ErrorKind::Shared));
        assert_eq!(b.diff().unwrap(), [1.0; 4]);
        drop(b);
        write(&mut a).unwrap_or_else(|e| panic!("{name} when alone again: {e}"));
    }
}

#[test]
fn sharing_one_part_leaves_the_other_writable() {
    let [a, mut b] = two();
    b.share_diff(&a).unwrap();
    assert!(b.is_unique(Part::Data).unwrap() && !b.is_unique(Part::Diff).unwrap());
    b.update().unwrap(); // reads the shared diff
    assert_eq!(b.data().unwrap(), [1.0; 4]);
}

#[test]
fn a_sharer_that_outgrows_the_memory_lets_go_of_it() {
    let [mut a, mut b] = two();
    b.share_data(&a).unwrap();
    let kept = a.data().unwrap().as_ptr();
    assert!(b.reshape([8]).unwrap().data);
    b.data_mut().unwrap().fill(7.0);
    a.data_mut().unwrap()[0] = 3.0;
    assert_eq!((a.data().unwrap().as_ptr(), a.data().unwrap()[1]), (kept, 1.0));
}

#[test]
fn sharing_needs_equal_counts() {
    let [a, _] = two();
    let mut other = Blob::<f32>::zeros_in(&a.context(), [5]).unwrap();
    assert_eq!(other.share_data(&a).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn many_threads_read_and_the_bytes_move_once() {
    const THREADS: usize = 8;
    let context = Context::builder().device("sim:0").build().unwrap();
    let mut blob = Blob::<f32>::from_fn_in(&context, [1000], |i| i as f32).unwrap();
    blob.gpu_data_mut_ptr().unwrap();
    let before = context.stats().unwrap().downloads;
    let (blob, barrier) = (Arc::new(blob), Arc::new(Barrier::new(THREADS)));
    let readers = (0..THREADS).map(|_| {
        let (blob, barrier) = (Arc::clone(&blob), Arc::clone(&barrier));
        thread::spawn(move || {
            barrier.wait();
            let sum: f32 = blob.data().unwrap().iter().sum();
            assert!(!blob.gpu_data_ptr().unwrap().is_null());
            (sum, blob.asum_data().unwrap())
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
        b.share_data(&a).unwrap();
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
        assert!(wrote != [true, true], "one ends first");
    }
}
