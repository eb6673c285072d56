use std::alloc::System;
use std::sync::Mutex;

use syncblob::Context;

// A context may outlive every handle to it, so its callbacks must be `'static`.

fn an_allocator_of_a_stack_frame() {
    let allocator = System;
    let _context = Context::builder().allocator(&allocator).build(); //~ E0597
}

fn a_closure_of_a_stack_frame(calls: Mutex<usize>) {
    let spread = move |tasks: usize, task: &(dyn Fn() + Sync)| {
        *calls.lock().unwrap() += 1;
        (0..tasks).for_each(|_| task());
    };
    let _context = Context::builder().parallel_for(&spread).build(); //~ E0597
}

fn tasks_kept_for_later() {
    let _context = Context::builder().parallel_for(&|_, task: &(dyn Fn() + Sync)| {
        std::thread::spawn(move || task()); //~ E0521
    });
}

fn main() {}
