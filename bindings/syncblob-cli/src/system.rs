//! Functions that differ between systems.

#[cfg_attr(target_os = "wasi", path = "system/no_bar.rs")]
#[cfg_attr(not(target_os = "wasi"), path = "system/bar.rs")]
mod bar;
#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
#[cfg_attr(target_os = "wasi", path = "system/wasi.rs")]
mod own;
#[cfg_attr(unix, path = "system/unix_output.rs")]
#[cfg_attr(windows, path = "system/windows_output.rs")]
#[cfg_attr(target_os = "wasi", path = "system/wasi_output.rs")]
pub mod standard_output;

pub use bar::Bar;
pub use own::{
    canonicalize, close, create, is_same, keep_permissions, put_new, replace, sync_file,
    sync_folder,
};
