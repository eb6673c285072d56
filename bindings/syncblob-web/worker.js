// Runs the command in a worker: a WASI host with a folder of the chosen files and of the files that
// the command writes. The build puts the shim before this file.
"use strict";

const { Fd, Inode, PreopenDirectory, ConsoleStdout, WASI, WASIProcExit, wasi: defs } = shim;

const WINDOW = 1 << 20; // bytes that one small read loads into memory
const SEGMENT = 8 << 20; // bytes of a written file that are moved to a Blob together
const IN_MEMORY = 8; // how many segments of a written file stay in memory, besides the one in use

const bytesOf = (blob) => new Uint8Array(new FileReaderSync().readAsArrayBuffer(blob));

// Counts the bytes that the command reads and writes, and posts them at most ten times a second.
const traffic = { read: 0, written: 0, posted: 0 };
function count(what, bytes) {
  traffic[what] += bytes;
  const now = performance.now();
  if (now - traffic.posted < 100) return;
  traffic.posted = now;
  postMessage({ read: traffic.read, written: traffic.written });
}

// Replaces the shim's class, which writes the times to wrong offsets. The link count is 1, since 0
// would mean a removed file.
class Filestat extends defs.Filestat {
  write_bytes(view, at) {
    const fields = [this.dev, this.ino, BigInt(this.filetype), 1n, this.size, 0n, 0n, 0n];
    fields.forEach((field, i) => view.setBigUint64(at + 8 * i, field, true));
  }
}

// A file that the user chose. The host reads slices of the file, never the whole file.
class Chosen extends Inode {
  constructor(file) {
    super();
    this.file = file;
    this.start = 0;
    this.window = new Uint8Array(0);
  }
  get size() {
    return this.file.size;
  }
  read(at, size) {
    const end = Math.min(at + size, this.size);
    if (at >= end) return new Uint8Array(0);
    if (end - at >= WINDOW) {
      count("read", end - at);
      return bytesOf(this.file.slice(at, end));
    }
    if (at < this.start || end > this.start + this.window.length) {
      this.start = at;
      this.window = bytesOf(this.file.slice(at, at + WINDOW));
      count("read", this.window.length);
    }
    return this.window.subarray(at - this.start, end - this.start);
  }
  write() {
    return false;
  }
  path_open(flags, rights) {
    const writes = rights & BigInt(defs.RIGHTS_FD_WRITE);
    if (writes) return { ret: defs.ERRNO_ROFS, fd_obj: null };
    return { ret: 0, fd_obj: new Open(this) };
  }
  stat() {
    return new Filestat(this.ino, defs.FILETYPE_REGULAR_FILE, BigInt(this.size));
  }
}

// A file that the command writes, in segments. All but a few segments become Blobs, which a browser
// may store on the disk.
class Written extends Inode {
  constructor() {
    super();
    this.size = 0;
    this.segments = [];
  }
  segment(index) {
    while (this.segments.length <= index) this.segments.push(new Uint8Array(SEGMENT));
    if (this.segments[index] instanceof Blob) this.segments[index] = bytesOf(this.segments[index]);
    const used = this.segments[index];
    const warm = this.segments.flatMap((s, i) => (s instanceof Blob || i === index ? [] : [i]));
    for (const i of warm.slice(0, Math.max(0, warm.length - IN_MEMORY)))
      this.segments[i] = new Blob([this.segments[i]]);
    return used;
  }
  read(at, size) {
    const out = new Uint8Array(Math.max(0, Math.min(size, this.size - at)));
    for (let done = 0; done < out.length; ) {
      const [index, within] = [Math.floor((at + done) / SEGMENT), (at + done) % SEGMENT];
      const part = this.segment(index).subarray(within, within + out.length - done);
      out.set(part, done);
      done += part.length;
    }
    return out;
  }
  write(at, bytes) {
    for (let done = 0; done < bytes.length; ) {
      const [index, within] = [Math.floor((at + done) / SEGMENT), (at + done) % SEGMENT];
      const part = bytes.subarray(done, done + SEGMENT - within);
      this.segment(index).set(part, within);
      done += part.length;
    }
    this.size = Math.max(this.size, at + bytes.length);
    count("written", bytes.length);
    return true;
  }
  path_open(flags) {
    if (flags & defs.OFLAGS_TRUNC) [this.size, this.segments] = [0, []];
    return { ret: 0, fd_obj: new Open(this) };
  }
  stat() {
    return new Filestat(this.ino, defs.FILETYPE_REGULAR_FILE, BigInt(this.size));
  }
  blob() {
    return new Blob(this.segments).slice(0, this.size);
  }
}

