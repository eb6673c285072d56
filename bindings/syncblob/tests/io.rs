use std::cell::Cell;
use std::error::Error as _;
use std::fs::File;
use std::io::{self, Cursor, Write};
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use syncblob::{Blob, Context, ErrorKind, Format, Model, OpenOptions, Payload, ReadAt};

const VALUES: usize = 300_000;

fn net() -> Vec<u8> {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    let blob = Blob::<f32>::from_fn([VALUES], |i| i as f32).unwrap();
    model.add_blob(layer, &blob, Payload::Data).unwrap();
    model.to_bytes().unwrap()
}

fn check_net(model: &Model, bytes: &[u8]) {
    let blob = model.load::<f32>((0, 0)).unwrap();
    assert!(blob.data().unwrap().iter().enumerate().all(|(i, &value)| value == i as f32));
    let mut written = Vec::new();
    model.write_to(&mut written).unwrap();
    assert_eq!(written, bytes);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Trick {
    None,
    Fails,
    Panics,
    /// Returns the buffer's length without writing to the buffer.
    Idles,
    Overstates,
    Ends,
    Interrupted,
    Crawls,
}

struct Tricky {
    bytes: Vec<u8>,
    trick: Trick,
    left: AtomicUsize,
    alive: Arc<()>,
}

#[derive(Debug)]
struct Custom;

impl std::fmt::Display for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the store is closed\0 today")
    }
}

impl std::error::Error for Custom {}

impl Tricky {
    fn new(bytes: &[u8], trick: Trick, nth: usize) -> (Self, Arc<()>) {
        let alive = Arc::new(());
        let kept = Arc::clone(&alive);
        (Self { bytes: bytes.to_vec(), trick, left: AtomicUsize::new(nth), alive }, kept)
    }

    fn strikes(&self) -> bool {
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1)));
        before.unwrap() <= 1
    }
}

impl ReadAt for Tricky {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        assert!(Arc::strong_count(&self.alive) > 0);
        if !self.strikes() {
            return self.bytes.read_at(buffer, offset);
        }
        match self.trick {
            Trick::None => self.bytes.read_at(buffer, offset),
            Trick::Fails => Err(io::Error::new(io::ErrorKind::ConnectionReset, Custom)),
            Trick::Panics => panic!("a reader that panics, on purpose"),
            Trick::Idles => {
                assert!(buffer.iter().all(|&byte| byte == 0), "the buffer contains old bytes");
                Ok(buffer.len())
            }
            Trick::Overstates => Ok(buffer.len() + 1),
            Trick::Ends => Ok(0),
            Trick::Interrupted => {
                self.left.store(2, Ordering::SeqCst);
                Err(io::ErrorKind::Interrupted.into())
            }
            Trick::Crawls => self.bytes.read_at(&mut buffer[..1], offset),
        }
    }
}

fn message(thrown: Box<dyn std::any::Any + Send>) -> String {
    (*thrown.downcast::<&str>().expect("panics here have a literal")).to_owned()
}

#[test]
fn a_model_is_read_from_every_kind_of_reader() {
    static FOR_EVER: LazyLock<Vec<u8>> = LazyLock::new(net);
    let bytes = net();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let shared: Arc<[u8]> = bytes.clone().into();
    check_net(&Model::open_reader(file).unwrap(), &bytes);
    check_net(&Model::open_reader(bytes.clone()).unwrap(), &bytes);
    check_net(&Model::open_reader(FOR_EVER.as_slice()).unwrap(), &bytes);
    check_net(&Model::open_reader(shared).unwrap(), &bytes);
    check_net(&Model::open_reader(Mutex::new(Cursor::new(bytes.clone()))).unwrap(), &bytes);
    let boxed: Box<dyn ReadAt + Send + Sync> = Box::new(bytes.clone());
    check_net(&Model::open_reader(boxed).unwrap(), &bytes);
    let options = OpenOptions::new().format(Format::Solverstate);
    assert_eq!(options.open_reader(bytes).unwrap_err().kind(), ErrorKind::Malformed);
}

