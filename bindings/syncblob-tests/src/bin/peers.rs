//! Compares the speed of `syncblob` with the speed of prost and safetensors.
//!
//! ```sh
//! cargo run --release -p syncblob-tests --bin peers
//! ```

use std::hint::black_box;
use std::time::Instant;

use prost::Message;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{serialize, SafeTensors};
use syncblob::{Blob, Payload};

const SIZES: [usize; 3] = [256, 1 << 18, 16 << 20]; // floats

/// Caffe's message BlobProto, with only the fields for a shape and floats.
#[derive(Clone, PartialEq, Message)]
struct BlobProto {
    #[prost(float, repeated, packed = "true", tag = "5")]
    data: Vec<f32>,
    #[prost(message, optional, tag = "7")]
    shape: Option<BlobShape>,
}

#[derive(Clone, PartialEq, Message)]
struct BlobShape {
    #[prost(int64, repeated, packed = "true", tag = "1")]
    dim: Vec<i64>,
}

type Work<'a> = (&'static str, Box<dyn FnMut() + 'a>);

fn fastest(works: &mut [Work<'_>], calls: u32) -> Vec<f64> {
    let rounds = if calls > 1 { 100 } else { 15 };
    let mut best = vec![f64::INFINITY; works.len()];
    for _ in 0..rounds {
        for (best, (_, work)) in best.iter_mut().zip(works.iter_mut()) {
            let start = Instant::now();
            for _ in 0..calls {
                work();
            }
            *best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
        }
    }
    best
}

/// Compares the first of the works, which is syncblob's, with each other work.
fn contest(what: &str, count: usize, mut works: Vec<Work<'_>>) {
    let calls = if count < 1 << 12 { 1000 } else { 1 };
    let best = fastest(&mut works, calls);
    for ((name, _), time) in works.iter().zip(&best).skip(1) {
        let bytes = count * size_of::<f32>();
        let ratio = best[0] / time;
        println!("{what:<26}{bytes:>10}{:>14.0}{time:>14.0}{ratio:>8.2}  {name}", best[0]);
    }
}

fn reading(values: &[f32], message: &[u8], tensors: &[u8]) {
    let mut blob = Blob::<f32>::from_proto(message).expect("a message that fits");
    let mut copy = vec![0.0f32; values.len()];
    let read = |tensors: &[u8], copy: &mut [f32]| {
        let file = SafeTensors::deserialize(tensors).expect("a file of one tensor");
        let bytes = file.tensor("x").expect("the tensor").data().chunks_exact(4);
        for (to, from) in copy.iter_mut().zip(bytes) {
            *to = f32::from_le_bytes(from.try_into().expect("four bytes"));
        }
        black_box(copy);
    };
    contest(
        "bytes to values",
        values.len(),
        vec![
            ("", Box::new(|| blob.read_proto(message).expect("the same message"))),
            ("prost", Box::new(|| drop(black_box(BlobProto::decode(message).expect("a message"))))),
            ("safetensors, copied out", Box::new(move || read(tensors, &mut copy))),
        ],
    );
}

fn writing(values: &[f32], message: &[u8]) {
    let blob = Blob::<f32>::from_proto(message).expect("a message that fits");
    let proto = BlobProto::decode(message).expect("a message");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensors = || {
        let view = TensorView::new(Dtype::F32, vec![values.len()], &bytes).expect("a tensor");
        drop(black_box(serialize([("x", view)], None).expect("a file")));
    };
    contest(
        "values to new bytes",
        values.len(),
        vec![
            ("", Box::new(|| drop(black_box(blob.to_proto(Payload::Data).expect("memory"))))),
            ("prost", Box::new(|| drop(black_box(proto.encode_to_vec())))),
            ("safetensors", Box::new(tensors)),
        ],
    );
}

fn main() {
    println!("{:<26}{:>10}{:>14}{:>14}{:>8}", "", "bytes", "syncblob, ns", "other, ns", "ratio");
    for count in SIZES {
        let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
        let blob = Blob::from_slice([count], &values).expect("memory");
        let message = blob.to_proto(Payload::Data).expect("memory");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::F32, vec![count], &bytes).expect("a tensor");
        let tensors = serialize([("x", view)], None).expect("a file");
        reading(&values, &message, &tensors);
        writing(&values, &message);
    }
}
