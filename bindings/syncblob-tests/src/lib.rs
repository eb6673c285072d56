//! The pages whose Rust is run as documentation tests.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