#[test]
fn the_reader_is_dropped_with_the_model_or_with_a_failed_opening() {
    let (reader, alive) = Tricky::new(&net(), Trick::None, 1);
    let model = Model::open_reader(reader).unwrap();
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(model);
    assert_eq!(Arc::strong_count(&alive), 1);
    for trick in [Trick::Fails, Trick::Panics] {
        let (reader, alive) = Tricky::new(&net(), trick, 1);
        let opened = panic::catch_unwind(AssertUnwindSafe(|| Model::open_reader(reader)));
        assert!(!matches!(opened, Ok(Ok(_))));
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn each_failed_read_returns_the_readers_error() {
    let bytes = net();
    let mut reads = 0;
    loop {
        reads += 1;
        let (reader, _) = Tricky::new(&bytes, Trick::Fails, reads);
        let used = Model::open_reader(reader).and_then(|model| {
            model.load::<f32>((0, 0))?;
            model.write_to(io::sink())
        });
        let Err(error) = used else { break };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.message(), "the store is closed  today");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!(source.kind(), io::ErrorKind::ConnectionReset);
        assert!(source.get_ref().unwrap().is::<Custom>());
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionReset);
    }
    assert!(reads > 5, "{reads} reads");
}

#[test]
fn a_reader_that_panics_ends_the_call_and_nothing_else() {
    let bytes = net();
    let (reader, _) = Tricky::new(&bytes, Trick::Panics, usize::MAX);
    let reader = Arc::new(reader);
    let model = Model::open_reader(Arc::clone(&reader)).unwrap();
    let calls: [&dyn Fn(&Model); 4] = [
        &|model| drop(model.load::<f32>((0, 0))),
        &|model| drop(model.blob((0, 0))),
        &|model| drop(model.to_bytes()),
        &|model| drop(model.write_to(io::sink())),
    ];
    for call in calls {
        reader.left.store(1, Ordering::SeqCst);
        let thrown = panic::catch_unwind(AssertUnwindSafe(|| call(&model))).unwrap_err();
        assert_eq!(message(thrown), "a reader that panics, on purpose");
    }
    reader.left.store(usize::MAX, Ordering::SeqCst);
    check_net(&model, &bytes);
}

#[test]
fn the_results_of_a_reader_are_not_trusted() {
    let bytes = net();
    for (trick, kind) in [
        (Trick::Idles, Some(ErrorKind::Malformed)),
        (Trick::Overstates, Some(ErrorKind::Io)),
        (Trick::Ends, Some(ErrorKind::Io)),
        (Trick::Interrupted, None),
        (Trick::Crawls, None),
    ] {
        let (reader, _) = Tricky::new(&bytes, trick, 1);
        match (Model::open_reader(reader), kind) {
            (Ok(model), None) => check_net(&model, &bytes),
            (Err(error), Some(kind)) => assert_eq!(error.kind(), kind, "{trick:?}"),
            (opened, _) => panic!("{trick:?}: {opened:?}"),
        }
    }
    let (reader, _) = Tricky::new(&bytes, Trick::Idles, usize::MAX);
    let reader = Arc::new(reader);
    let model = Model::open_reader(Arc::clone(&reader)).unwrap();
    let blob = model.blob((0, 0)).unwrap();
    reader.left.store(1, Ordering::SeqCst);
    assert_ne!(blob.load::<f32>().map(|_| ()).map_err(|error| error.kind()), Ok(()));
}

#[test]
fn a_file_that_changes_is_an_error() {
    let bytes = net();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net");
    std::fs::write(&path, &bytes).unwrap();
    let model = Model::open_reader(File::open(&path).unwrap()).unwrap();
    File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap();
    let error = model.load::<f32>((0, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("changed"), "{error}");
}

#[test]
fn threads_load_through_one_reader() {
    let bytes = net();
    let model = Model::open_reader(Mutex::new(Cursor::new(bytes.clone()))).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| check_net(&model, &bytes));
        }
    });
}

struct Nested(Vec<u8>);

impl ReadAt for Nested {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (inner, _) = Tricky::new(&self.0, Trick::Fails, 1);
        assert_eq!(Blob::<f32>::read_from(inner).unwrap_err().kind(), ErrorKind::Io);
        if offset == 0 {
            return self.0.read_at(buffer, offset);
        }
        Err(io::Error::other("the outer one"))
    }
}

#[test]
fn a_reader_may_use_the_crate_itself() {
    let error = Model::open_reader(Nested(net())).unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "the outer one");
}

struct FailsWith(fn() -> io::Error);

impl ReadAt for FailsWith {
    fn size(&self) -> io::Result<u64> {
        Ok(100)
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err((self.0)())
    }
}

