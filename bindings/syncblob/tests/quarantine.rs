//! What the device may still use is neither freed nor given back to its owner,
//! however many waits fail, and whoever loses the device meanwhile. The device
//! runs its work as late as it can.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, ptr, thread};

use syncblob::sim::{Failure, Operation, Schedule, Sim};
use syncblob::{Blob, Context, ErrorKind, MemoryHandle, Part, Side};
use syncblob_sys as sys;

const COUNT: usize = 64;
const BYTES: usize = 256;

/// A context that ends asks those of all tests for what they keep, and nobody waits for another's
/// asking: so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn simulated() -> Context {
    Context::builder().device("sim:0").build().unwrap()
}

fn sim(context: &Context) -> Sim<'_> {
    context.sim().unwrap()
}

/// From the `nth` call of each on, `times` of them fail.
fn fail_run(context: &Context, from: &[(Operation, u32)], times: u32) {
    for (operation, nth) in from {
        for later in 0..times {
            sim(context).fail_also(*operation, nth + later, Failure::Now).unwrap();
        }
    }
}

fn fail_no_more(context: &Context) {
    sim(context).fail(Operation::Any, 0, Failure::Now).unwrap();
}

/// When an owner's memory came back.
#[derive(Default)]
struct Story {
    ended: AtomicUsize,
    early: AtomicBool,
}

/// Memory of the caller's that is copied to the device; when it comes back, it
/// looks whether that has happened.
struct Loan {
    bytes: Vec<u8>,
    copied_to: usize,
    context: Context,
    story: Arc<Story>,
}

impl AsRef<[u8]> for Loan {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.story.ended.fetch_add(1, Ordering::SeqCst);
        // The device's side goes after the host's; nothing is copied to what is gone.
        let there = sim(&self.context).peek(self.copied_to as *const u8, self.bytes.len());
        let early = there.is_ok_and(|there| there != self.bytes);
        self.story.early.fetch_or(early, Ordering::SeqCst);
    }
}

/// A memory whose newest bytes are lent ones, with room for them on the device.
fn lent(context: &Context, bytes: usize) -> (MemoryHandle, Arc<Story>) {
    let story = Arc::new(Story::default());
    let mut memory = MemoryHandle::new_in(context, bytes).unwrap();
    let copied_to = memory.gpu_data_mut_ptr().unwrap() as usize;
    let (context, seen) = (context.clone(), Arc::clone(&story));
    memory.set_shared(Loan { bytes: vec![7; bytes], copied_to, context, story: seen }).unwrap();
    (memory, story)
}

fn assert_came_back_in_time(story: &Story) {
    assert_eq!(story.ended.load(Ordering::SeqCst), 1);
    assert!(!story.early.load(Ordering::SeqCst), "the loan came back before it was copied");
}

fn assert_nothing_is_kept(context: &Context) {
    let stats = context.stats().unwrap();
    assert_eq!((stats.quarantined_bytes, stats.borrowed_bytes, stats.device_bytes), (0, 0, 0));
}

/// One thread loses the device, whose streams will not be waited for then;
/// another gives up what a queued copy reads.
fn lose_beside(give_up: fn(MemoryHandle)) {
    let context = simulated();
    let stream = sim(&context).stream().unwrap();
    let mut spoiled = Blob::<f32>::zeros_in(&context, [COUNT]).unwrap();
    spoiled.gpu_data_mut_ptr().unwrap();
    let (memory, story) = lent(&context, BYTES);
    sim(&context).set_schedule(Schedule::Lazy).unwrap();
    mem::forget(memory.push(stream.as_stream()).unwrap());
    sim(&context).fail(Operation::Scale, 1, Failure::Later).unwrap();
    fail_run(&context, &[(Operation::StreamSynchronize, 2)], 15); // the first tells of the scaling
    thread::scope(|scope| {
        scope.spawn(|| {
            let error = spoiled.scale_data(2.0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DeviceLost);
        });
        scope.spawn(|| {
            while context.device_status().is_ok() {
                thread::yield_now();
            }
            give_up(memory);
        });
    });
    fail_no_more(&context);
    assert_came_back_in_time(&story);
    drop((stream, spoiled));
    context.trim();
    assert_nothing_is_kept(&context);
}

#[test]
fn a_lost_device_ends_its_copies_before_their_memory_comes_back() {
    let _alone = alone();
    lose_beside(drop);
    lose_beside(|mut memory| drop(memory.evict(Side::Host)));
    lose_beside(|mut memory| drop(memory.set(vec![0.0_f64; BYTES / 8])));
    lose_beside(|mut memory| drop(memory.data_mut().map(drop)));
}

