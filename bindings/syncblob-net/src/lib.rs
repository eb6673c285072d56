//! Caffe's nets: what a `deploy.prototxt` and a `.caffemodel` describe, layer by layer, with the
//! shapes of all blobs, and the same net as an ONNX file.

mod error;
mod layers;
mod limits;
mod message;
mod net;
mod onnx;
mod print;
mod schema;
mod shapes;
#[cfg(test)]
mod testing;
mod text;
mod upgrade;
mod wire;

pub use error::{Error, ErrorKind, Problem, Result};
pub use limits::Limits;
pub use message::{Field, Message, Place, Value};
pub use net::{Layer, Net, Shape};
pub use onnx::{Mean, Onnx, OnnxOptions, Preprocessing};
pub use upgrade::{upgrade, Upgraded};
