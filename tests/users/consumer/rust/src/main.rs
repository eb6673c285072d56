//! Makes and loads a model, then loads the model files in the arguments.

use std::error::Error;
use std::path::Path;

use syncblob::{Blob, Format, Model, Part, Payload};

extern "C" {
    fn consumer_version() -> u32;
}

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: version.c defines the function with this signature; it only reads constants.
    let version = unsafe { consumer_version() };
    assert_eq!(version, syncblob_sys::SB_VERSION_NUMBER);
    let text =
        [version / 1_000_000, version / 1_000 % 1_000, version % 1_000].map(|n| n.to_string());
    assert_eq!(text.join("."), env!("SYNCBLOB_VERSION"));

    let mut weights = Blob::<f32>::from_slice([2, 3], &[1.0; 6])?;
    weights.diff_mut()?.fill(0.25);
    weights.update()?;

    let mut model = Model::create(Format::Caffemodel)?;
    let layer = model.add_layer("fc", "InnerProduct")?;
    model.add_blob(layer, &weights, Payload::Data)?;
    model.save("made.caffemodel")?;
    show("made.caffemodel".as_ref())?;
    for path in std::env::args_os().skip(1) {
        show(path.as_ref())?;
    }
    Ok(())
}

fn show(path: &Path) -> syncblob::Result<()> {
    let model = Model::open(path)?;
    let mut sum = 0.0;
    for layer in model.layers() {
        for stored in layer.blobs() {
            sum += stored?.load::<f32>()?.asum(Part::Data)?;
        }
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {} layers, sum of |weights| {sum:.4}", model.num_layers());
    Ok(())
}
