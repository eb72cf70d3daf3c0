// The positions of a box's elements in shared memory, and the banks of a warp's read: the formulas of cuda_tma.smem.
// The facts of types and swizzles (FACTS) come from Python; tests run this file beside Python.

const LINE_BYTES = 128, BANK_BYTES = 4, BANKS = 32;

function rowPitch(type, swizzle, columns) {  // bytes from one row of the box to the next
  const [data, taken] = type.group_bytes || [type.bits / 8, type.bits / 8];
  const bytes = (type.group_bytes ? columns / 16 : columns) * taken;
  return Math.ceil(bytes / swizzle.span_bytes) * swizzle.span_bytes;
}

function rowBytes(type, columns) {  // the bytes of a row in a copy, with the gaps inside packed groups
  return type.group_bytes ? columns / 16 * type.group_bytes[1] : columns * type.bits / 8;
}

function linearOffset(type, swizzle, columns, row, column) {
  const inRow = type.group_bytes
    ? Math.floor(column / 16) * type.group_bytes[1] + Math.floor(column % 16 * type.bits / 8)
    : Math.floor(column * type.bits / 8);
  return row * rowPitch(type, swizzle, columns) + inRow;
}

function byteOf(type, column) {  // the byte of a column in its row, before the swizzle
  return linearOffset(type, {span_bytes: 1}, 0, 0, column);
}

function swizzled(swizzle, offset) {  // the permutation, which is its own inverse
  let moved = offset;
  for (const [from, to, bits] of swizzle.xors) moved ^= ((offset >> from) & ((1 << bits) - 1)) << to;
  return moved;
}

function smemOffset(type, swizzle, columns, row, column) {
  return swizzled(swizzle, linearOffset(type, swizzle, columns, row, column));
}

function unitBytes(type) {
  return Math.max(1, Math.floor(type.bits / 8));
}

// The accesses of lanes: one linear offset for each lane, and the number of bytes.
const ACCESSES = {
  row(type, swizzle, box, at) {
    const unit = unitBytes(type), lanes = Math.min(BANKS, LINE_BYTES / unit), first = Math.floor(at.byte / unit) * unit;
    const start = Math.floor(first / (lanes * unit)) * lanes * unit, end = rowBytes(type, box.columns);
    const places = [];
    for (let i = 0; i < lanes && start + i * unit < end; i++)
      places.push(at.row * rowPitch(type, swizzle, box.columns) + start + i * unit);
    return {places, bytes: unit};
  },
  column(type, swizzle, box, at) {
    const unit = unitBytes(type), lanes = Math.min(BANKS, LINE_BYTES / unit);
    return eachRow(type, swizzle, box, Math.floor(at.row / lanes) * lanes, lanes, Math.floor(at.byte / unit) * unit, unit);
  },
  ldmatrix(type, swizzle, box, at) {  // one matrix: 8 rows of 16 bytes
    return eachRow(type, swizzle, box, Math.floor(at.row / 8) * 8, 8, Math.floor(at.byte / 16) * 16, 16);
  },
  stmatrix(type, swizzle, box, at) {
    return ACCESSES.ldmatrix(type, swizzle, box, at);
  },
  lanes(type, swizzle, box, at) {  // 32 lanes at distances of `stride` elements, through the rows of the box
    const unit = unitBytes(type), places = [], first = at.row * box.columns + at.column;
    for (let lane = 0; lane < Math.min(BANKS, LINE_BYTES / unit); lane++) {
      const element = first + lane * at.stride;
      if (element >= box.rows * box.columns) break;
      const row = Math.floor(element / box.columns), column = element % box.columns;
      places.push(linearOffset(type, swizzle, box.columns, row, column));
    }
    return {places, bytes: unit};
  },
};

function eachRow(type, swizzle, box, first, count, byte, bytes) {
  const pitch = rowPitch(type, swizzle, box.columns), places = [];
  for (let row = first; row < Math.min(first + count, box.rows); row++) places.push(row * pitch + byte);
  return {places, bytes};
}

function wordsOf(swizzle, access) {  // the 4-byte words that each lane accesses
  return access.places.map(place => {
    const words = [];
    for (let b = 0; b < access.bytes; b += Math.min(access.bytes, BANK_BYTES))
      words.push(swizzled(swizzle, place + b) >> 2);
    return words;
  });
}

function banksOf(words) {  // the number of accessed words in each bank
  const counts = Array(BANKS).fill(0);
  for (const word of new Set(words.flat())) counts[word % BANKS]++;
  return counts;
}

function ways(type, swizzle, box, name, at) {
  return Math.max(...banksOf(wordsOf(swizzle, ACCESSES[name](type, swizzle, box, at))));
}

function worst(type, swizzle, box, name, stride) {  // the first position where the most words share a bank
  const unit = unitBytes(type), lanes = Math.min(BANKS, LINE_BYTES / unit);
  const [rows, bytes] = {row: [1, lanes * unit], column: [lanes, unit], lanes: [1, 0]}[name] || [8, 16];
  let most = 0, found = {row: 0, column: 0, byte: 0, stride};
  for (let row = 0; row < box.rows; row += rows)
    for (let column = 0, read = -1; column < box.columns; column++) {
      const byte = byteOf(type, column);
      if (bytes && Math.floor(byte / bytes) == read) continue;  // the same access as in the column before
      if (bytes) read = Math.floor(byte / bytes);
      const at = {row, column, byte, stride}, many = ways(type, swizzle, box, name, at);
      if (many > most) [most, found] = [many, at];
    }
  return {ways: most, at: found};
}

function refused(type, swizzle, box) {  // the driver's reasons to refuse the box; empty if it accepts it
  const bytes = box.columns * type.bits / 8, of = `${box.columns} elements of ${type.name}`;
  if (type.row_elements && box.columns != type.row_elements)
    return `a row of ${type.name} has ${type.row_elements} elements`;
  if (bytes % 16) return `a row of ${of} is ${bytes} bytes, which is not a multiple of 16`;
  if (swizzle.xors.length && bytes > swizzle.span_bytes)
    return `a row of ${of} is ${bytes} bytes, and the swizzle's span is ${swizzle.span_bytes}`;
  if (type.swizzles && !type.swizzles.includes(swizzle.name))
    return `${type.name} takes the swizzles ${type.swizzles.join(", ")}`;
  return "";
}

if (typeof module != "undefined")
  module.exports = {ACCESSES, banksOf, refused, rowPitch, smemOffset, swizzled, ways, wordsOf, worst};
