use syncblob::{Blob, Part, Stream};

// A `Pending` borrows the blob until the program has waited for the copy.

fn written(mut blob: Blob<f32>) {
    let copy = blob.memory(Part::Data).unwrap().push(Stream::DEFAULT).unwrap();
    blob.data_mut().unwrap()[0] = 1.0; //~ E0502
    copy.wait().unwrap();
}

fn moved(blob: Blob<f32>) {
    let copy = blob.memory(Part::Data).unwrap().pull(Stream::DEFAULT).unwrap();
    drop(blob); //~ E0505
    copy.wait().unwrap();
}

fn waited_for_twice(blob: Blob<f32>) {
    let copy = blob.memory(Part::Data).unwrap().push(Stream::DEFAULT).unwrap();
    copy.wait().unwrap();
    copy.wait().unwrap(); //~ E0382
}

fn main() {}
