use syncblob::{Blob, BlobAny, Part};

// Only the library's types are element types, and the element type of a blob is fixed.

struct Mine;

impl syncblob::Element for Mine {} //~ E0046 E0277

fn of_truth_values() {
    Blob::<bool>::zeros([1]).unwrap(); //~ E0277 E0599
}

fn arithmetic_of_integers(blob: &Blob<i32>) {
    blob.asum(Part::Data).unwrap(); //~ E0599
}

fn shared_with_another_type(blob: &mut Blob<f32>, other: &Blob<f64>) {
    blob.share(Part::Data, other).unwrap(); //~ E0308
}

fn of_any_type(any: &mut BlobAny) -> (&mut Blob<f32>, &mut Blob<f32>) {
    (any.downcast_mut().unwrap(), any.downcast_mut().unwrap()) //~ E0499
}

fn main() {}