#[test]
fn a_loan_outlives_any_number_of_waits_that_fail() {
    let _alone = alone();
    use Operation::{EventRecord, EventWait, StreamSynchronize};
    for times in 1..=5 {
        let context = simulated();
        let stream = sim(&context).stream().unwrap();
        let (memory, story) = lent(&context, BYTES);
        sim(&context).set_schedule(Schedule::Lazy).unwrap();
        mem::forget(memory.push(stream.as_stream()).unwrap());
        fail_run(&context, &[(EventWait, 1), (EventRecord, 1), (StreamSynchronize, 1)], times);
        drop(memory);
        let kept = context.stats().unwrap().quarantined_bytes;
        assert_eq!(kept, if story.ended.load(Ordering::SeqCst) == 0 { BYTES as u64 } else { 0 });
        assert_eq!(kept > 0, times > 3, "after {times} failures of each wait");
        fail_no_more(&context);
        context.synchronize().unwrap();
        assert_came_back_in_time(&story);
        drop(stream);
        assert_nothing_is_kept(&context);
    }
}

#[test]
fn a_loan_outlives_a_copy_that_got_no_event() {
    let _alone = alone();
    use Operation::{EventRecord, StreamSynchronize};
    for times in 1..=5 {
        let context = simulated();
        let stream = sim(&context).stream().unwrap();
        let (memory, story) = lent(&context, BYTES);
        sim(&context).set_schedule(Schedule::Lazy).unwrap();
        // The first event is that of the order before the copy.
        fail_run(&context, &[(EventRecord, 2), (StreamSynchronize, 1)], times);
        let error = memory.push(stream.as_stream()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceFailure);
        drop(memory);
        fail_no_more(&context);
        context.synchronize().unwrap();
        assert_came_back_in_time(&story);
        drop(stream);
        assert_nothing_is_kept(&context);
    }
}

/// A kernel of the caller's.
struct Kernel {
    context: Context,
    uses: *const c_void,
    reached: Option<bool>,
}

unsafe extern "C" fn run(user: *mut c_void) {
    // SAFETY: the test keeps it, and reads it when the device is done.
    let kernel = unsafe { &mut *user.cast::<Kernel>() };
    // SAFETY: the context is live.
    let found = unsafe { sys::sb_sim_address(kernel.context.as_ptr(), kernel.uses, BYTES) };
    kernel.reached = Some(!found.is_null());
}

/// The tensor is an owner, beside which nobody may evict by safe calls.
#[test]
fn a_tensor_s_storage_outlives_the_work_that_the_memory_knew_of() {
    let _alone = alone();
    let context = simulated();
    let stream = sim(&context).stream().unwrap();
    let blob = Blob::<f32>::zeros_in(&context, [COUNT]).unwrap();
    blob.data().unwrap();
    let memory = blob.data_handle().unwrap();
    let uses = memory.gpu_data_ptr_on(stream.as_stream()).unwrap().cast();
    let tensor = blob.to_dlpack(Part::Data, Side::Device).unwrap();
    let mut kernel = Kernel { context: context.clone(), uses, reached: None };
    // SAFETY: no other thread uses the memory, and nobody reads its device side but the kernel,
    // which lives until the device is done.
    unsafe {
        let null = ptr::null_mut();
        assert_eq!(sys::sb_mem_evict_gpu(memory.as_ptr(), null), sys::SB_OK);
        sim(&context).set_schedule(Schedule::Lazy).unwrap();
        let (user, on) = ((&raw mut kernel).cast(), stream.as_stream().as_raw().cast());
        assert_eq!(sys::sb_sim_launch(context.as_ptr(), on, Some(run), user, null), sys::SB_OK);
    }
    drop((blob, memory, tensor));
    context.synchronize().unwrap();
    assert_eq!(kernel.reached, Some(true));
    drop(stream);
    assert_nothing_is_kept(&context);
}

#[test]
fn what_a_context_leaves_behind_is_counted() {
    let _alone = alone();
    let host = Context::host();
    let before = host.stats().unwrap().leaked_bytes;
    let context = simulated();
    let mut memory = MemoryHandle::new_in(&context, BYTES).unwrap();
    memory.set(vec![0.0_f64; BYTES / 8]).unwrap();
    memory.gpu_data_mut_ptr().unwrap();
    sim(&context).set_schedule(Schedule::Lazy).unwrap();
    fail_run(&context, &[(Operation::Any, 2)], 16); // the copy is the first
    assert!(memory.data().is_err());
    drop((memory, context));
    assert_eq!(host.stats().unwrap().leaked_bytes, before + BYTES as u64);
    for _ in 0..8 {
        host.trim(); // until the failures are used up
    }
    assert_eq!(host.stats().unwrap().leaked_bytes, before);
}
