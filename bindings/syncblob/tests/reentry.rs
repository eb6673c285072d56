//! Tests callbacks that make random calls on objects that share memory with the running call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError, Weak};
use std::time::{Duration, Instant};

use syncblob::{
    Blob, Context, ErrorKind, Format, MemoryHandle, Model, OpenOptions, Part, Payload, ReadAt, Side,
};

const SLOTS: usize = 5;
const MAX_DEPTH: u32 = 3;

/// With this many elements the library divides work among threads.
const LARGE: usize = 140_000;

static RANDOM: Mutex<u64> = Mutex::new(0);
static WORLD: RwLock<Weak<World>> = RwLock::new(Weak::new());

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

fn below(bound: usize) -> usize {
    let mut state = RANDOM.lock().unwrap_or_else(PoisonError::into_inner);
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % bound
}

fn one_in(bound: usize) -> bool {
    below(bound) == 0
}

// --- the shared objects -------------------------------------------------------------------

struct World {
    context: Context,
    blobs: Vec<Mutex<Option<Blob<f32>>>>,
    handles: Mutex<Vec<MemoryHandle>>,
    model: Mutex<Option<Arc<Model>>>,
    owners: AtomicUsize,
    nested: AtomicUsize,
    /// Collects errors of callbacks, because the crate catches some panics.
    wrong: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl World {
    fn slot(&self) -> Option<MutexGuard<'_, Option<Blob<f32>>>> {
        free(&self.blobs[below(SLOTS)])
    }

    fn model(&self) -> Option<Arc<Model>> {
        free(&self.model)?.clone()
    }

    fn note(&self, what: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

/// Locks an object, or returns None if a call that runs this callback uses the object.
fn free<T>(of: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match of.try_lock() {
        Ok(free) => Some(free),
        Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn world() -> Option<Arc<World>> {
    let world = WORLD.read().unwrap_or_else(PoisonError::into_inner).upgrade()?;
    (!world.is_over.load(SeqCst)).then_some(world)
}

fn call_back() {
    let Some(world) = world() else { return };
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH || one_in(4) {
        return;
    }
    world.nested.fetch_add(1, SeqCst);
    DEPTH.set(depth + 1);
    let done = panic::catch_unwind(AssertUnwindSafe(|| step(&world)));
    DEPTH.set(depth);
    if let Err(payload) = done {
        match payload.is::<OnPurpose>() {
            true => panic::resume_unwind(payload),
            false => world.note(format!("{:?}", payload.downcast_ref::<String>())),
        }
    }
}

struct OnPurpose;

fn maybe_throw() {
    if one_in(40) {
        panic::resume_unwind(Box::new(OnPurpose)); // `resume_unwind` prints nothing
    }
}

// --- callbacks ----------------------------------------------------------------------------

struct Owner(Vec<f32>);

impl Owner {
    fn new(world: &World, count: usize) -> Self {
        world.owners.fetch_add(1, SeqCst);
        Self(vec![value(); count])
    }
}

impl AsRef<[f32]> for Owner {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes of floats are initialised.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), size_of_val(&*self.0)) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        assert!(self.0.iter().all(is_value));
        if let Some(world) = WORLD.read().unwrap_or_else(PoisonError::into_inner).upgrade() {
            world.owners.fetch_sub(1, SeqCst);
        }
        call_back();
        maybe_throw();
    }
}

struct Reader(Vec<u8>);

impl ReadAt for Reader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        call_back();
        maybe_throw();
        match below(30) {
            0 => Err(io::Error::other("the store is closed")),
            1 => Err(io::ErrorKind::Interrupted.into()),
            _ => self.0.read_at(buffer, offset),
        }
    }

    fn version(&self) -> io::Result<u64> {
        call_back();
        match below(30) {
            0 => Err(io::Error::other("the store is closed")),
            _ => Ok(7),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        call_back();
    }
}

