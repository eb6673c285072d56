//! Makes random calls of the crate `syncblob`, and the same calls on reference copies in plain
//! Rust. The library's blobs, handles and model files must have the contents of the reference
//! copies. A write must succeed if and only if the memory has one owner. Memory that the library
//! may only read must stay unchanged, and at the end the library must have released all of the
//! caller's memory.

mod calls;
mod files;
mod plain;
mod shapes;
mod shares;
mod state;
mod storage;
mod values;

pub use calls::Input;

use state::State;

/// The maximum number of calls of one input. A call can double values; this bound keeps them finite.
const MAX_CALLS: usize = 64;

/// Makes the input's calls.
pub fn run(input: &Input) {
    let context = input.device.context();
    let before = context.stats().expect("statistics");
    let mut state = State::new(context.clone());
    for call in input.calls.iter().take(MAX_CALLS) {
        state.run(*call);
    }
    let loans = state.end();
    context.synchronize().expect("nothing fails any more");
    context.trim();
    loans.check();
    let after = context.stats().expect("statistics");
    assert_eq!(after.host_bytes, before.host_bytes);
    assert_eq!((after.device_bytes, after.borrowed_bytes), (0, 0));
}
