// Files to compare the page with the command: whole, broken, changed at random, large.
import fs from "node:fs";
import path from "node:path";

const varint = (n) => {
  const out = [];
  for (let left = BigInt(n); ; left >>= 7n) {
    if (left < 128n) return Buffer.from([...out, Number(left)]);
    out.push(Number((left & 127n) | 128n));
  }
};
const field = (number, bytes) => Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
const text = (number, words) => field(number, Buffer.from(words));
const dims = (shape) => field(7, field(1, Buffer.concat(shape.map(varint))));

export function model(shape, values) {
  const blob = Buffer.concat([dims(shape), field(5, values)]);
  const layer = Buffer.concat([text(1, "fc"), text(2, "InnerProduct"), field(7, blob)]);
  return Buffer.concat([text(1, "made"), field(100, layer)]);
}

// Layers have at most 64 MB.
export function large(file, megabytes) {
  const out = fs.openSync(file, "w");
  const part = Buffer.alloc(64e6);
  new Float32Array(part.buffer, part.byteOffset, part.length / 4).forEach((_, i, all) => (all[i] = Math.sin(i)));
  fs.writeSync(out, text(1, "large"));
  for (let left = megabytes * 1e6, i = 0; left > 0; left -= 64e6, i++) {
    const values = part.subarray(0, Math.min(left, 64e6));
    const rows = values.length / 4000;
    const blob = Buffer.concat([dims([rows, 1000]), field(5, values)]);
    const layer = Buffer.concat([text(1, `fc${i}`), text(2, "InnerProduct"), field(7, blob)]);
    fs.writeSync(out, field(100, layer));
  }
  fs.closeSync(out);
}

const npy = (shape) => {
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`.padEnd(117) + "\n";
  return Buffer.concat([Buffer.from("\x93NUMPY\x01\0v\0", "latin1"), Buffer.from(head), Buffer.alloc(16)]);
};
const safetensors = (shape, end) => {
  const head = Buffer.from(JSON.stringify({ w: { dtype: "F32", shape, data_offsets: [0, end] } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(head.length));
  return Buffer.concat([length, head, Buffer.alloc(16)]);
};
// Makes an archive with one member. `size` is the declared size, which may be wrong.
const npz = (member, size = member.length) => {
  const name = Buffer.from("w.npy"), local = Buffer.alloc(30), entry = Buffer.alloc(46), end = Buffer.alloc(22);
  local.writeUInt32LE(0x04034b50);
  local.writeUInt16LE(20, 4);
  entry.writeUInt32LE(0x02014b50);
  entry.writeUInt16LE(20, 4);
  entry.writeUInt16LE(20, 6);
  for (const [to, at] of [[local, 18], [entry, 20]]) {
    to.writeUInt32LE(size, at);
    to.writeUInt32LE(size, at + 4);
    to.writeUInt16LE(name.length, at + 8);
  }
  const before = Buffer.concat([local, name, member]), directory = Buffer.concat([entry, name]);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(before.length, 16);
  return Buffer.concat([before, directory, end]);
};

// Sizes of 2^32 and more, whose low 32 bits alone would be plausible.
const beyond = [[2 ** 32 + 1, 4], [2 ** 16, 2 ** 16, 4], [2 ** 31, 2], [2 ** 30, 1], [2 ** 62, 4]];
export const beyondFiles = Object.fromEntries(beyond.flatMap((shape, i) => {
  const bytes = shape.reduce((a, b) => a * BigInt(b), 4n), capped = Number(bytes % (1n << 53n));
  return [
    [`beyond${i}.caffemodel`, model(shape, Buffer.alloc(16))],
    [`beyond${i}.binaryproto`, Buffer.concat([dims(shape), field(5, Buffer.alloc(16))])],
    [`beyond${i}.npy`, npy(shape)],
    [`beyond${i}.npz`, npz(npy(shape))],
    [`beyond${i}.safetensors`, safetensors(shape, capped)],
  ];
}));
beyondFiles["length.caffemodel"] = Buffer.concat([Buffer.from([0xa2, 6]), varint(2n ** 32n + 16n), Buffer.alloc(16)]);
beyondFiles["length.safetensors"] = Buffer.concat([Buffer.from("0200000001000000", "hex"), Buffer.from("{}")]);
beyondFiles["member.npz"] = npz(npy([4]), 0xffffffff);

// mulberry32
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

export function mutated(bytes, next) {
  let out = Buffer.from(bytes);
  for (let edits = 1 + (next() % 4); edits > 0; edits--) {
    const at = next() % Math.min(out.length, next() % 3 ? 400 : out.length), length = 1 + (next() % 8);
    const kind = next() % 6;
    if (kind < 3) out[at] = next() & 255;
    else if (kind === 3) out[at] ^= 1 << (next() % 8);
    else if (kind === 4) out = Buffer.concat([out.subarray(0, at), out.subarray(at + length)]);
    else out = Buffer.concat([out.subarray(0, at + length), out.subarray(at)]);
    if (out.length < 2) return Buffer.from(bytes);
  }
  return out;
}

export function filesOf(folder) {
  return fs.readdirSync(folder).filter((name) => fs.statSync(path.join(folder, name)).isFile() && !name.endsWith(".md"));
}
