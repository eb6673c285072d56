//! Finds model files in folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::FileFormat;

/// Returns the model files below a folder, sorted by name. For a file, returns its path. If a
/// folder has no model files or cannot be read, returns the folder's path, so that the check
/// reports it.
pub fn expand(path: &Path, recursive: bool) -> Vec<PathBuf> {
    if !recursive || !path.is_dir() {
        return vec![path.to_owned()];
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            found.push(folder);
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if FileFormat::of_path(&path).is_some() {
                found.push(path);
            }
        }
    }
    found.sort();
    match found.is_empty() {
        true => vec![path.to_owned()],
        false => found,
    }
}
