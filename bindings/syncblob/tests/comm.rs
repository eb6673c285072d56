#![cfg(feature = "comm")]

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use syncblob::comm::{Comm, Failure, Op, Reducer, ReducerOptions, SimOptions};
use syncblob::{Blob, Context, Error, ErrorKind, Head, Part, Result};

fn run<R: Send>(ranks: Vec<Comm>, task: impl Fn(Comm) -> R + Sync) -> Vec<R> {
    let task = &task;
    thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.into_iter().map(|comm| scope.spawn(move || task(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn alone() -> Comm {
    SimOptions::new().ranks(1).unwrap().remove(0)
}

#[test]
fn every_op_combines_the_values_of_all_ranks() {
    let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
    for size in [1, 2, 3, 7] {
        run(SimOptions::new().ranks(size).unwrap(), |comm| {
            assert_eq!(comm.size(), size);
            let own = comm.rank() as f64;
            let (last, size) = (size as f64 - 1.0, size as f64);
            for (op, expected) in [
                (Op::Sum, size * last / 2.0),
                (Op::Mean, last / 2.0),
                (Op::Min, 0.0),
                (Op::Max, last),
            ] {
                let mut values = [own, own + 1.0];
                comm.all_reduce(op, &mut values).unwrap();
                let more = if op == Op::Sum { size } else { 1.0 };
                assert!(is_near(values[0], expected), "{op:?}: {values:?}");
                assert!(is_near(values[1], expected + more), "{op:?}: {values:?}");
                let mut blob = Blob::<f32>::full([3], own as f32).unwrap();
                comm.all_reduce_blobs(op, Part::Data, [&mut blob]).unwrap();
                let near =
                    blob.data().unwrap().iter().all(|&value| is_near(value.into(), expected));
                assert!(near, "{op:?}: {blob:?}");
            }
        });
    }
}

#[cfg(feature = "half")]
#[test]
fn halves_are_combined_too() {
    use half::{bf16, f16};
    run(SimOptions::new().ranks(3).unwrap(), |comm| {
        let own = comm.rank() as f32;
        let mut values = [f16::from_f32(own), f16::from_f32(2048.0)];
        comm.all_reduce(Op::Sum, &mut values).unwrap();
        assert_eq!(values.map(f16::to_f32), [3.0, 6144.0]);
        let mut blob = Blob::<bf16>::zeros([2]).unwrap();
        blob.diff_mut().unwrap().fill(bf16::from_f32(own));
        let mut reducer = Reducer::new(&comm, [&blob]).unwrap();
        reducer.step(|step| step.ready(&mut blob)).unwrap();
        assert_eq!(blob.diff().unwrap(), [bf16::from_f32(1.0); 2]);
    });
}

#[test]
fn every_rank_gets_the_values_of_the_root() {
    run(SimOptions::new().ranks(3).unwrap(), |comm| {
        let mut numbers = [comm.rank() as i32; 5];
        comm.broadcast(2, &mut numbers).unwrap();
        assert_eq!(numbers, [2; 5]);
        let mut blob = Blob::<u8>::full([4], comm.rank() as u8).unwrap();
        // The root may share its memory, because a broadcast only reads the root's blob.
        let kept = (comm.rank() == 1).then(|| blob.handle(Part::Data).unwrap());
        comm.broadcast_blobs(1, Part::Data, [&mut blob]).unwrap();
        assert_eq!(blob.data().unwrap(), [1; 4]);
        drop(kept);
        comm.barrier().unwrap();
        let error = comm.broadcast(3, &mut numbers).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.message(), "rank 3 does not exist: there are 3 ranks");
    });
}

#[test]
fn shared_blobs_are_refused_before_anything_is_sent() {
    let comm = alone();
    let (mut a, mut b) = (Blob::<f32>::full([2], 1.0).unwrap(), Blob::<f32>::zeros([2]).unwrap());
    b.share(Part::Data, &a).unwrap();
    let result = comm.all_reduce_blobs(Op::Sum, Part::Data, [&mut a, &mut b]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Shared);
    comm.all_reduce_blobs(Op::Sum, Part::Diff, [&mut a, &mut b]).unwrap();
    b.share(Part::Diff, &a).unwrap();
    let mut reducer = Reducer::<f32>::new(&comm, [&a]).unwrap();
    let result: Result<()> = reducer.step(|step| step.ready(&mut a));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Shared);
    drop(b);
    reducer.step(|step| step.ready(&mut a)).unwrap();
}

struct Layer {
    weights: Blob<f32>,
    bias: Blob<f32>,
}

fn net(context: &Context) -> Result<Vec<Layer>> {
    (1..5)
        .map(|i| {
            let weights = Blob::in_context(context).zeros([i * 100, i])?;
            Ok(Layer { weights, bias: Blob::in_context(context).zeros([i])? })
        })
        .collect()
}

fn blobs(net: &[Layer]) -> impl Iterator<Item = &Blob<f32>> {
    net.iter().flat_map(|layer| [&layer.weights, &layer.bias])
}

#[test]
fn a_step_writes_the_mean_to_every_diff_for_any_buckets_and_on_devices() {
    for (device, bucket_bytes) in [("cpu", 0), ("cpu", 1000), ("sim:0", 1000), ("sim:0", 1 << 20)] {
        let options = SimOptions::new().delay(Duration::from_micros(50)).seed(7);
        run(options.ranks(3).unwrap(), |comm| -> Result<()> {
            let context = Context::builder().device(device).build()?;
            let mut net = net(&context)?;
            let options = ReducerOptions::new().bucket_bytes(bucket_bytes);
            let mut reducer = options.register(&comm, blobs(&net))?;
            for iteration in 0..3 {
                let diff = (comm.rank() + iteration) as f32;
                reducer.step(|step| {
                    for layer in net.iter_mut().rev() {
                        layer.bias.diff_mut()?.fill(diff);
                        if device == "sim:0" {
                            layer.bias.gpu_mut_ptr(Part::Diff)?;
                        }
                        step.ready(&mut layer.bias)?;
                        layer.weights.diff_mut()?.fill(2.0 * diff);
                        if device == "sim:0" {
                            layer.weights.gpu_mut_ptr(Part::Diff)?;
                        }
                        step.ready(&mut layer.weights)?;
                    }
                    Ok::<_, Error>(())
                })?;
                let in_place = device == "sim:0" && bucket_bytes == 1000;
                let large = &net[3].weights;
                assert_eq!(large.head(Part::Diff)? == Head::AtGpu, in_place);
                let mean = 1.0 + iteration as f32;
                for layer in &net {
                    assert!(layer.bias.diff()?.iter().all(|&value| value == mean));
                    assert!(layer.weights.diff()?.iter().all(|&value| value == 2.0 * mean));
                }
            }
            Ok(())
        })
        .into_iter()
        .collect::<Result<()>>()
        .unwrap();
    }
}

#[test]
fn an_error_for_ranks_that_differ_contains_both_sides() {
    let results = run(SimOptions::new().ranks(2).unwrap(), |comm| {
        let blob = Blob::<f32>::zeros([2 + comm.rank()]).unwrap();
        Reducer::new(&comm, [&blob]).map(drop).unwrap_err()
    });
    for error in results {
        assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
        assert_eq!(error.message(), "blob 0 is f32 (2) at rank 0, f32 (3) at rank 1");
    }
}

#[test]
fn a_blob_that_is_not_registered_or_not_ready_is_an_error() {
    let comm = alone();
    let (mut a, b) = (Blob::<f32>::zeros([2]).unwrap(), Blob::<f32>::zeros([2]).unwrap());
    let mut stranger = Blob::<f32>::zeros([2]).unwrap();
    let mut reducer = Reducer::new(&comm, [&a, &b]).unwrap();
    let result: Result<()> = reducer.step(|step| step.ready(&mut stranger));
    assert_eq!(result.unwrap_err().message(), "the blob was not registered");
    comm.barrier().unwrap();
    a.reshape([3]).unwrap();
    let result: Result<()> = reducer.step(|step| step.ready(&mut a));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ShapeMismatch);
    a.reshape([2]).unwrap();
    let result = reducer.step(|step| {
        step.ready(&mut a)?;
        assert_eq!(comm.barrier().unwrap_err().kind(), ErrorKind::InvalidArgument);
        Ok::<_, Error>(())
    });
    assert_eq!(result.unwrap_err().message(), "blob 1 was not ready");
    assert_eq!(comm.barrier().unwrap_err().kind(), ErrorKind::CommFailure);
    let result: Result<()> = reducer.step(|_| unreachable!());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::CommFailure);
    a.diff_mut().unwrap().fill(1.0);
}

