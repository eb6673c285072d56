//! Converts a net and its weights: `to_onnx deploy.prototxt net.caffemodel net.onnx`.

use std::fs::{self, File};
use std::io::BufWriter;
use std::sync::Arc;

use syncblob::Model;
use syncblob_net::{Net, NetOptions, OnnxOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [prototxt, model, onnx] = arguments.as_slice() else {
        return Err("usage: to_onnx PROTOTXT CAFFEMODEL ONNX".into());
    };
    let model = Arc::new(Model::open(model)?);
    let net = Net::from_prototxt(&fs::read(prototxt)?, &NetOptions::default())?;
    let net = net.with_weights(model)?;
    let converted = net.to_onnx(&OnnxOptions::default())?;
    converted.write(BufWriter::new(File::create(onnx)?))?;
    Ok(())
}
