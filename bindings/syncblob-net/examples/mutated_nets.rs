//! Changes nets at random and writes files to test other readers of ONNX: `mutated_nets NETS OUT
//! FIRST COUNT`.
//!
//! NETS is a folder of prototxts. For each NUMBER from FIRST to FIRST + COUNT - 1, the program
//! writes a changed net to OUT/NUMBER.prototxt, and converts it with made-up weights. It writes the
//! result to OUT/NUMBER.onnx, or the error to OUT/NUMBER.txt.

use std::fs;
use std::path::{Path, PathBuf};

use syncblob_net::{Net, NetOptions, OnnxOptions, Result};

#[path = "../fuzz/src/lib.rs"]
#[allow(dead_code, unused_imports)]
mod targets;

const MOST_WEIGHTS: i64 = 1 << 22;

fn convert(text: &[u8]) -> Result<Vec<u8>> {
    let mut net = Net::from_prototxt(text, &NetOptions::default())?;
    if let Some(model) = targets::made_up_weights(&net, &net.shapes(), MOST_WEIGHTS) {
        net = net.with_weights(model)?;
    }
    net.to_onnx(&OnnxOptions::default())?.to_bytes()
}

fn write(text: &[u8], stem: &Path) -> std::io::Result<()> {
    fs::write(stem.with_extension("prototxt"), text)?;
    match convert(text) {
        Ok(onnx) => fs::write(stem.with_extension("onnx"), onnx),
        Err(error) => fs::write(stem.with_extension("txt"), error.to_string()),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [nets, out, first, count] = arguments.as_slice() else {
        return Err("usage: mutated_nets NETS OUT FIRST COUNT".into());
    };
    let nets = fs::read_dir(nets)?.map(|net| net.map(|net| net.path()));
    let mut nets = nets.collect::<Result<Vec<PathBuf>, _>>()?;
    nets.sort_unstable();
    let first: u64 = first.parse()?;
    for number in first..first + count.parse::<u64>()? {
        let mut random = targets::Random::new(number);
        let mut text = fs::read(&nets[random.below(nets.len())])?;
        for _ in 0..=random.below(2) {
            text = targets::mutate(&text, &mut random);
        }
        write(&text, &Path::new(out).join(number.to_string()))?;
    }
    Ok(())
}
