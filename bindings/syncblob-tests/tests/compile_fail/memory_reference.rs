use syncblob::{Blob, MemoryHandle, Part, Side, SyncedMemory};

// A reference to a memory borrows the blob; a handle's slices borrow the handle.

fn reshaped(mut blob: Blob<f32>) {
    let memory = blob.memory(Part::Data).unwrap();
    blob.reshape([1000]).unwrap(); //~ E0502
    memory.data().unwrap();
}

fn bytes_outlive_the_reshape(mut blob: Blob<f32>) {
    let bytes = blob.memory(Part::Data).unwrap().data().unwrap();
    blob.reshape([1000]).unwrap(); //~ E0502
    println!("{bytes:?}");
}

fn two_at_once(mut blob: Blob<f32>) {
    let first = blob.memory_mut(Part::Data).unwrap();
    let second = blob.memory_mut(Part::Data).unwrap(); //~ E0499
    first.clear().unwrap();
    second.clear().unwrap();
}

fn written_and_kept(mut handle: MemoryHandle) {
    let written = handle.data_mut().unwrap();
    let other = handle.clone(); //~ E0502
    written[0] = 1;
    drop(other);
}

fn evicted(mut handle: MemoryHandle) {
    let bytes = handle.data().unwrap();
    handle.evict(Side::Host).unwrap(); //~ E0502
    println!("{bytes:?}");
}

fn set(mut handle: MemoryHandle) {
    let bytes = handle.data().unwrap();
    handle.set(vec![0_u32; 4]).unwrap(); //~ E0502
    println!("{bytes:?}");
}

fn dropped(handle: MemoryHandle) {
    let bytes = handle.data().unwrap();
    drop(handle); //~ E0505
    println!("{bytes:?}");
}

fn by_value(blob: Blob<f32>) {
    let memory = *blob.memory(Part::Data).unwrap(); //~ E0277
    drop(memory);
}

fn swapped(mut a: Blob<f32>, mut b: Blob<f32>) {
    let (a, b) = (a.memory_mut(Part::Data).unwrap(), b.memory_mut(Part::Data).unwrap());
    std::mem::swap(a, b); //~ E0277
}

// Two blobs that share a memory may each hold a `&mut` to it, so rustc must not assume `noalias`.
fn noalias() {
    fn taken_for_noalias<T: Unpin + ?Sized>() {}
    taken_for_noalias::<SyncedMemory>(); //~ E0277
}

// The reference has no method that adds an owner, because the blob would not see the new owner.
fn shared_behind_the_blob(blob: Blob<f32>) {
    let memory = blob.memory(Part::Data).unwrap();
    memory.handle(); //~ E0599
    memory.as_ptr(); //~ E0599
}

fn main() {}
