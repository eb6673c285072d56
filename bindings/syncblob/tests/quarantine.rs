//! Tests that memory which the device may still use is not freed.
#![cfg(feature = "testing")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, thread};

use syncblob::sim::{Failure, Operation, Schedule, Sim};
use syncblob::{Blob, Context, ErrorKind, MemoryHandle, Part, Side};

const COUNT: usize = 64;
const BYTES: usize = 256;

/// Runs one test at a time, because only one context at a time checks quarantined storage when it
/// ends.
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

fn fail_run(context: &Context, from: &[(Operation, u32)], times: u32) {
    for (operation, nth) in from {
        for later in 0..times {
            sim(context).fail_also(*operation, nth + later, Failure::Now).unwrap();
        }
    }
}

fn cancel_failures(context: &Context) {
    sim(context).fail(Operation::Any, 0, Failure::Now).unwrap();
}

#[derive(Default)]
struct Outcome {
    ended: AtomicUsize,
    early: AtomicBool,
}

struct Loan {
    bytes: Vec<u8>,
    copied_to: usize,
    context: Context,
    outcome: Arc<Outcome>,
}

impl AsRef<[u8]> for Loan {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.outcome.ended.fetch_add(1, Ordering::SeqCst);
        // After the device side is freed, `peek` fails and no copy can run.
        let there = sim(&self.context).peek(self.copied_to as *const u8, self.bytes.len());
        let early = there.is_ok_and(|there| there != self.bytes);
        self.outcome.early.fetch_or(early, Ordering::SeqCst);
    }
}

fn lent(context: &Context, bytes: usize) -> (MemoryHandle, Arc<Outcome>) {
    let outcome = Arc::new(Outcome::default());
    let mut memory = context.memory(bytes).unwrap();
    let copied_to = memory.gpu_mut_ptr().unwrap() as usize;
    let (context, seen) = (context.clone(), Arc::clone(&outcome));
    memory.set_shared(Loan { bytes: vec![7; bytes], copied_to, context, outcome: seen }).unwrap();
    (memory, outcome)
}

fn assert_released_in_time(outcome: &Outcome) {
    assert_eq!(outcome.ended.load(Ordering::SeqCst), 1);
    assert!(!outcome.early.load(Ordering::SeqCst), "the owner was dropped before the copy");
}

fn assert_nothing_is_kept(context: &Context) {
    let stats = context.stats().unwrap();
    assert_eq!((stats.quarantined_bytes, stats.borrowed_bytes, stats.device_bytes), (0, 0, 0));
}

fn lose_device_during(release: fn(MemoryHandle)) {
    let context = simulated();
    let stream = sim(&context).stream().unwrap();
    let mut spoiled = Blob::<f32>::in_context(&context).zeros([COUNT]).unwrap();
    spoiled.gpu_mut_ptr(Part::Data).unwrap();
    let (memory, outcome) = lent(&context, BYTES);
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
            release(memory);
        });
    });
    cancel_failures(&context);
    assert_released_in_time(&outcome);
    drop((stream, spoiled));
    context.trim();
    assert_nothing_is_kept(&context);
}

#[test]
fn a_lost_device_ends_its_copies_before_their_memory_is_released() {
    let _alone = alone();
    lose_device_during(drop);
    lose_device_during(|mut memory| drop(memory.evict(Side::Host)));
    lose_device_during(|mut memory| drop(memory.set(vec![0.0_f64; BYTES / 8])));
    lose_device_during(|mut memory| drop(memory.data_mut().map(drop)));
}

#[test]
fn memory_that_a_context_leaks_is_counted() {
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
        host.trim();
    }
    assert_eq!(host.stats().unwrap().leaked_bytes, before);
}