#[test]
fn a_step_that_panics_ends_before_its_blobs_are_free() {
    let options = SimOptions::new().delay(Duration::from_millis(20));
    run(options.ranks(2).unwrap(), |comm| {
        let mut blob = Blob::<f32>::zeros([1000]).unwrap();
        let mut reducer = ReducerOptions::new().bucket_bytes(0).register(&comm, [&blob]).unwrap();
        let result = catch_unwind(AssertUnwindSafe(|| {
            reducer.step(|step| {
                step.ready(&mut blob)?;
                if comm.rank() == 0 {
                    panic!("in a step");
                }
                Ok::<_, Error>(())
            })
        }));
        assert_eq!(result.is_err(), comm.rank() == 0);
        blob.diff_mut().unwrap().fill(1.0);
        drop(blob);
    });
}

#[derive(Debug, PartialEq)]
enum Mine {
    Stop,
    Library(ErrorKind),
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Library(error.kind())
    }
}

#[test]
fn an_error_of_the_callers_ends_the_step() {
    let comm = alone();
    let mut blob = Blob::<f32>::zeros([2]).unwrap();
    let mut reducer = Reducer::new(&comm, [&blob]).unwrap();
    assert_eq!(reducer.step(|_| Err::<(), _>(Mine::Stop)), Err(Mine::Stop));
    let answer = reducer.step(|step| {
        step.ready(&mut blob)?;
        Ok::<_, Mine>(42)
    });
    assert_eq!(answer, Ok(42));
    let result = reducer.step(|step| {
        step.ready(&mut blob)?;
        Err::<(), _>(Mine::Stop)
    });
    assert_eq!(result, Err(Mine::Stop));
    let result = reducer.step(|_| Ok(()));
    assert_eq!(result, Err(Mine::Library(ErrorKind::CommFailure)));
}

