use std::cell::Cell;
use std::rc::Rc;

use syncblob::{Blob, Model};

// The owner of memory that a blob uses without a copy must be `'static`, `Send` and `Sync`.

fn of_a_stack_frame() {
    let values = [1.0_f32; 4];
    let _blob = Blob::from_shared([4], &values[..]); //~ E0597
}

fn for_a_time(values: &mut [f32]) {
    let _blob = Blob::from_vec([4], values); //~ E0308
}

fn of_one_thread(values: Rc<[f32]>) {
    let _blob = Blob::from_shared([4], values); //~ E0277
}

struct Changing(Vec<f32>, Cell<usize>);

impl AsRef<[f32]> for Changing {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

fn that_threads_may_not_share(values: Changing) {
    let _blob = Blob::<f32>::from_shared([4], values); //~ E0277
}

fn bytes_for_a_time(bytes: &[u8]) {
    let _blob = Blob::<f32>::from_ne_bytes([4], bytes); //~ E0521
}

fn a_model_of_bytes_for_a_time(bytes: &[u8]) {
    let _model = Model::from_bytes(bytes); //~ E0521
}

fn main() {}