struct Writer(Vec<u8>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        call_back();
        maybe_throw();
        match one_in(30) {
            true => Err(io::Error::other("the store is full")),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn report(_: u64, _: u64) -> ControlFlow<()> {
    call_back();
    maybe_throw();
    if one_in(30) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

fn spread(tasks: usize, task: &(dyn Fn() + Sync)) {
    call_back();
    std::thread::scope(|scope| {
        for _ in 0..tasks.min(2) {
            scope.spawn(|| {
                task();
                call_back();
            });
        }
    });
    maybe_throw();
}

/// Fails at random. Unlike other callbacks, an allocator must not call the library.
struct Failing;

static FAILS: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every allocation that succeeds is made by the system allocator.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if FAILS.load(SeqCst) && one_in(60) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(layout.size(), SeqCst);
        // SAFETY: the caller promises that the layout is valid.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: `memory` is from `alloc`.
        unsafe { System.dealloc(memory, layout) };
    }
}

// --- steps --------------------------------------------------------------------------------

/// All values are whole numbers, so a fraction shows invalid memory.
fn value() -> f32 {
    below(16) as f32 - 8.0
}

fn is_value(value: &f32) -> bool {
    value.fract() == 0.0 && value.abs() < 1e7
}

fn count() -> usize {
    if one_in(40) {
        LARGE
    } else {
        below(40)
    }
}

type Result<T = ()> = syncblob::Result<T>;

type Step = (&'static str, fn(&Arc<World>) -> Result);

const OFTEN: [Step; 4] =
    [("model", step_of_model), STEPS[1], ("set_shared_data", set_shared_data), STEPS[6]];

const STEPS: [Step; 22] = [
    ("new", |w| put(w, Blob::in_context(&w.context).full([count()], value())?)),
    ("new of an owner", |w| {
        let count = count();
        put(w, Blob::in_context(&w.context).from_shared([count], Owner::new(w, count))?)
    }),
    ("new of a vector", |w| {
        let count = count();
        put(w, Blob::in_context(&w.context).from_vec([count], vec![value(); count])?)
    }),
    ("drop", |w| {
        drop(w.slot().and_then(|mut slot| slot.take()));
        Ok(())
    }),
    ("reshape", |w| one(w, |blob| blob.reshape([count()]).map(drop))),
    ("shrink", |w| one(w, |blob| blob.shrink_to_fit().map(drop))),
    ("share_data", |w| two(w, |to, from| to.share(Part::Data, from))),
    ("share_diff", |w| two(w, |to, from| to.share(Part::Diff, from))),
    ("copy_from", |w| two(w, |to, from| to.copy_from_reshape(part(), from))),
    ("set_shared_data", set_shared_data),
    ("memory set_shared", |w| {
        one(w, |blob| {
            let count = blob.memory(part())?.size() / size_of::<f32>();
            blob.memory_mut(part())?.set_shared(Owner::new(w, count))
        })
    }),
    ("set_memory", |w| {
        let handle = free(&w.handles).and_then(|mut handles| handles.pop());
        let Some(handle) = handle else { return Ok(()) };
        one(w, |blob| blob.set_memory(part(), handle))
    }),
    ("handle", |w| {
        one(w, |blob| {
            let handle =
                if one_in(2) { blob.handle(Part::Data)? } else { blob.handle(Part::Diff)? };
            let last = free(&w.handles).and_then(|mut handles| {
                handles.insert(0, handle);
                (handles.len() > 4).then(|| handles.pop())
            });
            drop(last);
            Ok(())
        })
    }),
    ("drop_diff", |w| {
        one(w, |blob| {
            blob.release(Part::Diff);
            Ok(())
        })
    }),
    ("make_unique", |w| one(w, |blob| blob.make_unique(part()))),
    ("write", |w| {
        one(w, |blob| match below(4) {
            0 => blob.data_mut().map(|data| data.fill(value())),
            1 => blob.diff_mut().map(|diff| diff.fill(value())),
            2 => blob.fill(Part::Diff, value()),
            _ => blob.clear(Part::Data),
        })
    }),
    ("update and sum", |w| {
        one(w, |blob| {
            if blob.data()?.iter().all(|value| value.abs() < 1e3) {
                blob.update()?;
            }
            blob.asum(Part::Data).and(blob.sumsq(Part::Diff)).map(drop)
        })
    }),
    ("sides", |w| {
        one(w, |blob| match below(4) {
            0 => blob.gpu_ptr(Part::Data).map(drop),
            1 => blob.gpu_mut_ptr(Part::Data).map(drop),
            2 => blob.memory_mut(part())?.evict(Side::Host),
            _ => blob.memory_mut(part())?.evict(Side::Device),
        })
    }),
    ("into_vec", |w| {
        let Some(blob) = w.slot().and_then(|mut slot| slot.take()) else { return Ok(()) };
        let count = blob.count();
        let values = blob.into_vec()?;
        assert!(values.len() == count && values.iter().all(is_value), "into_vec");
        Ok(())
    }),
    ("tensor", |w| {
        let tensor = {
            let Some(slot) = w.slot() else { return Ok(()) };
            let Some(blob) = &*slot else { return Ok(()) };
            blob.to_dlpack(part(), Side::Host)?
        };
        put(w, Blob::in_context(&w.context).from_dlpack(tensor)?)
    }),
    ("context", |w| {
        w.context.trim();
        w.context.stats()?;
        w.context.synchronize()
    }),
    ("model", step_of_model),
];

fn set_shared_data(world: &Arc<World>) -> Result {
    one(world, |blob| blob.set_shared(Part::Data, Owner::new(world, blob.count() + below(3))))
}

fn part() -> Part {
    if one_in(2) {
        Part::Data
    } else {
        Part::Diff
    }
}

fn put(world: &World, blob: Blob<f32>) -> Result {
    let before = world.slot().and_then(|mut slot| slot.replace(blob));
    drop(before); // without the slot's lock, unlike other steps
    Ok(())
}

fn one(world: &World, call: impl FnOnce(&mut Blob<f32>) -> Result) -> Result {
    match world.slot().as_deref_mut() {
        Some(Some(blob)) => call(blob),
        _ => Ok(()),
    }
}

fn two(world: &World, call: impl FnOnce(&mut Blob<f32>, &Blob<f32>) -> Result) -> Result {
    match (world.slot().as_deref_mut(), world.slot().as_deref()) {
        (Some(Some(to)), Some(Some(from))) => call(to, from),
        _ => Ok(()),
    }
}

fn step_of_model(world: &Arc<World>) -> Result {
    let Some(model) = world.model() else { return new_model(world) };
    match below(6) {
        0 => {
            let layer = below(model.num_layers().max(1));
            put(world, Blob::in_context(&world.context).load(&model.blob((layer, 0))?)?)
        }
        1 => model.to_bytes().map(drop),
        2 => model.write_to(Writer(Vec::new())),
        3 => {
            let options = OpenOptions::new().context(&world.context).progress(report);
            let opened = options.open_reader(Reader(model.to_bytes()?))?;
            replace_model(world, opened);
            Ok(())
        }
        4 => {
            let mut bytes = Writer(Vec::new());
            if let Some(Some(blob)) = world.slot().as_deref() {
                blob.write_to(&mut bytes, Payload::DataAndDiff)?;
                let read = Blob::in_context(&world.context).read_from(Reader(bytes.0))?;
                return put(world, read);
            }
            Ok(())
        }
        _ => new_model(world),
    }
}

fn new_model(world: &Arc<World>) -> Result {
    let mut model = OpenOptions::new().context(&world.context).create(Format::Caffemodel)?;
    model.set_progress(report);
    for name in ["a", "b", "c"] {
        let layer = model.add_layer(name, "X")?;
        match world.slot().as_deref() {
            Some(Some(blob)) => model.add_blob(layer, blob, Payload::DataAndDiff)?,
            _ => model.add_blob(layer, &Blob::<f32>::full([3], 2.0)?, Payload::Data)?,
        }
    }
    replace_model(world, model);
    Ok(())
}

fn replace_model(world: &World, model: Model) {
    let before = free(&world.model).and_then(|mut slot| slot.replace(Arc::new(model)));
    drop(before);
}

fn step(world: &Arc<World>) {
    let (name, call) = match below(4) {
        0 => OFTEN[below(OFTEN.len())],
        _ => STEPS[below(STEPS.len())],
    };
    if let Err(error) = call(world) {
        let is_known = match error.kind() {
            ErrorKind::Io => error.to_string().contains("the store is"),
            kind => matches!(
                kind,
                ErrorKind::Shared
                    | ErrorKind::ShapeMismatch
                    | ErrorKind::InvalidArgument
                    | ErrorKind::Uninitialized
                    | ErrorKind::OutOfMemory
                    | ErrorKind::Cancelled
                    | ErrorKind::NoDevice
            ),
        };
        assert!(is_known, "{name}: {error:?}");
    }
}

fn check(world: &World) {
    FAILS.store(false, SeqCst);
    for slot in &world.blobs {
        let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(blob) = &*slot else { continue };
        for part in [blob.data(), blob.diff()] {
            let values = part.unwrap();
            assert_eq!(values.len(), blob.count());
            assert!(values.iter().all(is_value), "{values:?}");
        }
    }
    FAILS.store(true, SeqCst);
    let wrong = world.wrong.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn live(seed: u64, device: &str) -> usize {
    *RANDOM.lock().unwrap_or_else(PoisonError::into_inner) = seed;
    let builder = Context::builder().device(device).allocator(&Failing).parallel_for(&spread);
    let world = Arc::new(World {
        context: builder.build().unwrap(),
        blobs: (0..SLOTS).map(|_| Mutex::default()).collect(),
        handles: Mutex::default(),
        model: Mutex::default(),
        owners: AtomicUsize::new(0),
        nested: AtomicUsize::new(0),
        wrong: Mutex::default(),
        is_over: AtomicBool::new(false),
    });
    let begin = world.context.stats().unwrap();
    *WORLD.write().unwrap() = Arc::downgrade(&world);
    for _ in 0..80 {
        let done = panic::catch_unwind(AssertUnwindSafe(|| step(&world)));
        if let Err(payload) = done {
            assert!(payload.is::<OnPurpose>(), "{:?}", payload.downcast_ref::<String>());
        }
        check(&world);
    }
    world.is_over.store(true, SeqCst);
    FAILS.store(false, SeqCst);
    for slot in &world.blobs {
        let blob = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(blob)));
    }
    world.handles.lock().unwrap_or_else(PoisonError::into_inner).clear();
    *world.model.lock().unwrap_or_else(PoisonError::into_inner) = None;
    world.context.trim();
    let stats = world.context.stats().unwrap();
    assert_eq!(world.owners.load(SeqCst), 0, "owners that were not dropped");
    assert_eq!(
        (stats.host_bytes, stats.borrowed_bytes, stats.pinned_bytes),
        (begin.host_bytes, 0, 0)
    );
    world.nested.load(SeqCst)
}

#[test]
fn callbacks_may_use_objects_that_share_memory_with_the_running_call() {
    let is_full = std::env::var_os("SYNCBLOB_TEST_FULL").is_some();
    let (begin, time) = (Instant::now(), Duration::from_secs(if is_full { 60 } else { 3 }));
    let only = std::env::var("SYNCBLOB_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let (mut nested, mut seed) = (0, only.unwrap_or(0));
    while begin.elapsed() < time || (nested <= 100 && seed < 1000) {
        let device = if seed % 2 == 0 { "cpu" } else { "sim:0" };
        let lived = panic::catch_unwind(|| live(seed, device));
        let Ok(found) = lived else { panic!("SYNCBLOB_TEST_SEED={seed} repeats the failure") };
        nested += found;
        seed += 1;
        if only.is_some() {
            break;
        }
    }
    assert!(only.is_some() || nested > 100, "{nested} callbacks in {seed} runs");
    assert_eq!(LIVE.load(SeqCst), 0);
}
