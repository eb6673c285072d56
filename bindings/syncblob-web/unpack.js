// Unpacks the worker and the program in syncblob.html. The build compresses both by LZMA (lc = 4, lp = 0,
// pb = 0), and writes the bytes as text with 7 bits a character.
"use strict";

// HTML does not preserve these characters in a script. One character above U+007F encodes one of these
// characters together with the next character.
const REPLACED = [0x00, 0x0d, 0x3c];

function bytesOf(text) {
  const bytes = new Uint8Array(text.length * 2);
  let size = 0, bits = 0, count = 0;
  const add = (value) => {
    bits = ((bits << 7) | value) & 0xffff;
    count += 7;
    if (count >= 8) bytes[size++] = bits >> (count -= 8);
  };
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 128) add(REPLACED[(code - 128) >> 7]);
    add(code & 127);
  }
  return bytes.subarray(0, size);
}

// The range decoder.
class Bits {
  constructor(input) {
    this.input = input;
    this.at = 5;
    this.range = 0xffffffff;
    this.code = new DataView(input.buffer, input.byteOffset).getUint32(1);
  }
  shift() {
    if (this.range >= 1 << 24) return;
    this.range = (this.range << 8) >>> 0;
    this.code = ((this.code << 8) | this.input[this.at++]) >>> 0;
  }
  bit(chances, i) {
    const bound = (this.range >>> 11) * chances[i];
    const is = this.code >= bound;
    if (is) {
      this.range -= bound;
      this.code -= bound;
      chances[i] -= chances[i] >> 5;
    } else {
      this.range = bound;
      chances[i] += (2048 - chances[i]) >> 5;
    }
    this.shift();
    return Number(is);
  }
  // Decodes a number of `count` bits, highest bit first.
  tree(chances, count, from = 0) {
    let node = 1;
    for (let i = 0; i < count; i++) node = (node << 1) | this.bit(chances, from + node);
    return node - (1 << count);
  }
  // Decodes a number of `count` bits, lowest bit first.
  reverse(chances, count, from = 0) {
    let node = 1, value = 0;
    for (let i = 0; i < count; i++) {
      const bit = this.bit(chances, from + node);
      node = (node << 1) | bit;
      value |= bit << i;
    }
    return value;
  }
  direct(count) {
    let value = 0;
    for (let i = 0; i < count; i++) {
      this.range >>>= 1;
      const is = this.code >= this.range;
      if (is) this.code -= this.range;
      this.shift();
      value = (value << 1) | Number(is);
    }
    return value;
  }
}

const chances = (count) => new Uint16Array(count).fill(1024);

function lengths(bits) {
  const [choice, low, mid, high] = [2, 8, 8, 256].map(chances);
  return () => {
    if (!bits.bit(choice, 0)) return 2 + bits.tree(low, 3);
    if (!bits.bit(choice, 1)) return 10 + bits.tree(mid, 3);
    return 18 + bits.tree(high, 8);
  };
}

function distances(bits) {
  const [slots, special, align] = [4 * 64, 128, 16].map(chances);
  return (length) => {
    const slot = bits.tree(slots, 6, Math.min(length - 2, 3) * 64);
    if (slot < 4) return slot;
    const count = (slot >> 1) - 1, base = (2 | (slot & 1)) << count;
    if (slot < 14) return base + bits.reverse(special, count, base - slot);
    return base + (bits.direct(count - 4) << 4) + bits.reverse(align, 4);
  };
}

// Decodes a byte. Directly after a match, the byte at the match's distance also selects the
// probabilities, until a decoded bit differs from that byte's bit.
function literal(bits, chances, from, matched) {
  let node = 1;
  while (matched !== null && node < 256) {
    const expected = (matched >> 7) & 1;
    matched = (matched << 1) & 255;
    const bit = bits.bit(chances, from + ((1 + expected) << 8) + node);
    node = (node << 1) | bit;
    if (bit !== expected) break;
  }
  while (node < 256) node = (node << 1) | bits.bit(chances, from + node);
  return node & 255;
}

// Returns the `size` bytes that the stream holds.
function unpacked(input, size) {
  const out = new Uint8Array(size), bits = new Bits(input);
  const [isMatch, isRep, isRep0, isRep0Long, isRep1, isRep2] = Array.from({ length: 6 }, () => chances(12));
  const literals = chances(16 * 0x300);
  const [matchLength, repLength, distance] = [lengths(bits), lengths(bits), distances(bits)];
  let [state, at, reps] = [0, 0, [0, 0, 0, 0]];
  while (at < size) {
    if (!bits.bit(isMatch, state)) {
      const from = at > 0 ? (out[at - 1] >> 4) * 0x300 : 0;
      out[at] = literal(bits, literals, from, state >= 7 ? out[at - 1 - reps[0]] : null);
      at++;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length;
    const after = state < 7 ? 0 : 3; // 3 after a match
    if (!bits.bit(isRep, state)) {
      length = matchLength();
      reps = [distance(length), ...reps.slice(0, 3)];
      state = 7 + after;
    } else {
      let index = 0;
      if (bits.bit(isRep0, state)) index = !bits.bit(isRep1, state) ? 1 : 2 + bits.bit(isRep2, state);
      const isShort = index === 0 && !bits.bit(isRep0Long, state);
      reps.unshift(...reps.splice(index, 1));
      length = isShort ? 1 : repLength();
      state = after ? 11 : isShort ? 9 : 8;
    }
    for (; length > 0; length--, at++) out[at] = out[at - 1 - reps[0]];
  }
  return out;
}
