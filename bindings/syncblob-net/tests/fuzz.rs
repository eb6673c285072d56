//! Runs the fuzz targets on their seeds, on stored inputs, and on texts that this test mutates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

#[path = "../fuzz/src/lib.rs"]
mod targets;

use targets::{mutate, net_of_model, prototxt, Counting, Random};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static SEEDS: LazyLock<PathBuf> = LazyLock::new(|| {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let status = Command::new("python3").arg(root().join("seeds/make_seeds.py")).arg(made).status();
    assert!(status.unwrap().success());
    made.join("seeds")
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folders = [SEEDS.clone(), root().join("corpus"), root().join("regressions")];
    let folders = folders.iter().filter_map(|folder| fs::read_dir(folder.join(target)).ok());
    let mut files: Vec<PathBuf> = folders.flatten().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn seeds_of_texts_pass() {
    inputs("prototxt").iter().for_each(|text| prototxt(text));
}

#[test]
fn seeds_of_models_pass() {
    inputs("net_of_model").iter().for_each(|model| net_of_model(model));
}

#[test]
fn mutated_texts_pass() {
    let texts = inputs("prototxt");
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
