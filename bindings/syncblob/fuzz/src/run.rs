//! Blobs, handles and a model file of the library, each with its plain model.

use std::sync::Arc;

use syncblob::sim::{Failure, Operation};
use syncblob::{
    Blob, Context, Error, ErrorKind, Format, MemoryHandle, Model, OpenOptions, Part, Result,
    Stream,
};

use crate::calls::{payload, side, Call, Copy, Dims, End, Input, BLOBS, HANDLES};
use crate::plain::{from_bytes, is_unique, memory, ramp, same, to_bytes, Memory, PlainBlob};

/// The maximum of calls of one input. A call can double the values, which must stay finite.
const MAX_CALLS: usize = 64;

const PARTS: [Part; 2] = [Part::Data, Part::Diff];

/// The expected contents of a blob in a model file.
#[derive(Clone)]
struct Saved {
    shape: Vec<usize>,
    data: Vec<f32>,
    diff: Option<Vec<f32>>,
}

/// Values lent for reading, and a copy, to which they must stay equal.
struct Loan {
    lent: Arc<Vec<u8>>,
    expected: Vec<u8>,
}

/// Owns the values of a loan.
struct Lender(Arc<Vec<u8>>, Vec<f32>);

impl AsRef<[f32]> for Lender {
    fn as_ref(&self) -> &[f32] {
        &self.1
    }
}

struct State {
    context: Context,
    blobs: Vec<Blob<f32>>,
    plain: Vec<PlainBlob>,
    handles: [Option<MemoryHandle>; HANDLES],
    plain_handles: [Option<Memory>; HANDLES],
    model: Model,
    saved: Vec<Saved>,
    loans: Vec<Loan>,
    /// Whether a device call may fail.
    is_armed: bool,
}

/// Makes the input's calls.
pub fn run(input: &Input) {
    let context = input.device.context();
    let before = context.stats().expect("statistics");
    let mut state = State::new(context.clone());
    for call in input.calls.iter().take(MAX_CALLS) {
        state.run(*call);
    }
    state.disarm();
    for i in 0..BLOBS {
        state.look(i);
    }
    (0..HANDLES).for_each(|i| state.look_at_handle(i));
    let loans = std::mem::take(&mut state.loans);
    drop(state);
    context.synchronize().expect("nothing fails any more");
    context.trim();
    for loan in loans {
        assert_eq!(*loan.lent, loan.expected, "memory lent for reading was written");
        assert_eq!(Arc::strong_count(&loan.lent), 1, "its owner was not dropped");
    }
    let after = context.stats().expect("statistics");
    assert_eq!(after.host_bytes, before.host_bytes);
    assert_eq!((after.device_bytes, after.borrowed_bytes), (0, 0));
}

/// Returns two different elements.
fn two<T>(all: &mut [T], i: usize, j: usize) -> (&mut T, &mut T) {
    let (low, high) = all.split_at_mut(i.max(j));
    let (first, second) = (&mut low[i.min(j)], &mut high[0]);
    if i < j {
        (first, second)
    } else {
        (second, first)
    }
}

impl State {
    fn new(context: Context) -> Self {
        let blob = |_| Blob::in_context(&context).zeros([2, 3]).expect("a small blob");
        let mut model = OpenOptions::new().context(&context).create(Format::Caffemodel).expect("an empty model");
        model.add_layer("layer", "Type").expect("a layer");
        let state = Self {
            blobs: (0..BLOBS).map(blob).collect(),
            plain: (0..BLOBS).map(|_| PlainBlob::zeros(vec![2, 3])).collect(),
            handles: [const { None }; HANDLES],
            plain_handles: [const { None }; HANDLES],
            model,
            saved: Vec::new(),
            loans: Vec::new(),
            is_armed: false,
            context,
        };
        state.make_memories();
        state
    }

    /// Makes all memories now: a memory's capacity is the blob's count when the memory is made, and
    /// the model makes its memories at once.
    fn make_memories(&self) {
        for blob in &self.blobs {
            PARTS.map(|part| assert!(blob.memory(part).is_ok()));
        }
    }

    fn disarm(&mut self) {
        if self.is_armed {
            let sim = self.context.sim().expect("a simulated device");
            sim.fail(Operation::Any, 0, Failure::Now).expect("disarmed");
            self.is_armed = false;
        }
    }

    /// Returns whether an error can be the injected failure of the device.
    fn is_asked_for(&self, error: &Error) -> bool {
        self.is_armed && matches!(error.kind(), ErrorKind::DeviceFailure | ErrorKind::OutOfMemory)
    }

    /// Returns the result of a call that only the device can refuse.
    fn done<R>(&self, result: Result<R>) -> Option<R> {
        match result {
            Err(error) if self.is_asked_for(&error) => None,
            other => Some(other.expect("the call succeeds")),
        }
    }

    /// Returns the result of a call that must succeed if and only if the memory has one owner.
    fn written<R>(&self, is_unique: bool, result: Result<R>) -> Option<R> {
        match result {
            Err(error) if self.is_asked_for(&error) => None,
            Err(error) if error.kind() == ErrorKind::Shared => {
                assert!(!is_unique, "{error}, but it has one owner");
                None
            }
            Err(error) => panic!("{error:?}"),
            Ok(given) => {
                assert!(is_unique, "shared memory was written");
                Some(given)
            }
        }
    }

