use syncblob::{Blob, Part};

// Each function uses the blob while it holds a mutable slice of the blob.

fn read_too(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    let read = blob.data().unwrap(); //~ E0502
    written[0] = read[1];
}

fn written_twice(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    let again = blob.data_mut().unwrap(); //~ E0499
    written[0] = again[0];
}

fn shared_meanwhile(mut blob: Blob<f32>, mut other: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    other.share(Part::Data, &blob).unwrap(); //~ E0502
    written[0] = 1.0;
}

fn kept_meanwhile(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    let handle = blob.handle(Part::Data).unwrap(); //~ E0502
    written[0] = 1.0;
    drop(handle);
}

fn lent_meanwhile(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    let memory = blob.memory(Part::Data).unwrap(); //~ E0502
    written[0] = 1.0;
    memory.data().unwrap();
}

fn copied_from_meanwhile(mut blob: Blob<f32>, mut other: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    other.copy_from(Part::Data, &blob).unwrap(); //~ E0502
    written[0] = 1.0;
}

fn on_the_device_meanwhile(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    blob.gpu_ptr(Part::Data).unwrap(); //~ E0502
    written[0] = 1.0;
}

fn summed_meanwhile(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    blob.asum(Part::Data).unwrap(); //~ E0502
    written[0] = 1.0;
}

fn moved_meanwhile(mut blob: Blob<f32>) {
    let written = blob.data_mut().unwrap();
    std::thread::spawn(move || drop(blob)); //~ E0505
    written[0] = 1.0;
}

fn main() {}