impl Write for FailsWith {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err((self.0)())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_and_a_writer_may_cancel() {
    let cancelled = || {
        let mut model = Model::from_bytes(net()).unwrap();
        model.set_progress(|_, _| ControlFlow::Break(()));
        io::Error::from(model.to_bytes().unwrap_err())
    };
    let refused = || io::Error::from(Blob::<f32>::zeros([-1]).unwrap_err());
    let cases: [(fn() -> io::Error, ErrorKind); 4] = [
        (cancelled, ErrorKind::Cancelled),
        (|| io::Error::other(ErrorKind::Cancelled), ErrorKind::Cancelled),
        (|| io::Error::other(ErrorKind::NotFound), ErrorKind::Io),
        (refused, ErrorKind::Io),
    ];
    for (gives, kind) in cases {
        let error = Blob::<f32>::read_from(FailsWith(gives)).unwrap_err();
        assert_eq!((error.kind(), error.source().is_some()), (kind, true), "{error}");
        let error = Model::from_bytes(net()).unwrap().write_to(FailsWith(gives)).unwrap_err();
        assert_eq!((error.kind(), error.source().is_some()), (kind, true), "{error}");
    }
}

struct Full {
    room: usize,
    panics: bool,
    flushes: bool,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.room > 0 || !self.panics, "a writer that panics, on purpose");
        self.room = self.room.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len().min(100_000))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.flushes {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(28))
        }
    }
}

#[test]
fn the_error_of_a_writer_is_the_source_of_the_error() {
    let model = Model::from_bytes(net()).unwrap();
    let blob = model.load::<f64>((0, 0)).unwrap();
    let writes: [&dyn Fn(Full) -> syncblob::Result<()>; 2] =
        [&|full| model.write_to(full), &|full| blob.write_to(full, Payload::Data)];
    for write in writes {
        let error = write(Full { room: 2, panics: false, flushes: true }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::StorageFull);
        let error = write(Full { room: 99, panics: false, flushes: false }).unwrap_err();
        assert_eq!((error.kind(), error.device_code()), (ErrorKind::Io, Some(28)));
        let full = Full { room: 2, panics: true, flushes: true };
        let thrown = panic::catch_unwind(AssertUnwindSafe(|| write(full))).unwrap_err();
        assert_eq!(message(thrown), "a writer that panics, on purpose");
        write(Full { room: 99, panics: false, flushes: true }).unwrap();
    }
}

