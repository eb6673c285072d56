#![no_main]

use libfuzzer_sys::fuzz_target;
use syncblob_net_fuzz::{net_of_model, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|bytes: &[u8]| net_of_model(bytes));
