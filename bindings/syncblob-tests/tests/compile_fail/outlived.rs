use syncblob::{ndarray, Blob, Context, Layer, Model, Part, Pending, Stream, SyncedMemory};

// Each function returns a borrow of a value that is dropped when the function returns.

fn slice() -> &'static [f32] {
    Blob::<f32>::zeros([4]).unwrap().data().unwrap() //~ E0515
}

fn shape() -> &'static [usize] {
    Blob::<f32>::zeros([4]).unwrap().shape() //~ E0515
}

fn view() -> ndarray::ArrayViewD<'static, f32> {
    Blob::<f32>::zeros([4]).unwrap().view(Part::Data).unwrap() //~ E0515
}

fn memory() -> &'static SyncedMemory {
    Blob::<f32>::zeros([4]).unwrap().memory(Part::Data).unwrap() //~ E0515
}

fn bytes_of_a_handle() -> &'static [u8] {
    Blob::<f32>::zeros([4]).unwrap().handle(Part::Data).unwrap().data().unwrap() //~ E0515
}

fn pending(blob: Blob<f32>) -> Pending<'static> {
    blob.memory(Part::Data).unwrap().push(Stream::DEFAULT).unwrap() //~ E0515
}

fn stream() -> Stream<'static> {
    Context::host().stream().unwrap() //~ E0515
}

fn stream_of_a_simulated_device(context: Context) -> Stream<'static> {
    context.sim().unwrap().stream().unwrap().as_stream() //~ E0515
}

fn layer(model: Model) -> Layer<'static> {
    model.layer(0).unwrap() //~ E0515
}

fn main() {}
