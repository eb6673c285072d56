use syncblob::{Blob, Part};

// Each function holds a slice across a call that may free or move the slice's memory.

fn reshape(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.reshape([1000]).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn reshape_like(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.reshape_like(&Blob::<f32>::zeros([9]).unwrap()).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn reshape_proto(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.reshape_proto(&[]).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn shrink_to_fit(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.shrink_to_fit().unwrap(); //~ E0502
    println!("{stale:?}");
}

fn share_data(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.share(Part::Data, &Blob::zeros([4]).unwrap()).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn set_data(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.set(Part::Data, vec![0.0; 4]).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn set_shared_data(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.set_shared(Part::Data, vec![0.0; 4]).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn set_memory(mut blob: Blob<f32>, memory: syncblob::MemoryHandle) {
    let stale = blob.data().unwrap();
    blob.set_memory(syncblob::Part::Data, memory).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn drop_diff(mut blob: Blob<f32>) {
    let stale = blob.diff().unwrap();
    blob.release(Part::Diff); //~ E0502
    println!("{stale:?}");
}

fn make_unique(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.make_unique(syncblob::Part::Data).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn evict(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.memory_mut(syncblob::Part::Data).unwrap().evict(syncblob::Side::Host).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn drop(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    drop(blob); //~ E0505
    println!("{stale:?}");
}

fn close(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.close().unwrap(); //~ E0505
    println!("{stale:?}");
}

fn replace(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob = Blob::zeros([4]).unwrap(); //~ E0506
    println!("{stale:?}");
}

fn read_proto(mut blob: Blob<f32>) {
    let stale = blob.data().unwrap();
    blob.read_proto(&[]).unwrap(); //~ E0502
    println!("{stale:?}");
}

fn main() {}
