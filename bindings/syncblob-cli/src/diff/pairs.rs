//! Pairs the tensors of two files.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::source::{unique_names, Place, Source, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    A,
    B,
}

impl Which {
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// A pair of tensors, or an unpaired tensor. The numbers are indices in each file's
/// `Source::tensors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    Both(usize, usize),
    One(Which, usize),
}

/// The names by which a file's tensors are paired. A name consists of the layer and the blob's
/// number if both are known, as in Caffe's own files.
pub struct Names<'a> {
    source: &'a Source,
    layers: Vec<String>,
}

impl<'a> Names<'a> {
    pub fn new(source: &'a Source) -> Self {
        Self { source, layers: unique_names(&source.notes.layers) }
    }

    pub fn of(&self, tensor: &'a Tensor) -> Cow<'a, str> {
        match tensor.place {
            Some(Place { layer: Some(layer), blob }) => {
                format!("{}.{blob}", self.layers[layer]).into()
            }
            _ => tensor.name.as_str().into(),
        }
    }
}

/// Returns all of A's tensors in A's order, then the tensors that only B has, in B's order.
pub fn pairs(a: &Names, b: &Names) -> Vec<Pair> {
    let names = b.source.tensors.iter().map(|tensor| b.of(tensor));
    let mut waiting: HashMap<_, _> = names.enumerate().map(|(index, name)| (name, index)).collect();
    let of_a = a.source.tensors.iter().enumerate();
    let mut pairs: Vec<Pair> = of_a
        .map(|(index, tensor)| match waiting.remove(&a.of(tensor)) {
            Some(other) => Pair::Both(index, other),
            None => Pair::One(Which::A, index),
        })
        .collect();
    let mut alone: Vec<usize> = waiting.into_values().collect();
    alone.sort_unstable();
    pairs.extend(alone.into_iter().map(|index| Pair::One(Which::B, index)));
    pairs
}
