//! Memory that the device may still use is neither freed nor returned to its owner, even if many
//! waits fail or another thread loses the device. The device runs its work as late as possible.
#![cfg(feature = "testing")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, thread};

use syncblob::sim::{Failure, Operation, Schedule, Sim};
use syncblob::{Blob, Context, ErrorKind, MemoryHandle, Part, Side};

const COUNT: usize = 64;
const BYTES: usize = 256;

/// Makes the tests run one at a time: a context that ends checks the quarantine that the contexts
/// of all tests left behind, and does not wait while another thread makes this check.
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

/// Makes `times` calls of each operation fail, from the given call on.
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

/// Whether and when an owner's memory was returned.
#[derive(Default)]
struct Story {
    ended: AtomicUsize,
    early: AtomicBool,
}

/// The caller's memory, which is copied to the device. Its drop checks whether the copy has been
/// made.
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
        // The device side is released after the host side, so it can be read here. If the read
        // fails, the device memory was freed: no copy to it can follow, and the drop was not early.
        let there = sim(&self.context).peek(self.copied_to as *const u8, self.bytes.len());
        let early = there.is_ok_and(|there| there != self.bytes);
        self.story.early.fetch_or(early, Ordering::SeqCst);
    }
}

/// Returns a memory whose newest bytes are a loan, with device memory allocated.
fn lent(context: &Context, bytes: usize) -> (MemoryHandle, Arc<Story>) {
    let story = Arc::new(Story::default());
    let mut memory = context.memory(bytes).unwrap();
    let copied_to = memory.gpu_mut_ptr().unwrap() as usize;
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

/// One thread loses the device, whose streams then cannot be waited for. Another thread releases
/// memory that a queued copy reads.
fn lose_beside(give_up: fn(MemoryHandle)) {
    let context = simulated();
    let stream = sim(&context).stream().unwrap();
    let mut spoiled = Blob::<f32>::in_context(&context).zeros([COUNT]).unwrap();
    spoiled.gpu_mut_ptr(Part::Data).unwrap();
    let (memory, story) = lent(&context, BYTES);
    sim(&context).set_schedule(Schedule::Lazy).unwrap();
    mem::forget(memory.push(stream.as_stream()).unwrap());
    sim(&context).fail(Operation::Scale, 1, Failure::Now).unwrap();
    fail_run(&context, &[(Operation::StreamSynchronize, 1)], 15);
    thread::scope(|scope| {
        scope.spawn(|| {
            let error = spoiled.scale(Part::Data, 2.0).unwrap_err();
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
fn what_a_context_leaves_behind_is_counted() {
    let _alone = alone();
    let host = Context::host();
    let before = host.stats().unwrap().leaked_bytes;
    let context = simulated();
    let mut memory = context.memory(BYTES).unwrap();
    memory.set(vec![0.0_f64; BYTES / 8]).unwrap();
    memory.gpu_mut_ptr().unwrap();
    sim(&context).set_schedule(Schedule::Lazy).unwrap();
    fail_run(&context, &[(Operation::Any, 2)], 16); // call 1 is the copy
    assert!(memory.data().is_err());
    drop((memory, context));
    assert_eq!(host.stats().unwrap().leaked_bytes, before + BYTES as u64);
    for _ in 0..8 {
        host.trim(); // retries until no failures are armed
    }
    assert_eq!(host.stats().unwrap().leaked_bytes, before);
}
