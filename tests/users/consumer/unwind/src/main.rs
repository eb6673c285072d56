//! Tests that a static program can catch panics and drops the values in unwound frames.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

fn fail() {
    let _counted = Counted;
    panic!("as it should");
}

fn main() {
    assert!(panic::catch_unwind(fail).is_err());
    assert!(thread::spawn(fail).join().is_err());
    assert_eq!(DROPPED.load(Ordering::SeqCst), 2);
}