class Open extends Fd {
  constructor(file) {
    super();
    this.file = file;
    this.at = 0;
  }
  fd_fdstat_get() {
    return { ret: 0, fdstat: new defs.Fdstat(defs.FILETYPE_REGULAR_FILE, 0) };
  }
  fd_filestat_get() {
    return { ret: 0, filestat: this.file.stat() };
  }
  fd_pread(size, offset) {
    return { ret: 0, data: this.file.read(Number(offset), size) };
  }
  fd_read(size) {
    const data = this.file.read(this.at, size);
    this.at += data.length;
    return { ret: 0, data };
  }
  fd_pwrite(bytes, offset) {
    if (!this.file.write(Number(offset), bytes)) return { ret: defs.ERRNO_BADF, nwritten: 0 };
    return { ret: 0, nwritten: bytes.length };
  }
  fd_write(bytes) {
    const written = this.fd_pwrite(bytes, BigInt(this.at));
    this.at += written.nwritten;
    return written;
  }
  fd_seek(offset, whence) {
    const from = [0, this.at, this.file.size][whence];
    const at = from + Number(offset);
    if (from === undefined || at < 0) return { ret: defs.ERRNO_INVAL, offset: 0n };
    this.at = at;
    return { ret: 0, offset: BigInt(at) };
  }
  fd_tell() {
    return { ret: 0, offset: BigInt(this.at) };
  }
}

function folderOf(files) {
  const folder = new PreopenDirectory("/", new Map(files.map((f) => [f.name, new Chosen(f)])));
  const { dir } = folder;
  dir.create_entry_for_path = (path) => {
    const entry = new Written();
    dir.contents.set(path.replace(/^(\.\/)+/, ""), entry);
    return { ret: 0, entry };
  };
  return folder;
}

// The shim's own functions count UTF-16 units instead of bytes.
function argumentsOf(words, memory) {
  const set = (at, value) => new DataView(memory()).setUint32(at, value, true);
  return {
    args_sizes_get(count, bytes) {
      set(count, words.length);
      set(bytes, words.reduce((sum, word) => sum + word.length, 0));
      return 0;
    },
    args_get(list, at) {
      words.forEach((word, i) => {
        set(list + 4 * i, at);
        new Uint8Array(memory()).set(word, at);
        at += word.length;
      });
      return 0;
    },
  };
}

function textOf(parts) {
  const decoder = new TextDecoder();
  return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
}

// Runs the command once. `output` is the name of the file to return.
function run(module, { args, files, output }) {
  const [out, err] = [[], []];
  const print = (to) => new ConsoleStdout((bytes) => to.push(bytes.slice()));
  const folder = folderOf(files);
  const streams = [new Fd(), print(out), print(err)];
  const host = new WASI([], [], [...streams, folder], { debug: false });
  Object.assign(traffic, { read: 0, written: 0 });
  const words = ["syncblob", ...args].map((word) => new TextEncoder().encode(`${word}\0`));
  Object.assign(host.wasiImport, argumentsOf(words, () => instance.exports.memory.buffer));
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: host.wasiImport });
  const began = performance.now();
  let [code, failure] = [0, ""];
  try {
    code = host.start(instance);
  } catch (error) {
    // The command panicked or was out of memory.
    [code, failure] = [134, String(error)];
  }
  const made = folder.dir.contents.get(output);
  return {
    code,
    failure,
    out: textOf(out),
    err: textOf(err),
    output: made instanceof Written && code === 0 ? made.blob() : null,
    milliseconds: performance.now() - began,
    memory: instance.exports.memory.buffer.byteLength,
    read: traffic.read,
    done: true,
  };
}

let compiled;
onmessage = ({ data }) => {
  try {
    if (data.wasm) {
      compiled = new WebAssembly.Module(data.wasm);
      postMessage({ ready: true });
    } else {
      postMessage(run(compiled, data));
    }
  } catch (error) {
    postMessage({ code: 134, failure: String(error), out: "", err: "", output: null, done: true });
  }
};
