#![no_main]

use libfuzzer_sys::fuzz_target;
use syncblob_fuzz::{run, Input};

fuzz_target!(|input: Input| run(&input));
