use std::alloc::System;
use std::sync::Mutex;

use syncblob::Context;

// A context may outlive every handle, and so must what it calls.

fn an_allocator_of_a_stack_frame() {
    let allocator = System;
    let _context = Context::builder().allocator(&allocator).build(); //~ E0597
}

fn a_closure_that_captures(calls: Mutex<usize>) {
    let _context = Context::builder().parallel_for(|tasks, task| { //~ E0308
        *calls.lock().unwrap() += 1;
        (0..tasks).for_each(|_| task());
    });
}

fn tasks_kept_for_later() {
    let _context = Context::builder().parallel_for(|_, task| {
        std::thread::spawn(move || task()); //~ E0521
    });
}

fn main() {}
