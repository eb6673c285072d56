//! The memory orders that the rule of sharing stands on, in loom: a share ends
//! with a release, and who finds a count of one has acquired all that the former
//! sharers did. The library's own `sb_mem_release` and `sb_mem_is_unique` do so.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::sync::Arc;
use loom::thread;

struct Memory {
    owners: AtomicI64,
    bytes: UnsafeCell<u32>,
}

/// A sharer reads and lets go; the other owner writes once it is alone.
fn one_reads_and_goes_one_writes(release: Ordering, find: Ordering) {
    loom::model(move || {
        let memory = Arc::new(Memory { owners: AtomicI64::new(2), bytes: UnsafeCell::new(1) });
        let sharer = Arc::clone(&memory);
        let reader = thread::spawn(move || {
            // SAFETY: what loom is to find out.
            sharer.bytes.with(|bytes| assert_eq!(unsafe { *bytes }, 1));
            sharer.owners.fetch_sub(1, release);
        });
        if memory.owners.load(find) == 1 {
            // SAFETY: as above.
            memory.bytes.with_mut(|bytes| unsafe { *bytes = 2 });
        }
        reader.join().unwrap();
    });
}

#[test]
fn who_finds_itself_alone_may_write() {
    one_reads_and_goes_one_writes(Ordering::AcqRel, Ordering::Acquire);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_count_read_without_acquire_would_be_a_race() {
    one_reads_and_goes_one_writes(Ordering::AcqRel, Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_share_that_ends_without_release_would_be_a_race() {
    one_reads_and_goes_one_writes(Ordering::Relaxed, Ordering::Acquire);
}
