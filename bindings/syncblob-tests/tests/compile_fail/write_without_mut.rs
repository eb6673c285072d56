use syncblob::{Blob, MemoryHandle, Part};

// Methods that write need exclusive access to the blob.

fn through_a_reference(blob: &Blob<f32>) {
    blob.data_mut().unwrap(); //~ E0596
}

fn reshaped_through_a_reference(blob: &Blob<f32>) {
    blob.reshape([1]).unwrap(); //~ E0596
}

fn through_a_lent_memory(blob: &Blob<f32>) {
    blob.memory(Part::Data).unwrap().data_mut().unwrap(); //~ E0596
}

fn through_a_handle(handle: &MemoryHandle) {
    handle.clear().unwrap(); //~ E0596
}

fn from_itself(blob: &mut Blob<f32>) {
    blob.copy_from(Part::Data, blob).unwrap(); //~ E0502
}

fn of_two_threads(blob: &mut Blob<f32>) {
    std::thread::scope(|scope| {
        scope.spawn(|| blob.fill(Part::Data, 1.0));
        scope.spawn(|| blob.fill(Part::Data, 2.0)); //~ E0499
    });
}

fn main() {}
