#![cfg(feature = "testing")]

use syncblob::sim::{Failure, Operation, Schedule};
use syncblob::{Blob, Context, ErrorKind, Head, MemoryHandle, Part, Side, Storage, Stream};

fn simulated() -> Context {
    Context::builder().device("sim:0").build().unwrap()
}

#[test]
fn nothing_is_allocated_until_it_is_used() {
    let context = simulated();
    let before = context.stats().unwrap().host_bytes;
    let mut memory = context.memory(1 << 20).unwrap();
    assert_eq!((memory.size(), memory.head()), (1 << 20, Head::Uninitialized));
    assert!(context.stats().unwrap().host_bytes - before < 1000);
    assert_eq!(
        (memory.storage(Side::Host), memory.storage(Side::Device)),
        (Storage::None, Storage::None)
    );
    assert!(memory.data().unwrap().iter().all(|&byte| byte == 0));
    memory.data_mut().unwrap()[3] = 5;
    assert_eq!((memory.head(), memory.context()), (Head::AtCpu, context));
    let kind = MemoryHandle::new(usize::MAX).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::SizeOverflow);
}

#[test]
fn an_overwrite_copies_nothing_and_needs_all_bytes() {
    let context = simulated();
    let mut m = context.memory(4).unwrap();
    m.gpu_mut_ptr().unwrap();
    assert_eq!(m.overwrite(&[1; 3]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    m.overwrite(&[1, 2, 3, 4]).unwrap();
    assert_eq!((m.data().unwrap(), m.head()), (&[1, 2, 3, 4][..], Head::AtCpu));
    // SAFETY: `poke` writes every byte before any code reads the memory.
    let to = unsafe { m.overwrite_gpu_ptr(None).unwrap() };
    context.sim().unwrap().poke(to, &[9; 4]).unwrap();
    assert_eq!(context.stats().unwrap().uploads, 0);
    assert_eq!(m.data().unwrap(), [9; 4]);
    m.clear().unwrap();
    assert_eq!(m.data().unwrap(), [0; 4]);
    assert_eq!(context.stats().unwrap().downloads, 2);
}

#[test]
fn blobs_overwrite_without_a_copy_unless_memory_holds_more() {
    let context = simulated();
    let mut blob = Blob::<f32>::in_context(&context).from_fn([4], |i| i as f32).unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap();
    blob.fill(Part::Data, 7.0).unwrap();
    assert_eq!((blob.data().unwrap(), context.stats().unwrap().downloads), (&[7.0; 4][..], 0));
    blob.gpu_mut_ptr(Part::Data).unwrap();
    blob.reshape([2]).unwrap();
    blob.overwrite(Part::Data, &[1.0, 2.0]).unwrap();
    blob.reshape([4]).unwrap();
    assert_eq!(
        (blob.data().unwrap(), context.stats().unwrap().downloads),
        (&[1.0, 2.0, 7.0, 7.0][..], 1)
    );
    assert_eq!(blob.overwrite(Part::Diff, &[1.0]).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn a_side_is_evicted_unless_it_holds_the_only_bytes() {
    let context = simulated();
    let mut blob = Blob::<f32>::in_context(&context).full([1000], 1.0).unwrap();
    let memory = blob.memory_mut(Part::Data).unwrap();
    assert_eq!(memory.evict(Side::Host).unwrap_err().kind(), ErrorKind::InvalidArgument);
    memory.gpu_ptr().unwrap();
    memory.evict(Side::Host).unwrap();
    assert_eq!((memory.head(), memory.storage(Side::Host)), (Head::AtGpu, Storage::None));
    memory.data().unwrap();
    memory.evict(Side::Device).unwrap();
    assert_eq!((memory.head(), memory.storage(Side::Device)), (Head::AtCpu, Storage::None));
    assert_eq!(context.stats().unwrap().device_bytes, 0);
    assert_eq!(blob.data().unwrap(), [1.0; 1000]);
}

#[test]
fn a_queued_copy_is_waited_for_by_its_guard_or_by_the_next_call() {
    for forget in [false, true] {
        let context = simulated();
        let sim = context.sim().unwrap();
        sim.set_schedule(Schedule::Lazy).unwrap();
        let stream = sim.stream().unwrap();
        let mut blob = Blob::<f32>::in_context(&context).full([1000], 2.0).unwrap();
        let copy = blob.memory(Part::Data).unwrap().push(stream.as_stream()).unwrap();
        if forget {
            std::mem::forget(copy);
        } else {
            copy.wait().unwrap();
        }
        blob.data_mut().unwrap().fill(3.0);
        assert_eq!(blob.head(Part::Data).unwrap(), Head::AtCpu);
        blob.gpu_mut_ptr(Part::Data).unwrap();
        let pull = blob.memory(Part::Data).unwrap().pull(stream.as_stream()).unwrap();
        drop(pull);
        assert_eq!(blob.data().unwrap(), [3.0; 1000]);
    }
}

#[test]
fn a_prefetch_is_allowed_with_any_head() {
    let context = simulated();
    let own = context.stream().unwrap();
    let blob = Blob::<f32>::in_context(&context).zeros([10]).unwrap();
    let memory = blob.memory(Part::Data).unwrap();
    let kind = memory.push(own).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Uninitialized);
    memory.prefetch(Side::Device, own).unwrap().wait().unwrap();
    memory.prefetch(Side::Host, own).unwrap().wait().unwrap();
    assert_eq!((memory.head(), blob.data().unwrap()), (Head::Synced, &[0.0; 10][..]));
    let host = Blob::<f32>::zeros([10]).unwrap();
    let on_host = host.memory(Part::Diff).unwrap();
    on_host.prefetch(Side::Host, Stream::DEFAULT).unwrap().wait().unwrap();
    let kind = on_host.prefetch(Side::Device, Stream::DEFAULT).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::NoDevice);
}

#[test]
fn a_failed_copy_is_reported_and_the_head_goes_back() {
    let context = simulated();
    let sim = context.sim().unwrap();
    let blob = Blob::<f32>::in_context(&context).full([4], 1.0).unwrap();
    sim.fail(Operation::Upload, 1, Failure::Later).unwrap();
    let copy = blob.memory(Part::Data).unwrap().push(context.stream().unwrap()).unwrap();
    assert_eq!(blob.head(Part::Data).unwrap(), Head::Synced);
    assert_eq!(copy.wait().unwrap_err().kind(), ErrorKind::DeviceFailure);
    assert_eq!(blob.head(Part::Data).unwrap(), Head::AtCpu);
    sim.fail(Operation::Upload, 1, Failure::Later).unwrap();
    std::mem::forget(blob.memory(Part::Data).unwrap().push(context.stream().unwrap()).unwrap());
    assert_eq!(blob.close().unwrap_err().kind(), ErrorKind::DeviceFailure);
    context.device_status().unwrap();
    context.close().unwrap();
}

#[test]
fn debug_never_transfers_nor_waits() {
    let context = simulated();
    let sim = context.sim().unwrap();
    sim.set_schedule(Schedule::Lazy).unwrap();
    let stream = sim.stream().unwrap();
    let mut blob = Blob::<f32>::in_context(&context).from_fn([20], |i| i as f32).unwrap();
    let text = format!("{blob:?}");
    assert!(text.contains("AtCpu") && text.contains("7.0, .."), "{text}");
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let pull = blob.memory(Part::Data).unwrap().pull(stream.as_stream()).unwrap();
    let waits = || sim.calls(Operation::EventWait).unwrap();
    let before = waits();
    let text = format!("{blob:?} {pull:?}");
    assert!(text.contains("Synced") && !text.contains("7.0"), "{text}");
    assert_eq!(waits(), before, "the formatting waited for the copy");
    pull.wait().unwrap();
    assert!(waits() > before);
}

#[test]
fn a_simulated_device_counts_its_calls() {
    let context = simulated();
    let sim = context.sim().unwrap();
    let calls = || [Operation::Upload, Operation::Download, Operation::Any].map(|o| sim.calls(o));
    let calls = || calls().map(Result::unwrap);
    assert_eq!(calls(), [0, 0, 0]);
    let mut blob = Blob::<f32>::in_context(&context).full([4], 1.0).unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let [uploads, downloads, all] = calls();
    assert_eq!((uploads, downloads), (1, 0));
    assert!(all >= 2, "an allocation too: {all}");
    blob.data().unwrap();
    assert_eq!(calls()[..2], [1, 1]);
}

#[test]
fn streams_of_another_context_are_refused() {
    let (context, other) = (simulated(), simulated());
    let stream = other.sim().unwrap().stream().unwrap();
    let mut memory = context.memory(8).unwrap();
    let kind = memory.gpu_ptr_on(stream.as_stream()).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::WrongDevice);
    let own = context.sim().unwrap().stream().unwrap();
    assert!(!memory.gpu_mut_ptr_on(own.as_stream()).unwrap().is_null());
    assert!(!memory.gpu_ptr_on(own.as_stream()).unwrap().is_null());
    context.forget_stream(own.as_stream()).unwrap();
    assert!(Context::host().stream().is_err() && Context::host().sim().is_none());
    assert_eq!(Context::host().device_status().unwrap_err().kind(), ErrorKind::NoDevice);
}

#[test]
fn a_stream_is_refused_in_another_context_even_if_the_device_accepts_it() {
    for device in ["sim:0", "cuda:0"] {
        let make = || Context::builder().device(device).build();
        let (Ok(context), Ok(other)) = (make(), make()) else { continue };
        let mut memory = context.memory(8).unwrap();
        memory.data_mut().unwrap().fill(1);
        let asked = || context.sim().map(|sim| sim.calls(Operation::CheckStream).unwrap());
        let before = asked();
        let stream = other.stream().unwrap();
        let wrong = [
            memory.push(stream).map(drop),
            memory.prefetch(Side::Device, stream).map(drop),
            memory.gpu_ptr_on(stream).map(drop),
            memory.gpu_mut_ptr_on(stream).map(drop),
        ];
        for result in wrong {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::WrongDevice, "{device}");
        }
        assert_eq!(asked(), before);
        memory.push(context.stream().unwrap()).unwrap().wait().unwrap();
        drop(other);
        memory.gpu_mut_ptr().unwrap();
        assert_eq!(memory.data().unwrap(), [1; 8]);
        context.synchronize().unwrap();
    }
}

#[test]
fn a_peek_outside_the_devices_memory_is_an_error() {
    let context = simulated();
    let blob = Blob::<f32>::in_context(&context).full([2], 1.0).unwrap();
    let (sim, start) = (context.sim().unwrap(), blob.gpu_ptr(Part::Data).unwrap().cast());
    for (bytes, kind) in [(9, ErrorKind::DeviceFailure), (usize::MAX, ErrorKind::OutOfMemory)] {
        assert_eq!(sim.peek(start, bytes).unwrap_err().kind(), kind);
    }
    assert!(sim.peek(start, 0).unwrap().is_empty());
}

#[test]
fn a_blobs_shape_is_on_the_device_too() {
    let context = simulated();
    let blob = Blob::<f32>::in_context(&context).zeros([2, 3]).unwrap();
    let bytes = context.sim().unwrap().peek(blob.gpu_shape_ptr().unwrap().cast(), 16).unwrap();
    assert_eq!(bytes, [2_i64, 3].map(i64::to_ne_bytes).as_flattened());
}