#[test]
fn a_failure_at_any_operation_is_an_error_at_every_rank() {
    for failure in [Failure::Now, Failure::Stop] {
        for nth in 1..4 {
            let ranks = SimOptions::new().limit(Duration::from_millis(200)).ranks(3).unwrap();
            run(ranks, |comm| {
                let mut net = net(&Context::host()).unwrap();
                let options = ReducerOptions::new().bucket_bytes(1000);
                let mut reducer = options.register(&comm, blobs(&net)).unwrap();
                if comm.rank() == 1 {
                    comm.fail(nth, failure).unwrap();
                }
                let result = reducer.step(|step| {
                    for layer in net.iter_mut().rev() {
                        step.ready(&mut layer.bias)?;
                        step.ready(&mut layer.weights)?;
                    }
                    Ok::<_, Error>(())
                });
                assert_eq!(result.unwrap_err().kind(), ErrorKind::CommFailure);
                for layer in &mut net {
                    layer.weights.diff_mut().unwrap().fill(0.0);
                    layer.bias.diff_mut().unwrap().fill(0.0);
                }
            });
        }
    }
}

/// An engine of one rank whose requests never complete and cannot be abandoned.
mod stuck {
    use std::ffi::c_void;
    use std::ptr::{self, NonNull};

    use syncblob::comm::Comm;
    use syncblob::sys;

    unsafe extern "C" fn open(
        _: *mut c_void,
        out: *mut *mut c_void,
        rank: *mut i32,
        size: *mut i32,
        _: *mut sys::sb_error,
    ) -> sys::sb_status {
        // SAFETY: each pointer from the library is valid for one value.
        unsafe { (*out, *rank, *size) = (out.cast(), 0, 1) };
        sys::SB_OK
    }