    fn is_unique(&self, i: usize, part: Part) -> bool {
        is_unique(self.plain[i].part(part))
    }

    fn run(&mut self, call: Call) {
        if let Call::Fail(fault, nth) = call {
            if let Some(sim) = self.context.sim() {
                let nth = u32::from(nth % 3) + 1;
                sim.fail(fault.operation(), nth, Failure::Now).expect("armed");
                self.is_armed = true;
            }
            return;
        }
        self.shape(call);
        self.disarm();
        self.make_memories();
    }

    fn shape(&mut self, call: Call) {
        match call {
            Call::Reshape(b, dims) => self.reshape(b.index(), &dims.shape()),
            Call::ReshapeLike(b, c) => self.reshape_like(b.index(), c.index()),
            Call::Shrink(b) => self.shrink(b.index()),
            Call::At(b, indices) => self.at(Part::Data, b.index(), indices.map(|i| usize::from(i) % 6)),
            Call::Share(b, c, p) => self.share(b.index(), c.index(), p.part()),
            Call::MakeUnique(b, p) => self.make_unique(b.index(), p.part()),
            Call::Keep(h, b, p) => self.keep(h.index(), b.index(), p.part()),
            Call::CloneHandle(h, k) => {
                self.handles[h.index()] = self.handles[k.index()].clone();
                self.plain_handles[h.index()] = self.plain_handles[k.index()].clone();
            }
            Call::Release(h) => {
                self.handles[h.index()] = None;
                self.plain_handles[h.index()] = None;
            }
            _ => self.values(call),
        }
    }

    fn values(&mut self, call: Call) {
        match call {
            Call::Look(b) => self.look(b.index()),
            Call::Show(b) => self.show(b.index()),
            Call::Write(b, p, value) => self.write(b.index(), p.part(), value),
            Call::WriteBoth(b, value) => self.write_both(b.index(), value),
            Call::Fill(b, p, value) => self.fill(b.index(), p.part(), value.into()),
            Call::Overwrite(b, p, value, more) => {
                self.overwrite(b.index(), p.part(), value, more.into());
            }
            Call::Clear(b, p) => self.clear(b.index(), p.part()),
            Call::Scale(b, p, up) => self.scale(b.index(), p.part(), if up { 2.0 } else { -0.5 }),
            Call::Update(b) => self.update(b.index()),
            Call::CopyFrom(b, c, p, reshape) => {
                self.copy_from(b.index(), c.index(), p.part(), reshape);
            }
            Call::CloneOf(b, c) => self.clone_of(b.index(), c.index()),
            Call::FromSlice(b, dims, value) => self.from_slice(b.index(), dims, value),
            Call::WriteHandle(h, value) => self.write_handle(h.index(), |handle, values| {
                handle.data_mut().map(|to| to.copy_from_slice(&to_bytes(values)))
            }, value),
            Call::OverwriteHandle(h, value) => self.write_handle(h.index(), |handle, values| {
                handle.overwrite(&to_bytes(values))
            }, value),
            Call::ClearHandle(h) => self.clear_handle(h.index()),
            _ => self.places(call),
        }
    }

    fn places(&mut self, call: Call) {
        match call {
            Call::Adopt(b, spare, value) => self.adopt(b.index(), spare, value),
            Call::Lend(b, spare, value) => self.lend(b.index(), spare, value),
            Call::FromBytes(b, dims, skip) => self.from_bytes(b.index(), dims, skip),
            Call::SetHandle(h, value) => {
                self.write_handle(h.index(), |handle, values| handle.set(values.to_vec()), value);
            }
            Call::LendHandle(h, value) => self.lend_handle(h.index(), value),
            Call::ReadOnDevice(b, p) => self.read_on_device(b.index(), p.part()),
            Call::WriteOnDevice(b, p, value) => self.write_on_device(b.index(), p.part(), value),
            Call::Queue(b, p, copy, end) => self.queue(b.index(), p.part(), copy, end),
            Call::Evict(b, p, of_device) => self.evict(b.index(), p.part(), of_device),
            Call::EvictHandle(h, of_device) => self.evict_handle(h.index(), of_device),
            _ => self.files(call),
        }
    }

    fn files(&mut self, call: Call) {
        match call {
            Call::FromProto(b, c, diff) => self.from_proto(b.index(), c.index(), diff),
            Call::ReadProto(b, c, diff) => self.read_proto(b.index(), c.index(), diff),
            Call::CutProto(b, c, at) => self.cut_proto(b.index(), c.index(), at.into()),
            Call::AddToModel(b, diff) => self.add_to_model(b.index(), diff),
            Call::SetInModel(at, b, diff) => self.set_in_model(at.into(), b.index(), diff),
            Call::ReopenModel => self.reopen_model(),
            Call::LoadFromModel(at, b) => self.load_from_model(at.into(), b.index()),
            other => unreachable!("{other:?}"),
        }
    }
}

/// Shapes.
impl State {
    fn reshape(&mut self, i: usize, shape: &[usize]) {
        if let Some(done) = self.done(self.blobs[i].reshape(shape)) {
            assert_eq!((done.data, done.diff), self.plain[i].reshape(shape));
        }
    }
}
