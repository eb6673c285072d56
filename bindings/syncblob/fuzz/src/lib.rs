//! Makes random calls of the crate `syncblob`, and the same calls on reference copies.

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

/// A call can double a value; with this bound no value becomes infinite.
const MAX_CALLS: usize = 64;

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
