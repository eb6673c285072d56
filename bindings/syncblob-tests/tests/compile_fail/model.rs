use syncblob::{Blob, Model, Payload};

// References into a model must end before the model changes or is dropped.

fn a_layer_of_a_changed_model(mut model: Model) {
    let layer = model.layer(0).unwrap();
    model.add_layer("name", "type").unwrap(); //~ E0502
    println!("{}", layer.name());
}

fn a_name_of_a_renamed_model(mut model: Model) {
    let name = model.name_bytes();
    model.set_name("other").unwrap(); //~ E0502
    println!("{name:?}");
}

fn a_stored_blob_of_a_changed_model(mut model: Model, blob: Blob<f32>) {
    let stored = model.blob((0, 0)).unwrap();
    model.set_blob((0, 0), &blob, Payload::Data).unwrap(); //~ E0502
    stored.load::<f32>().unwrap();
}

fn a_layer_of_a_model_that_ended(model: Model) {
    let layer = model.layer(0).unwrap();
    drop(model); //~ E0505
    println!("{}", layer.name());
}

fn main() {}
