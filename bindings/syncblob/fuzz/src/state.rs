//! The library's objects (blobs, handles and a model file), each with its expected contents.

use std::sync::Arc;

use syncblob::sim::{Failure, Operation};
use syncblob::{
    Blob, Context, Error, ErrorKind, Format, MemoryHandle, Model, OpenOptions, Part, Result,
};

use crate::calls::{Call, BLOBS, HANDLES};
use crate::files::Saved;
use crate::plain::{from_bytes, is_unique, same, Memory, PlainBlob};

pub const PARTS: [Part; 2] = [Part::Data, Part::Diff];

pub struct Loan<T> {
    lent: Arc<Vec<T>>,
    expected: Vec<T>,
}

impl<T: Clone + PartialEq> Loan<T> {
    pub fn new(values: Vec<T>) -> Self {
        Self { expected: values.clone(), lent: Arc::new(values) }
    }

    pub fn lender(&self, skip: usize) -> Lender<T> {
        Lender { values: Arc::clone(&self.lent), skip }
    }

    fn check(&self) {
        assert!(*self.lent == self.expected, "the library wrote read-only memory");
        assert_eq!(Arc::strong_count(&self.lent), 1, "the library did not drop the owner");
    }
}

pub struct Lender<T> {
    values: Arc<Vec<T>>,
    skip: usize,
}

impl<T> AsRef<[T]> for Lender<T> {
    fn as_ref(&self) -> &[T] {
        &self.values[self.skip..]
    }
}

#[derive(Default)]
pub struct Loans {
    pub floats: Vec<Loan<f32>>,
    pub bytes: Vec<Loan<u8>>,
}

impl Loans {
    pub fn check(&self) {
        self.floats.iter().for_each(Loan::check);
        self.bytes.iter().for_each(Loan::check);
    }
}

pub struct State {
    pub context: Context,
    pub blobs: Vec<Blob<f32>>,
    pub plain: Vec<PlainBlob>,
    pub handles: [Option<(MemoryHandle, Memory)>; HANDLES],
    pub model: Model,
    pub saved: Vec<Saved>,
    pub loans: Loans,
    is_armed: bool,
}

impl State {
    pub fn new(context: Context) -> Self {
        let blob = |_| Blob::in_context(&context).zeros([2, 3]).expect("a small blob");
        let mut model = OpenOptions::new()
            .context(&context)
            .create(Format::Caffemodel)
            .expect("an empty model");
        model.add_layer("layer", "Type").expect("a layer");
        let state = Self {
            blobs: (0..BLOBS).map(blob).collect(),
            plain: (0..BLOBS).map(|_| PlainBlob::zeros(vec![2, 3])).collect(),
            handles: [const { None }; HANDLES],
            model,
            saved: Vec::new(),
            loans: Loans::default(),
            is_armed: false,
            context,
        };
        state.make_memories();
        state
    }

    pub fn run(&mut self, call: Call) {
        match call {
            Call::Fail(fault, nth) => return self.arm(fault.operation(), nth),
            Call::Shape(call) => self.run_shape(call),
            Call::Share(call) => self.run_share(call),
            Call::Values(call) => self.run_values(call),
            Call::Storage(call) => self.run_storage(call),
            Call::File(call) => self.run_file(call),
        }
        self.disarm();
        self.make_memories();
    }

    pub fn end(mut self) -> Loans {
        self.disarm();
        (0..BLOBS).for_each(|i| self.look(i));
        (0..HANDLES).for_each(|i| self.look_at_handle(i));
        self.loans
    }

    /// Makes each memory now. If the library made a memory later, its capacity could differ from
    /// the capacity of its reference copy.
    fn make_memories(&self) {
        for blob in &self.blobs {
            PARTS.iter().for_each(|&part| assert!(blob.memory(part).is_ok()));
        }
    }

    fn arm(&mut self, operation: Operation, nth: u8) {
        if let Some(sim) = self.context.sim() {
            sim.fail(operation, u32::from(nth % 3) + 1, Failure::Now).expect("armed");
            self.is_armed = true;
        }
    }

    fn disarm(&mut self) {
        if self.is_armed {
            let sim = self.context.sim().expect("a simulated device");
            sim.fail(Operation::Any, 0, Failure::Now).expect("disarmed");
            self.is_armed = false;
        }
    }

    fn is_injected(&self, error: &Error) -> bool {
        self.is_armed && matches!(error.kind(), ErrorKind::DeviceFailure | ErrorKind::OutOfMemory)
    }

    /// Returns None after an injected failure, and panics after any other failure.
    pub fn done<R>(&self, result: Result<R>) -> Option<R> {
        match result {
            Err(error) if self.is_injected(&error) => None,
            Err(error) => panic!("{error:?}"),
            Ok(given) => Some(given),
        }
    }

    /// Checks that a write succeeds exactly if the memory has one owner.
    pub fn written<R>(&self, is_unique: bool, result: Result<R>) -> Option<R> {
        match result {
            Err(error) if error.kind() == ErrorKind::Shared => {
                assert!(!is_unique, "{error}, but the memory has one owner");
                None
            }
            result => {
                let given = self.done(result);
                assert!(is_unique || given.is_none(), "shared memory was written");
                given
            }
        }
    }

    pub fn is_unique(&self, i: usize, part: Part) -> bool {
        is_unique(self.plain[i].part(part))
    }

    pub fn look(&self, i: usize) {
        let (blob, plain) = (&self.blobs[i], &self.plain[i]);
        assert_eq!(blob.shape(), plain.shape);
        for (part, values) in PARTS.into_iter().zip([blob.data(), blob.diff()]) {
            if let Some(values) = self.done(values) {
                assert!(same(values, &plain.values(part)), "{part}: {values:?} {plain:?}");
            }
            self.look_at_memory(i, part);
        }
        if let Some(sum) = self.done(blob.asum(Part::Data)) {
            let expected: f64 = plain.values(Part::Data).iter().map(|v| f64::from(v.abs())).sum();
            assert!((sum - expected).abs() <= 1e-6 * expected, "asum {sum}, not {expected}");
        }
    }

    fn look_at_memory(&self, i: usize, part: Part) {
        let memory = self.blobs[i].memory(part).expect("a memory");
        if let Some(bytes) = self.done(memory.data()) {
            let expected = self.plain[i].part(part).borrow();
            assert!(same(&from_bytes(bytes), &expected), "memory of {part}: {expected:?}");
        }
    }

    pub fn look_at_handle(&self, i: usize) {
        let Some((handle, plain)) = &self.handles[i] else { return };
        if let Some(bytes) = self.done(handle.data()) {
            assert!(same(&from_bytes(bytes), &plain.borrow()), "handle {i}");
        }
    }
}

pub fn two<T>(all: &mut [T], i: usize, j: usize) -> (&mut T, &mut T) {
    let (low, high) = all.split_at_mut(i.max(j));
    let (first, second) = (&mut low[i.min(j)], &mut high[0]);
    if i < j {
        (first, second)
    } else {
        (second, first)
    }
}