    unsafe extern "C" fn close(_: *mut c_void, _: i32) {}

    unsafe extern "C" fn collective(
        _: *mut c_void,
        _: i32,
        _: *const sys::sb_comm_buffer,
        _: *mut sys::sb_error,
    ) -> sys::sb_status {
        sys::SB_OK
    }

    unsafe extern "C" fn start(
        _: *mut c_void,
        _: sys::sb_comm_op,
        buffer: *const sys::sb_comm_buffer,
        out: *mut *mut c_void,
        _: *mut sys::sb_error,
    ) -> sys::sb_status {
        // SAFETY: the library's pointers are valid.
        unsafe { *out = (*buffer).ptr };
        sys::SB_OK
    }

    unsafe extern "C" fn test(
        _: *mut c_void,
        _: *mut c_void,
        done: *mut i32,
        _: *mut sys::sb_error,
    ) -> sys::sb_status {
        // SAFETY: the library's pointers are valid.
        unsafe { *done = 0 };
        sys::SB_OK
    }

    unsafe extern "C" fn wait(
        _: *mut c_void,
        _: *mut c_void,
        err: *mut sys::sb_error,
    ) -> sys::sb_status {
        let (code, text) = (sys::SB_ERR_COMM_FAILURE, c"the others are gone");
        // SAFETY: the library's pointers are valid.
        unsafe { sys::sb_error_fill(err, code, 0, text.as_ptr()) }
    }

    unsafe extern "C" fn abandon(_: *mut c_void, _: *mut c_void) -> i32 {
        0
    }

    const ENGINE: sys::sb_comm_engine = sys::sb_comm_engine {
        struct_size: size_of::<sys::sb_comm_engine>(),
        abi_version: sys::SB_COMM_ENGINE_ABI_VERSION,
        flags: 0,
        name: c"stuck".as_ptr(),
        open: Some(open),
        close: Some(close),
        all_reduce: Some(collective),
        broadcast: Some(collective),
        barrier: None,
        takes: None,
        start: Some(start),
        test: Some(test),
        wait: Some(wait),
        abandon: Some(abandon),
    };

    pub fn comm() -> Comm {
        let mut raw = ptr::null_mut();
        let engine = Box::leak(Box::new(ENGINE));
        // SAFETY: the table is static, and its functions fulfil the contract of an engine.
        unsafe {
            let (context, user) = (ptr::null_mut(), ptr::null_mut());
            let made = sys::sb_comm_create(context, engine, user, &mut raw, ptr::null_mut());
            assert_eq!(made, sys::SB_OK);
            Comm::from_raw(NonNull::new(raw).unwrap())
        }
    }
}

#[test]
fn a_blob_releases_a_diff_that_the_engine_may_still_write() {
    for is_panic in [false, true] {
        let comm = stuck::comm();
        let (mut a, mut b) = (Blob::<f32>::zeros([4]).unwrap(), Blob::<f32>::zeros([4]).unwrap());
        let mut reducer = ReducerOptions::new().bucket_bytes(0).register(&comm, [&a, &b]).unwrap();
        b.diff_mut().unwrap().fill(2.0);
        let engines = b.diff().unwrap().as_ptr();
        a.diff_mut().unwrap().fill(1.0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            reducer.step(|step| {
                step.ready(&mut b)?;
                assert!(!is_panic);
                step.ready(&mut a)
            })
        }));
        assert_eq!(result.is_err(), is_panic);
        if let Ok(result) = result {
            assert_eq!(result.unwrap_err().message(), "the others are gone");
        }
        assert_ne!(b.diff().unwrap().as_ptr(), engines);
        assert_eq!(b.diff().unwrap(), [0.0; 4]);
        b.diff_mut().unwrap().fill(3.0);
        // SAFETY: the engine's memory is never freed.
        assert_eq!(unsafe { *engines }, 2.0);
    }
}

#[test]
fn impossible_numbers_of_ranks_are_refused() {
    for size in [0, 4097, usize::MAX] {
        let error = SimOptions::new().ranks(size).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{size}");
    }
}
