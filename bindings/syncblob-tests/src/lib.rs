//! Includes the pages whose Rust code runs as documentation tests.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
