#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use syncblob_net_fuzz::{mutate, prototxt, Counting, Random};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|text: &[u8]| prototxt(text));

// libFuzzer mutates one input in four. `mutate` mutates the others.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut random = Random::new(seed.into());
    let mut text = data[..size].to_vec();
    for _ in 0..=random.below(3) {
        let changed = mutate(&text, &mut random);
        if changed.len() <= max_size {
            text = changed;
        }
    }
    data[..text.len()].copy_from_slice(&text);
    text.len()
});