#[test]
fn a_blob_is_written_to_a_writer_and_read_from_a_reader() {
    let blob = Blob::<f64>::from_fn([3, 5], |i| i as f64).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    blob.write_to(&mut file, Payload::Data).unwrap();
    let again = Blob::<f64>::read_from(&file).unwrap();
    assert_eq!((again.shape(), again.data().unwrap()), (blob.shape(), blob.data().unwrap()));
    let error = Blob::<f32>::read_from(&b"no blob"[..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[test]
fn long_calls_report_progress_and_can_be_cancelled() {
    let bytes = net();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let stops = Arc::new(AtomicUsize::new(usize::MAX));
    let options = OpenOptions::new().progress({
        let (reports, stops) = (Arc::clone(&reports), Arc::clone(&stops));
        move |done, total| {
            let mut reports = reports.lock().unwrap();
            reports.push((done, total));
            match reports.len() >= stops.load(Ordering::SeqCst) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    });
    assert!(format!("{options:?}").contains("progress"));
    let take = || std::mem::take(&mut *reports.lock().unwrap());
    let mut model = options.open_reader(bytes.clone()).unwrap();
    let size = bytes.len() as u64;
    assert_eq!(take().last(), Some(&(size, size)));
    model.load::<f32>((0, 0)).unwrap();
    let loading = take();
    assert!(loading.len() > 2 && loading.is_sorted(), "{loading:?}");
    model.write_to(io::sink()).unwrap();
    assert_eq!(take().last(), Some(&(size, size)));
    stops.store(2, Ordering::SeqCst);
    assert_eq!(model.load::<f32>((0, 0)).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(take().len(), 2);
    model.clear_progress();
    check_net(&model, &bytes);
    assert!(take().is_empty());
    drop((model, options));
    assert_eq!(Arc::strong_count(&reports), 1);
}

#[test]
fn a_progress_that_panics_ends_the_call_and_nothing_else() {
    let mut model = Model::from_bytes(net()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net");
    std::fs::write(&path, "old").unwrap();
    model.set_progress(|_, _| panic!("a progress that panics, on purpose"));
    let saved = panic::catch_unwind(AssertUnwindSafe(|| model.save(&path)));
    assert_eq!(message(saved.unwrap_err()), "a progress that panics, on purpose");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    model.set_progress(|_, _| ControlFlow::Continue(()));
    model.save(&path).unwrap();
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(true) };
}

/// This payload is empty, because `contain` leaks the payload of a panic in a drop.
struct Dropped;

fn panic_if_armed() {
    if ARMED.get() {
        panic::resume_unwind(Box::new(Dropped)); // `resume_unwind` prints nothing
    }
}

/// An error or a panic payload whose drop panics.
#[derive(Debug)]
struct Grenade;

impl std::fmt::Display for Grenade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pulled")
    }
}

impl std::error::Error for Grenade {}

impl Drop for Grenade {
    fn drop(&mut self) {
        panic_if_armed();
    }
}

struct Failing {
    bytes: Vec<u8>,
    throws: bool,
    left: AtomicUsize,
}

impl Failing {
    fn fail<T>(&self) -> io::Result<T> {
        match self.throws {
            true => panic::resume_unwind(Box::new(Grenade)),
            false => Err(io::Error::other(Grenade)),
        }
    }
}

impl ReadAt for Failing {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.left.load(Ordering::SeqCst) {
            1 => self.fail(),
            left => {
                self.left.store(left - 1, Ordering::SeqCst);
                self.bytes.read_at(buffer, offset)
            }
        }
    }

    fn version(&self) -> io::Result<u64> {
        match self.left.load(Ordering::SeqCst) {
            1 => self.fail(),
            _ => Ok(0),
        }
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        panic_if_armed();
    }
}

fn outcome<T>(call: impl FnOnce() -> T) -> &'static str {
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let found = match &result {
        Ok(_) => "returned",
        Err(thrown) if thrown.is::<Grenade>() => "threw the grenade",
        Err(_) => "threw something else",
    };
    ARMED.set(false);
    drop(result);
    ARMED.set(true);
    found
}

#[test]
fn a_failure_that_panics_when_it_is_dropped_ends_nothing_but_the_call() {
    let bytes = net();
    let (mut nth, mut thrown) = (1, 0);
    loop {
        let mut ends = [""; 4];
        for (throws, ends) in [false, true].into_iter().zip(ends.chunks_mut(2)) {
            let failing = |left: usize| Failing { bytes: bytes.clone(), throws, left: left.into() };
            let kept = failing(nth);
            ends[0] = outcome(|| Blob::<f32>::read_from(&kept));
            ends[1] = outcome(|| Model::open_reader(failing(nth)));
            ARMED.set(false);
            drop(kept);
            ARMED.set(true);
        }
        thrown += usize::from(ends[2] == "threw the grenade");
        assert_eq!(ends[0], "returned");
        if ends[1] == "returned" && ends[3] == "returned" {
            break;
        }
        assert_eq!((ends[1], ends[3]), ("threw something else", "threw something else"));
        nth += 1;
    }
    assert!(nth > 2 && thrown > 0, "{nth} reads");
    // No earlier failure may become the source of this error.
    let error = Blob::<f32>::from_proto(b"rubbish").unwrap_err();
    assert!(error.source().is_none());
}

#[test]
fn a_panic_payload_of_save_from_may_panic_when_it_is_dropped() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    model.announce_blob::<f32>(layer, [2]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    let save = || {
        model.save_from(&path, |_| -> syncblob::Result<_> {
            panic::resume_unwind(Box::new(Grenade))
        })
    };
    assert_eq!(outcome(save), "threw the grenade");
    assert!(!path.exists());
}

struct Last(Vec<u8>);

impl ReadAt for Last {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        panic::resume_unwind(Box::new("dropped"));
    }
}

#[test]
fn a_blob_is_not_leaked_when_the_drop_of_the_reader_panics() {
    let bytes = Blob::<f32>::full([100], 1.0).unwrap().to_proto(Payload::Data).unwrap();
    let context = Context::builder().host_cache(false).build().unwrap();
    let before = context.stats().unwrap().host_bytes;
    let read = panic::catch_unwind(|| Blob::<f32>::in_context(&context).read_from(Last(bytes)));
    assert_eq!(message(read.unwrap_err()), "dropped");
    assert_eq!(context.stats().unwrap().host_bytes, before);
}
