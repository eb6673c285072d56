//! Tests calls in the destructor of a thread-local after other thread-locals have ended.

use std::cell::RefCell;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::{io, panic};

use syncblob::{Blob, ErrorKind, Filler, Format, Model, OpenOptions, Payload, ReadAt};

fn net() -> Model {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    model.add_blob(layer, &Blob::<f32>::full([1000], 1.0).unwrap(), Payload::Data).unwrap();
    model
}

struct Broken;

impl ReadAt for Broken {
    fn size(&self) -> io::Result<u64> {
        Ok(100)
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::Error::other("the store is closed"))
    }
}

struct Panics;

impl ReadAt for Panics {
    fn size(&self) -> io::Result<u64> {
        Ok(100)
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        panic!("a reader that panics, on purpose");
    }
}

fn calls(bytes: &[u8]) {
    let mut model = Model::open_reader(bytes.to_vec()).unwrap();
    model.set_progress(|_, _| ControlFlow::Continue(()));
    assert_eq!(model.load::<f32>((0, 0)).unwrap().data().unwrap(), [1.0; 1000]);
    assert_eq!(model.to_bytes().unwrap(), bytes);
    let mut written = Vec::new();
    model.write_to(&mut written).unwrap();
    assert_eq!(written, bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    model.save(&path).unwrap();
    assert_eq!(OpenOptions::new().open(&path).unwrap().layers().len(), 1);
    let mut blob = Blob::from_vec([3], vec![1.0_f32; 3]).unwrap();
    blob.initialize(&Filler::Constant { value: 2.0 }, 0).unwrap();
    let mut written = Vec::new();
    blob.write_to(&mut written, Payload::Data).unwrap();
    assert_eq!(Blob::<f32>::read_from(written).unwrap().data().unwrap(), [2.0; 3]);
    let error = Blob::<f32>::read_from(Broken).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the store is closed"));
    assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the store is closed"));
    let start = blob.data().unwrap().as_ptr();
    let values = blob.into_vec().unwrap();
    assert_eq!((values.as_ptr(), &*values), (start, &[2.0; 3][..]));
    let thrown = panic::catch_unwind(|| Blob::<f32>::read_from(Panics)).unwrap_err();
    assert_eq!(thrown.downcast_ref(), Some(&"a reader that panics, on purpose"));
    let cancelled = {
        model.set_progress(|_, _| ControlFlow::Break(()));
        model.to_bytes().unwrap_err().kind()
    };
    assert_eq!(cancelled, ErrorKind::Cancelled);
}

struct AtTheEnd(Vec<u8>, Sender<()>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        calls(&self.0);
        self.1.send(()).unwrap();
    }
}

thread_local! {
    static KEPT: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn calls_work_while_the_thread_ends() {
    for is_first in [true, false] {
        let (sender, done) = channel();
        let ended = thread::spawn(move || {
            if is_first {
                KEPT.set(None); // the first used thread-local is dropped last
            }
            let bytes = net().to_bytes().unwrap();
            calls(&bytes);
            KEPT.set(Some(AtTheEnd(bytes, sender)));
        });
        ended.join().unwrap();
        done.recv().unwrap();
    }
}
