//! Caffe's nets: what a `deploy.prototxt` and a `.caffemodel` describe, layer by layer, with the
//! shapes of all blobs, and the same net as an ONNX file.

mod error;
mod filter;
mod inputs;
mod layers;
mod limits;
mod message;
mod net;
mod onnx;
mod print;
mod schema;
mod shapes;
mod state_dict;
#[cfg(test)]
mod testing;
mod text;
mod training;
mod upgrade;
mod weights;
mod wire;

pub use error::{Error, ErrorKind, Problem, Result};
pub use limits::Limits;
pub use message::{Field, Message, Place, Value};
pub use net::{Layer, Net, NetOptions, Shape};
pub use onnx::{Dim, Mean, Onnx, OnnxOptions, Preprocessing, Sink};
pub use shapes::BlobShapes;
pub use state_dict::{StateTensor, StateValues};
pub use upgrade::Upgraded;
