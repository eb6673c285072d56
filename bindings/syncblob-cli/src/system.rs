//! Functions of each system.

#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod own;

pub use own::{close, create, is_same, keep_permissions, put_new, replace, sync_file, sync_folder};
