//! Runs the program, and makes files for tests.
#![allow(dead_code)] // each test uses only some of the functions

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use syncblob::{Blob, Float, Format, Model, Payload};
use tempfile::TempDir;

/// Returns the status, the standard output and the standard error.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let output = output(arguments);
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

pub fn output<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let program = env!("CARGO_BIN_EXE_syncblob");
    Command::new(program).args(arguments).output().expect("the program runs")
}

/// Runs a command twice: standard output is first a full disk, then a pipe without a reader.
#[cfg(unix)]
pub fn unheard<S: AsRef<OsStr>>(arguments: &[S]) -> [(i32, String); 2] {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    [full.into(), OwnedFd::from(writer)].map(|to| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
        let output = program.args(arguments).stdout(to).output().expect("the program runs");
        let status = output.status.code().expect("no signal");
        (status, String::from_utf8(output.stderr).expect("UTF-8"))
    })
}

/// Runs a command twice: standard output is first closed, then open only for reading.
#[cfg(unix)]
pub fn unopened<S: AsRef<OsStr>>(arguments: &[S]) -> [(i32, String); 2] {
    ["exec \"$@\" >&-", "exec \"$@\" 1</dev/null"].map(|script| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_syncblob")]).args(arguments);
        let output = shell.output().expect("the shell runs");
        let status = output.status.code().expect("no signal");
        (status, String::from_utf8(output.stderr).expect("UTF-8"))
    })
}

pub fn command<'a>(name: &'a str, options: &[&'a str], files: &[&'a Path]) -> Vec<&'a OsStr> {
    let words = [name].into_iter().chain(options.iter().copied()).map(OsStr::new);
    words.chain(files.iter().map(|file| file.as_os_str())).collect()
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

pub struct Files {
    dir: TempDir,
}

impl Files {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn mean(&self, name: &str, shape: &[usize], values: &[f32]) -> PathBuf {
        let blob = Blob::<f32>::from_slice(shape, values).unwrap();
        self.write(name, &blob.to_proto(Payload::Data).unwrap())
    }

    pub fn net<T: Float>(&self, name: &str, layers: &[(&str, &str, &[usize], &[T])]) -> PathBuf {
        let mut model = Model::create(Format::Caffemodel).unwrap();
        model.set_name(name).unwrap();
        for (layer, layer_type, shape, values) in layers {
            let layer = model.add_layer(layer, layer_type).unwrap();
            let blob = Blob::<T>::from_slice(*shape, values).unwrap();
            model.add_blob(layer, &blob, Payload::Data).unwrap();
        }
        model.save(self.path(name)).unwrap();
        self.path(name)
    }

    /// The net has an input `data` of 1 x `inputs`, and an InnerProduct `fc` with `rows` rows.
    /// The weights are 0 and use no disk space.
    pub fn carrying_net(&self, name: &str, inputs: u64, rows: u64) -> PathBuf {
        let values = 4 * inputs * rows;
        let shape = |dims: &[u64]| dims.iter().flat_map(|&dim| number(1, dim)).collect::<Vec<_>>();
        let blob = [field(7, &shape(&[rows, inputs])), key(5, 2), varint(values)].concat();
        let rest = blob.len() as u64 + values;
        let texts = [(1, "fc"), (2, "InnerProduct"), (3, "data"), (4, "fc")];
        let mut layer: Vec<u8> =
            texts.iter().flat_map(|&(number, text)| field(number, text.as_bytes())).collect();
        layer.extend(field(117, &[number(1, rows), number(2, 0)].concat()));
        layer.extend([key(7, 2), varint(rest), blob].concat());
        let whole = layer.len() as u64 + values;
        let ends = [field(1, b"tiny"), field(3, b"data"), field(8, &shape(&[1, inputs]))].concat();
        let path = self.write(name, &[ends, key(100, 2), varint(whole), layer].concat());
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() + values).unwrap();
        path
    }

    /// The blob has one value but 4 elements. Commands can list, but not load, the blob.
    pub fn short(&self) -> PathBuf {
        self.write("short.binaryproto", b"\x3a\x02\x08\x04\x2a\x04\0\0\0\0")
    }
}

// Functions that encode and decode parts of protobuf messages.

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub fn key(number: u64, wire_type: u64) -> Vec<u8> {
    varint(number << 3 | wire_type)
}

pub fn number(number: u64, value: u64) -> Vec<u8> {
    [key(number, 0), varint(value)].concat()
}

pub fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [key(number, 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Returns the bytes of each length-delimited field with the number `wanted`.
pub fn fields(mut message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = read_varint(&mut message);
        let size = match key & 7 {
            0 => {
                read_varint(&mut message);
                continue;
            }
            2 => read_varint(&mut message) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (bytes, rest) = message.split_at(size);
        message = rest;
        if key >> 3 == wanted {
            found.push(bytes);
        }
    }
    found
}

fn read_varint(message: &mut &[u8]) -> u64 {
    let size = message.iter().position(|byte| byte & 0x80 == 0).expect("a whole number") + 1;
    let (bytes, rest) = message.split_at(size);
    *message = rest;
    bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// Returns files that Caffe wrote, from the folder SYNCBLOB_TEST_DATA (default: `shared/data`).
/// If the folder is absent, prints a note and returns no files.
pub fn real_files() -> Vec<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = PathBuf::from(std::env::var_os("SYNCBLOB_TEST_DATA").unwrap_or(beside.into()));
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("not tested: {} is absent; set SYNCBLOB_TEST_DATA", folder.display());
        return Vec::new();
    };
    let is_caffes = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        ["caffemodel", "solverstate", "binaryproto"].contains(&extension)
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(is_caffes).collect();
    files.sort();
    files
}

/// Returns a library that makes system calls fail, or None if the library cannot be built.
pub fn disk_library() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| match make_disk_library() {
        Ok(path) => Some(path),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    })
    .as_deref()
}

fn make_disk_library() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("only Linux has LD_PRELOAD and these system calls".into());
    }
    make_library("disk", &["-std=gnu17", "tests/support/disk/disk.c", "-ldl"])
}

pub fn make_library<S: AsRef<OsStr>>(name: &str, arguments: &[S]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (made, path) = (
        folder.join(format!("{name}-{}.so", std::process::id())),
        folder.join(format!("{name}.so")),
    );
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(words).args(["-shared", "-fPIC", "-o"]).arg(&made).args(arguments);
    let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
    if !output.status.success() {
        let err = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{compiler} cannot build {name}.so: {err}"));
    }
    // Replaces the library atomically, because another test program may be using it.
    fs::rename(made, &path).unwrap();
    Ok(path)
}
