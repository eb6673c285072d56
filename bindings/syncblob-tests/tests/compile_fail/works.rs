use syncblob::{ndarray, Blob, Model, OpenOptions, Part};


fn used_in_turn(blob: &mut Blob<f32>) -> syncblob::Result<()> {
    blob.data_mut()?[0] = 1.0;
    let values: &[f32] = blob.data()?;
    let _array = ndarray::arr1(values);
    let _tensor = blob.to_dlpack(Part::Data, syncblob::Side::Host)?;
    Ok(())
}

fn main() -> syncblob::Result<()> {
    used_in_turn(&mut Blob::zeros([2, 3])?)?;
    let _model: Option<Model> = None;
    let _options = OpenOptions::new();
    Ok(())
}
