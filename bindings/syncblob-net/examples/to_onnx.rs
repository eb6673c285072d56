//! Converts a net and its weights: `to_onnx deploy.prototxt net.caffemodel net.onnx`. With a name
//! behind, such as `weights.bin`, the weights go into a file of that name beside the other.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use syncblob::Model;
use syncblob_net::{Limits, Net, NetOptions, OnnxOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (prototxt, model, onnx, weights) = match arguments.as_slice() {
        [prototxt, model, onnx] => (prototxt, model, onnx, None),
        [prototxt, model, onnx, weights] => (prototxt, model, onnx, Some(weights)),
        _ => return Err("usage: to_onnx PROTOTXT CAFFEMODEL ONNX [WEIGHTS]".into()),
    };
    let model = Arc::new(Model::open(model)?);
    let text = Limits::default().read_prototxt(prototxt)?;
    let net = Net::open(Some(&text), Some(model), &NetOptions::default())?;
    let converted = net.to_onnx(&OnnxOptions::default())?;
    let out = BufWriter::new(File::create(onnx)?);
    match weights {
        None => converted.write(out)?,
        Some(name) => {
            let values = BufWriter::new(File::create(Path::new(onnx).with_file_name(name))?);
            converted.write_external(name, out, values)?;
        }
    }
    Ok(())
}
