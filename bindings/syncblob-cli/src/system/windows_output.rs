use std::io;
use std::os::windows::io::AsRawHandle;

pub fn is_open() -> bool {
    !io::stdout().as_raw_handle().is_null()
}
