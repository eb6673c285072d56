//! Reference copies of the library's blobs, in plain Rust.

use std::cell::RefCell;
use std::rc::Rc;

use syncblob::Part;

/// The values of a memory. The reference copies of blobs that share a memory share the `Rc`.
pub type Memory = Rc<RefCell<Vec<f32>>>;

pub fn memory(values: Vec<f32>) -> Memory {
    Rc::new(RefCell::new(values))
}

pub fn is_unique(memory: &Memory) -> bool {
    Rc::strong_count(memory) == 1
}

pub fn ramp(value: i8, count: usize) -> Vec<f32> {
    (0..count).map(|i| f32::from(value) + i as f32).collect()
}

pub fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

pub fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    let value = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(value).collect()
}

#[derive(Debug)]
pub struct PlainBlob {
    pub shape: Vec<usize>,
    pub data: Memory,
    pub diff: Memory,
}

impl PlainBlob {
    pub fn zeros(shape: Vec<usize>) -> Self {
        let count = shape.iter().product();
        Self { shape, data: memory(vec![0.0; count]), diff: memory(vec![0.0; count]) }
    }

    pub fn new(shape: Vec<usize>, data: Vec<f32>, diff: Option<Vec<f32>>) -> Self {
        let diff = diff.unwrap_or_else(|| vec![0.0; data.len()]);
        Self { shape, data: memory(data), diff: memory(diff) }
    }

    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn part(&self, part: Part) -> &Memory {
        match part {
            Part::Data => &self.data,
            Part::Diff => &self.diff,
        }
    }

    pub fn part_mut(&mut self, part: Part) -> &mut Memory {
        match part {
            Part::Data => &mut self.data,
            Part::Diff => &mut self.diff,
        }
    }

    pub fn values(&self, part: Part) -> Vec<f32> {
        self.part(part).borrow()[..self.count()].to_vec()
    }

    pub fn write(&self, part: Part, values: &[f32]) {
        self.part(part).borrow_mut()[..values.len()].copy_from_slice(values);
    }

    /// Changes the shape; returns whether the new shape has outgrown data and diff.
    pub fn reshape(&mut self, shape: &[usize]) -> (bool, bool) {
        self.shape = shape.to_vec();
        let count = self.count();
        let outgrown = [Part::Data, Part::Diff].map(|part| {
            let is_outgrown = self.part(part).borrow().len() < count;
            if is_outgrown {
                *self.part_mut(part) = memory(vec![0.0; count]);
            }
            is_outgrown
        });
        outgrown.into()
    }

    pub fn shrink(&mut self, part: Part) {
        assert!(is_unique(self.part(part)), "{part} is shared but was shrunk");
        assert!(self.part(part).borrow().len() > self.count(), "{part} was already minimal");
        *self.part_mut(part) = memory(self.values(part));
    }
}
