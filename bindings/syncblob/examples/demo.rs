//! Loads a blob of a model, reads the blob on the host and on the device, updates it, saves the
//! model and reads the saved blob.
//!
//! ```sh
//! cargo run --example demo -- resnet.caffemodel
//! ```

use std::error::Error;
use std::{env, fs, process};

use syncblob::{Context, Model, OpenOptions, Part, Payload};

fn main() {
    let Some(path) = env::args_os().nth(1) else {
        eprintln!("usage: demo FILE.caffemodel");
        process::exit(2);
    };
    let saved = env::temp_dir().join(format!("syncblob-demo-{}.caffemodel", process::id()));
    let result = run(path.as_ref(), &saved);
    let _ = fs::remove_file(&saved);
    if let Err(error) = result {
        eprintln!("demo: {error}");
        process::exit(1);
    }
}

fn run(path: &std::path::Path, saved: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let context = Context::builder().device("sim:0").build()?;
    let mut model = OpenOptions::new().context(&context).open(path)?;
    let layer = model.layers().find(|layer| layer.num_blobs() > 0).ok_or("no layer has blobs")?;
    let stored = layer.blob(0)?;
    let (name, at) = (layer.name().escape_default().to_string(), stored.at());
    let mut weights = stored.load::<f32>()?;
    println!("loaded   {name}, shape {weights}, head {:?}", weights.head(Part::Data)?);

    let on_host: f64 = weights.data()?.iter().map(|value| f64::from(value.abs())).sum();
    weights.gpu_ptr(Part::Data)?;
    let on_device = weights.asum(Part::Data)?;
    println!("asum     {on_host:.4} on the host, {on_device:.4} on {}", context.device());
    println!("copies   {} up, head {:?}", context.stats()?.uploads, weights.head(Part::Data)?);

    let step: Vec<f32> = weights.data()?.iter().map(|value| value * 0.1).collect();
    weights.diff_mut()?.copy_from_slice(&step);
    weights.update()?;
    println!("updated  asum {:.4} after data -= diff", weights.asum(Part::Data)?);

    model.set_blob(at, &weights, Payload::Data)?;
    model.save(saved)?;
    let again = Model::open(saved)?.blob(at)?.load::<f32>()?;
    let same = again.data()? == weights.data()?;
    println!("saved    {} bytes; read again: {again}, equal: {same}", fs::metadata(saved)?.len());
    if !same {
        return Err("the blob that was read again differs from the saved blob".into());
    }
    Ok(())
}
