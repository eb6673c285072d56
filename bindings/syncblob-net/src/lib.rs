//! Caffe's nets: the layers of a `deploy.prototxt` and a `.caffemodel`, with the shapes of all
//! blobs, and their conversion to ONNX.
//!
//! ```
//! use std::sync::Arc;
//! use syncblob::{Blob, Format, Model, Payload};
//! use syncblob_net::{Net, NetOptions, OnnxOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let prototxt = b"
//!     input: 'data' input_shape { dim: 1 dim: 3 }
//!     layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc'
//!             inner_product_param { num_output: 2 bias_term: false } }";
//! let mut model = Model::create(Format::Caffemodel)?; // or Model::open(path)
//! let layer = model.add_layer("fc", "InnerProduct")?;
//! model.add_blob(layer, &Blob::<f32>::full([2, 3], 0.5)?, Payload::Data)?;
//!
//! let net = Net::open(Some(prototxt), Some(Arc::new(model)), &NetOptions::default())?;
//! assert_eq!(net.outputs(), ["fc"]);
//! let onnx = net.to_onnx(&OnnxOptions::default())?;
//! let bytes: Vec<u8> = onnx.to_bytes()?; // or onnx.save(path)
//! # assert_eq!(bytes.len() as u64, onnx.size());
//! # Ok(())
//! # }
//! ```
//!
//! A net is in phase TEST: layers that only supply data, or that only serve training or testing,
//! are omitted, and [`Net::warnings`] lists these layers. [`Net::shapes`] computes the blobs'
//! shapes by Caffe's rules. A layer that cannot be converted exactly is refused:
//! [`Error::problems`] lists all such layers. [`OnnxOptions::custom`] writes such layers as nodes
//! of the domain `caffe` instead. [`Net::state_dict`] returns the weights under the names that
//! PyTorch's modules use.
//!
//! A prototxt and a model may be untrusted: [`Limits`] bound the memory and time of reads.
#![deny(missing_docs)]

mod error;
mod filter;
mod inputs;
mod layers;
mod limits;
mod memory;
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
pub use onnx::{Dim, Mean, Onnx, OnnxOptions, Overflow, Preprocessing, Sink};
pub use shapes::BlobShapes;
pub use state_dict::{StateTensor, StateValues};
pub use upgrade::Upgraded;
