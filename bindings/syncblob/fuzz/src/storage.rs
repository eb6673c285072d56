use syncblob::{Blob, ErrorKind, Part, Pending, Result, Side, Stream};

use crate::calls::{Copy, Dims, End, StorageCall};
use crate::plain::{from_bytes, is_unique, memory, ramp, same, to_bytes, PlainBlob};
use crate::state::{Loan, State};

impl State {
    pub fn run_storage(&mut self, call: StorageCall) {
        match call {
            StorageCall::Adopt(b, spare, value) => self.adopt(b.index(), spare, value),
            StorageCall::Lend(b, spare, value) => self.lend(b.index(), spare, value),
            StorageCall::FromBytes(b, dims, skip) => self.new_from_bytes(b.index(), dims, skip),
            StorageCall::SetHandle(h, value) => {
                self.write_handle(h.index(), value, |to, from| to.set(from.to_vec()));
            }
            StorageCall::LendHandle(h, value) => self.lend_handle(h.index(), value),
            StorageCall::ReadOnDevice(b, p) => self.read_on_device(b.index(), p.part()),
            StorageCall::WriteOnDevice(b, p, value) => {
                self.write_on_device(b.index(), p.part(), value);
            }
            StorageCall::Queue(b, p, copy, end) => self.queue(b.index(), p.part(), copy, end),
            StorageCall::Evict(b, p, side) => self.evict(b.index(), p.part(), side.side()),
            StorageCall::EvictHandle(h, side) => self.evict_handle(h.index(), side.side()),
        }
    }

    fn values_to_spare(&self, i: usize, spare: u8, value: i8) -> Vec<f32> {
        ramp(value, self.plain[i].count() + usize::from(spare % 8))
    }

    fn adopt(&mut self, i: usize, spare: u8, value: i8) {
        let values = self.values_to_spare(i, spare, value);
        let result = self.blobs[i].set(Part::Data, values.clone());
        if self.done(result).is_some() {
            self.plain[i].data = memory(values);
        }
    }

    fn lend(&mut self, i: usize, spare: u8, value: i8) {
        let values = self.values_to_spare(i, spare, value);
        let loan = Loan::new(values.clone());
        let result = self.blobs[i].set_shared(Part::Data, loan.lender(0));
        self.loans.floats.push(loan);
        if self.done(result).is_some() {
            self.plain[i].data = memory(values);
        }
    }

    fn new_from_bytes(&mut self, i: usize, dims: Dims, skip: u8) {
        let (shape, skip) = (dims.shape(), usize::from(skip % 5));
        let values = ramp(1, shape.iter().product());
        let loan = Loan::new([vec![0; skip], to_bytes(&values)].concat());
        let result =
            Blob::in_context(&self.context).from_ne_bytes_or_copy(&shape, loan.lender(skip));
        self.loans.bytes.push(loan);
        if let Some(blob) = self.done(result) {
            self.blobs[i] = blob;
            self.plain[i] = PlainBlob::new(shape, values, None);
        }
    }

    fn lend_handle(&mut self, h: usize, value: i8) {
        let Some((_, plain)) = &self.handles[h] else { return };
        let loan = Loan::new(to_bytes(&ramp(value, plain.borrow().len())));
        let lender = loan.lender(0);
        self.loans.bytes.push(loan);
        self.write_handle(h, value, |to, _| to.set_shared(lender));
    }

    fn read_on_device(&self, i: usize, part: Part) {
        let Some(sim) = self.context.sim() else { return };
        let (blob, expected) = (&self.blobs[i], self.plain[i].values(part));
        let start = match part {
            Part::Data => blob.gpu_ptr(Part::Data),
            Part::Diff => blob.gpu_ptr(Part::Diff),
        };
        let Some(start) = self.done(start) else { return };
        if !expected.is_empty() {
            let bytes = sim.peek(start.cast(), expected.len() * 4).expect("memory of the device");
            assert!(same(&from_bytes(&bytes), &expected), "{part} on the device");
        }
    }

    fn write_on_device(&mut self, i: usize, part: Part, value: i8) {
        let blob = &mut self.blobs[i];
        let start = match part {
            Part::Data => blob.gpu_mut_ptr(Part::Data),
            Part::Diff => blob.gpu_mut_ptr(Part::Diff),
        };
        if matches!(&start, Err(error) if error.kind() == ErrorKind::NoDevice) {
            assert!(!self.context.has_device());
            return;
        }
        let values = ramp(value, self.plain[i].count());
        let Some(start) = self.written(self.is_unique(i, part), start) else { return };
        if !values.is_empty() {
            let sim = self.context.sim().expect("a simulated device");
            sim.poke(start.cast(), &to_bytes(&values)).expect("memory of the device");
            self.plain[i].write(part, &values);
        }
    }

    fn queue(&self, i: usize, part: Part, copy: Copy, end: End) {
        let blob = &self.blobs[i];
        let memory = blob.memory(part).expect("a memory");
        let queued = match copy {
            Copy::Push => memory.push(Stream::DEFAULT),
            Copy::Pull => memory.pull(Stream::DEFAULT),
            Copy::PrefetchHost => memory.prefetch(Side::Host, Stream::DEFAULT),
            Copy::PrefetchDevice => memory.prefetch(Side::Device, Stream::DEFAULT),
        };
        match queued {
            Err(error) if is_of_the_head(&error) => (),
            Err(error) if error.kind() == ErrorKind::NoDevice => {
                assert!(!self.context.has_device());
            }
            queued => {
                if let Some(guard) = self.done(queued) {
                    self.end_copy(i, guard, end);
                }
            }
        }
    }

    fn end_copy(&self, i: usize, guard: Pending, end: End) {
        match end {
            End::Wait => assert!(self.done(guard.wait()).is_some() || self.context.has_device()),
            End::Drop => drop(guard),
            End::Forget => std::mem::forget(guard),
            End::ReadFirst => self.look(i),
        }
    }

    fn evict(&mut self, i: usize, part: Part, side: Side) {
        let is_unique = self.is_unique(i, part);
        let result = self.blobs[i].memory_mut(part).expect("a memory").evict(side);
        self.evicted(is_unique, result);
    }

    fn evict_handle(&mut self, h: usize, side: Side) {
        let Some((handle, plain)) = &mut self.handles[h] else { return };
        let (is_unique, result) = (is_unique(plain), handle.evict(side));
        self.evicted(is_unique, result);
    }

    /// Checks the result of an evict, which must fail if only the evicted side has the newest
    /// bytes.
    fn evicted(&self, is_unique: bool, result: Result<()>) {
        match result {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => assert!(is_unique),
            result => {
                self.written(is_unique, result);
            }
        }
    }
}

/// Returns whether a copy was refused because its source side does not have the newest bytes.
fn is_of_the_head(error: &syncblob::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Uninitialized)
}
