//! The net as an ONNX graph of opset 17.

mod emit;
mod graph;
mod proto;

pub(crate) use emit::Emit;
