//! What the fuzzers of `fuzz` demand: of the inputs that they keep, and of nets that are changed at
//! random here.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/lib.rs"]
mod targets;

use targets::{mutate, net_of_model, prototxt, Counting, Random};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The inputs that a fuzzer keeps; those that were findings come last.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let folders = ["corpus", "regressions"].map(|folder| root.join(folder).join(target));
    let folders = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok());
    let mut files: Vec<PathBuf> = folders.flatten().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn kept_texts() {
    let texts = kept("prototxt");
    assert!(!texts.is_empty());
    texts.iter().for_each(|text| prototxt(text));
}

#[test]
fn kept_models() {
    let models = kept("net_of_model");
    assert!(!models.is_empty());
    models.iter().for_each(|model| net_of_model(model));
}

/// Some seconds of what the fuzzer does for hours.
#[test]
fn mutated_texts() {
    let texts = kept("prototxt");
    let full = std::env::var_os("SYNCBLOB_TEST_FULL").is_some();
    for seed in 0..if full { 200_000 } else { 2_000 } {
        let mut random = Random::new(seed);
        let mut text = texts[random.below(texts.len())].clone();
        for _ in 0..=random.below(4) {
            text = mutate(&text, &mut random);
        }
        prototxt(&text);
    }
}
