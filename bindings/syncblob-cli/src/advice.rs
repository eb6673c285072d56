//! Advice that is printed after the message of a failure.

use std::path::Path;

use syncblob::{Error, ErrorKind};

use crate::source::Failure;

/// Returns "did you mean" and the most similar name, or an empty text.
pub fn similar<'a>(requested: &str, names: impl Iterator<Item = &'a str>) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(requested, name);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match best.filter(|name| likeness(name) > 0.8) {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None => String::new(),
    }
}

pub fn about(file: &Path, failure: &Failure) -> &'static str {
    if file.is_dir() {
        return "; it is a folder: give a file in it, or run `syncblob verify -r` on the folder";
    }
    on(failure)
}

/// Returns an empty text if there is no advice.
pub fn on(failure: &Failure) -> &'static str {
    match failure {
        Failure::Library(error) => on_error(error),
        Failure::Io(_) => CHECK_PATH,
        Failure::Malformed(_) => "; was it cut off?",
        Failure::Unsupported(_) | Failure::File(_) | Failure::Interrupted => "",
    }
}

pub const VERIFY: &str = "; `syncblob verify` lists every such blob";

const CHECK_PATH: &str = "; check the path and its permissions";

/// The offset in the library's error for a file that is too large for a protobuf message.
const MAX_MESSAGE: u64 = (1 << 31) - 1;

/// In the library's messages, this text precedes the name of the detected format.
const KNOWN: &str = "; this is ";

pub fn known(error: &Error) -> Option<&str> {
    error.message().split_once(KNOWN).map(|(_, words)| words)
}

/// Returns the message. If the library detected a format, the message begins with that format.
pub fn useful_half_first(error: &Error, message: &str) -> String {
    let name = error.code_name();
    match message.split_once(KNOWN) {
        Some((reason, words)) => format!("this is {words} ({name}: {reason})"),
        None => format!("{name}: {message}"),
    }
}

/// Returns whether the file that caused this error is a prototxt. Either the library has detected a
/// prototxt, or the bytes are malformed and the name ends in .prototxt.
pub fn is_prototxt(path: &Path, error: &Error) -> bool {
    known(error).is_some_and(|what| what.starts_with("protobuf's text format"))
        || (error.kind() == ErrorKind::Malformed
            && path.extension().is_some_and(|extension| extension == "prototxt"))
}

/// Advice for HDF5 files: Python code that makes a .npz, which `convert` reads.
const FROM_HDF5: &str =
    "; these lines of Python make a .npz of a .caffemodel.h5 or of the history \
of a .solverstate.h5, which `syncblob convert` reads:
  import h5py, numpy
  arrays, file = {}, h5py.File(\"net.caffemodel.h5\")
  file[\"data\" if \"data\" in file else \"history\"].visititems(lambda name, blob: \
arrays.update({\".\".join(name.rsplit(\"/\", 1)): blob[()]}) if hasattr(blob, \"shape\") else None)
  numpy.savez(\"net.npz\", **arrays)";

fn on_error(error: &Error) -> &'static str {
    match known(error) {
        Some(words) if words.starts_with("an HDF5 file") => return FROM_HDF5,
        Some(_) => return "",
        None => {}
    }
    match error.kind() {
        ErrorKind::Malformed | ErrorKind::BadShape | ErrorKind::DataOverflow => {
            "; was it cut off, or not made by Caffe? `syncblob info --as FORMAT` reads it as FORMAT"
        }
        ErrorKind::LengthMismatch => VERIFY,
        ErrorKind::DataLimit if error.offset() == Some(MAX_MESSAGE) => "",
        ErrorKind::DataLimit => "; no net needs that much: do you trust the file's source?",
        ErrorKind::OutOfMemory | ErrorKind::CapReached => "; it needs more memory than is free",
        ErrorKind::Io => CHECK_PATH,
        _ => "",
    }
}
