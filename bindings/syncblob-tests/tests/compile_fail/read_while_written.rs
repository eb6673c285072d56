use syncblob::{Blob, Part};

// Each function holds a slice across a call that writes the slice's memory.

fn data_mut(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.data_mut().unwrap()[0] = 1.0; //~ E0502
    println!("{read:?}");
}

fn data_and_diff_mut(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.data_and_diff_mut().unwrap().0[0] = 1.0; //~ E0502
    println!("{read:?}");
}

fn gpu_mut_ptr(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.gpu_mut_ptr(Part::Data).unwrap(); //~ E0502
    println!("{read:?}");
}

fn clear(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.clear(Part::Data).unwrap(); //~ E0502
    println!("{read:?}");
}

fn scale(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.scale(Part::Data, 2.0).unwrap(); //~ E0502
    println!("{read:?}");
}

fn update(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.update().unwrap(); //~ E0502
    println!("{read:?}");
}

fn fill(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.fill(Part::Data, 1.0).unwrap(); //~ E0502
    println!("{read:?}");
}

fn overwrite(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.overwrite(Part::Data, &[1.0; 4]).unwrap(); //~ E0502
    println!("{read:?}");
}

fn copy_from(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.copy_from(Part::Data, &Blob::zeros([4]).unwrap()).unwrap(); //~ E0502
    println!("{read:?}");
}

fn through_the_memory(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.memory_mut(Part::Data).unwrap().data_mut().unwrap()[0] = 1; //~ E0502
    println!("{read:?}");
}

fn through_a_view(mut blob: Blob<f32>) {
    let read = blob.data().unwrap();
    blob.view_mut(Part::Data).unwrap().fill(1.0); //~ E0502
    println!("{read:?}");
}

fn main() {}
