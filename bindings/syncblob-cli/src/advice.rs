//! Advice after a failure.

use std::path::Path;

use syncblob::{Error, ErrorKind};

use crate::source::Failure;

/// A clause that follows the failure's message; empty if the message is enough.
pub fn on(failure: &Failure) -> &'static str {
    match failure {
        Failure::Library(error) => on_error(error),
        Failure::Io(_) => CHECK_PATH,
        Failure::Malformed(_) => "; was it cut off?",
        Failure::Unsupported(_) | Failure::Told(_) | Failure::Interrupted => "",
    }
}

const CHECK_PATH: &str = "; check the path and its permissions";

/// The offset that the library reports for more bytes than a message can have.
const MAX_MESSAGE: u64 = (1 << 31) - 1;

/// The beginning of the library's text about recognised bytes.
const KNOWN: &str = "; this is ";

/// The library's text about recognised bytes.
pub fn known(error: &Error) -> Option<&str> {
    error.message().split_once(KNOWN).map(|(_, words)| words)
}

/// Whether a file of which that is wrong is protobuf's text, by its bytes or its name.
pub fn is_prototxt(path: &Path, error: &Error) -> bool {
    known(error).is_some_and(|what| what.starts_with("protobuf's text format"))
        || (error.kind() == ErrorKind::Malformed
            && path.extension().is_some_and(|extension| extension == "prototxt"))
}

fn on_error(error: &Error) -> &'static str {
    if known(error).is_some() {
        return "";
    }
    match error.kind() {
        ErrorKind::Malformed | ErrorKind::BadShape | ErrorKind::DataOverflow => {
            "; was it cut off, or is it not Caffe's? `syncblob info --as FORMAT` takes it for one"
        }
        ErrorKind::LengthMismatch => "; `syncblob verify` lists every such blob",
        // The message is enough: no Caffe file is that large.
        ErrorKind::DataLimit if error.offset() == Some(MAX_MESSAGE) => "",
        ErrorKind::DataLimit => "; no net needs that: do you trust where it is from?",
        ErrorKind::OutOfMemory | ErrorKind::CapReached => "; it needs more memory than there is",
        ErrorKind::Io => CHECK_PATH,
        _ => "",
    }
}
