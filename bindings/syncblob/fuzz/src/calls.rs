//! The calls that a fuzzer's input describes.

use arbitrary::Arbitrary;
use syncblob::sim::{Operation, Schedule};
use syncblob::{Context, Part, Side};

pub const BLOBS: usize = 2; // few, so that calls often use the same blob
pub const HANDLES: usize = 2;

#[derive(Arbitrary, Debug)]
pub struct Input {
    pub device: Device,
    pub calls: Vec<Call>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Device {
    None,
    Eager,
    Lazy,
    Random(u8),
}

impl Device {
    pub fn context(self) -> Context {
        let schedule = match self {
            Self::None => return Context::builder().build().expect("a host-only context"),
            Self::Eager => Schedule::Eager,
            Self::Lazy => Schedule::Lazy,
            Self::Random(seed) => Schedule::Random(seed.into()),
        };
        let context = Context::builder().device("sim:0").build().expect("a simulated device");
        let sim = context.sim().expect("the device is a simulated one");
        sim.set_schedule(schedule).expect("a schedule");
        context
    }
}

/// The index of a blob.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct B(u8);

/// The index of a handle.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct H(u8);

impl B {
    pub fn index(self) -> usize {
        usize::from(self.0) % BLOBS
    }
}

impl H {
    pub fn index(self) -> usize {
        usize::from(self.0) % HANDLES
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Dims {
    axes: u8,
    dims: [u8; 4],
}

impl Dims {
    pub fn shape(self) -> Vec<usize> {
        let axes = usize::from(self.axes) % 5;
        self.dims[..axes].iter().map(|&dim| usize::from(dim) % 5).collect()
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum P {
    Data,
    Diff,
}

impl P {
    pub fn part(self) -> Part {
        match self {
            Self::Data => Part::Data,
            Self::Diff => Part::Diff,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum S {
    Host,
    Device,
}

impl S {
    pub fn side(self) -> Side {
        match self {
            Self::Host => Side::Host,
            Self::Device => Side::Device,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Copy {
    Push,
    Pull,
    PrefetchHost,
    PrefetchDevice,
}

/// What the fuzzer does with the `Pending` of a queued copy.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum End {
    Wait,
    Drop,
    Forget,
    ReadFirst,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Fault {
    Alloc,
    Upload,
    Download,
}

impl Fault {
    pub fn operation(self) -> Operation {
        match self {
            Self::Alloc => Operation::Alloc,
            Self::Upload => Operation::Upload,
            Self::Download => Operation::Download,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Call {
    Shape(ShapeCall),
    Share(ShareCall),
    Values(ValuesCall),
    Storage(StorageCall),
    File(FileCall),
    Fail(Fault, u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum ShapeCall {
    Reshape(B, Dims),
    ReshapeLike(B, B),
    Shrink(B),
    At(B, [u8; 4]),
    Show(B),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum ShareCall {
    Share(B, B, P),
    MakeUnique(B, P),
    Keep(H, B, P),
    CloneHandle(H, H),
    Release(H),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum ValuesCall {
    Look(B),
    Write(B, P, i8),
    WriteBoth(B, i8),
    Fill(B, P, i8),
    /// Overwrites the elements. With `true`, passes one value too many.
    Overwrite(B, P, i8, bool),
    Clear(B, P),
    Scale(B, P, bool),
    Update(B),
    CopyFrom(B, B, P, bool),
    CloneOf(B, B),
    FromSlice(B, Dims, i8),
    WriteHandle(H, i8),
    OverwriteHandle(H, i8),
    ClearHandle(H),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum StorageCall {
    Adopt(B, u8, i8),
    Lend(B, u8, i8),
    FromBytes(B, Dims, u8),
    SetHandle(H, i8),
    LendHandle(H, i8),
    ReadOnDevice(B, P),
    WriteOnDevice(B, P, i8),
    Queue(B, P, Copy, End),
    Evict(B, P, S),
    EvictHandle(H, S),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum FileCall {
    FromProto(B, B, bool),
    ReadProto(B, B, bool),
    CutProto(B, B, u8),
    AddToModel(B, bool),
    SetInModel(u8, B, bool),
    ReopenModel,
    LoadFromModel(u8, B),
}
