//! Checks with loom the memory orders of `sb_mem_release` and `sb_mem_is_unique`.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::sync::Arc;
use loom::thread;

struct Memory {
    owners: AtomicI64,
    bytes: UnsafeCell<u32>,
}

fn one_owner_reads_and_ends_while_one_writes(release: Ordering, find: Ordering) {
    loom::model(move || {
        let memory = Arc::new(Memory { owners: AtomicI64::new(2), bytes: UnsafeCell::new(1) });
        let sharer = Arc::clone(&memory);
        let reader = thread::spawn(move || {
            // SAFETY: loom checks this access.
            sharer.bytes.with(|bytes| assert_eq!(unsafe { *bytes }, 1));
            sharer.owners.fetch_sub(1, release);
        });
        if memory.owners.load(find) == 1 {
            // SAFETY: loom checks this access.
            memory.bytes.with_mut(|bytes| unsafe { *bytes = 2 });
        }
        reader.join().unwrap();
    });
}

#[test]
fn an_owner_that_reads_a_count_of_one_may_write() {
    one_owner_reads_and_ends_while_one_writes(Ordering::AcqRel, Ordering::Acquire);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_count_read_without_acquire_would_be_a_race() {
    one_owner_reads_and_ends_while_one_writes(Ordering::AcqRel, Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_share_that_ends_without_release_would_be_a_race() {
    one_owner_reads_and_ends_while_one_writes(Ordering::Relaxed, Ordering::Acquire);
}
