use syncblob::{Access, Blob, OpenOptions, Part, Stream};

// Each call in this file relies on a promise of the caller.

fn through_a_share(blob: &mut Blob<f32>) {
    blob.shared_mut(Part::Data).unwrap(); //~ E0133
    blob.shared_mut(Part::Diff).unwrap(); //~ E0133
}

fn unfilled_device_memory(blob: &mut Blob<f32>) {
    blob.memory_mut(Part::Data).unwrap().overwrite_gpu_ptr(None).unwrap(); //~ E0133
}

fn a_device_pointer(blob: &mut Blob<f32>, pointer: *mut f32) {
    blob.set_gpu(Part::Data, pointer, 4, Access::Writable, ()).unwrap(); //~ E0133
}

fn a_stream(pointer: *mut std::ffi::c_void) {
    Stream::from_raw(pointer); //~ E0133
}

fn a_mapped_file() {
    OpenOptions::new().open_mapped("file").unwrap(); //~ E0133
}

fn a_library() {
    syncblob::load_backend("library.so").unwrap(); //~ E0133
}

fn main() {}
