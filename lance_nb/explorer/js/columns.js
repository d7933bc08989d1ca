// Reads a row page: JSON sidecar + one or more buffers per column. The layout is described in
// rows/row_page.py, whose function page_texts is the only other reader.

import { bytesOf } from "./message_buffers.js";

/** @type {Record<string, new (buffer: ArrayBuffer) => ArrayLike<number | bigint>>} */
const ARRAYS = {
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
};
const utf8 = new TextDecoder();

/**
 * @template T @param {new (buffer: ArrayBuffer) => T} kind @param {Lnb.Buffer} buffer
 * @returns {T}
 */
function typed(kind, buffer) {
  const bytes = bytesOf(buffer);
  const { buffer: whole, byteOffset: start, byteLength: size } = bytes;
  return new kind(/** @type {ArrayBuffer} */ (whole.slice(start, start + size)));
}

/** @param {number | bigint} value */
function wide(value) {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** The shortest digits that give the same 32-bit number. @param {number} value */
function narrow(value) {
  if (Object.is(value, -0)) return "-0";
  for (let digits = 6; digits < 9; digits += 1) {
    const shown = Number(value.toPrecision(digits));
    if (Math.fround(shown) === value) return String(shown);
  }
  return String(Number(value.toPrecision(9)));
}

const DIGITS = 4;
const FULL = 7; // characters that are shown as they are

/**
 * The same number in four digits and all of those before the point, if that is shorter.
 * @param {string} text @returns {string | undefined}
 */
export function shortNumber(text) {
  const value = Number(text);
  if (text.length <= FULL || !Number.isFinite(value) || /^-?\d+$/.test(text)) return undefined;
  const whole = Math.floor(Math.log10(Math.abs(value) || 1)) + 1;
  const short =
    whole > 15
      ? value.toExponential(DIGITS - 1)
      : String(Number(value.toPrecision(Math.max(DIGITS, whole))));
  return short.length < text.length ? short : undefined;
}

/**
 * A function from a row of the page to its cell, whose `look` is number, bool, text, plain, json,
 * binary, vector, null, empty or nan.
 * @param {Lnb.PageColumn} column @param {Lnb.Buffer[]} buffers @returns {(row: number) => Lnb.Cell}
 */
function reader(column, buffers) {
  /** @param {number} index */
  const part = (index) => buffers[column.buffers[index]];
  const encoding = column.encoding;
  if (encoding === "bool") {
    const flags = bytesOf(part(0));
    return (row) => ({ text: flags[row] ? "true" : "false", look: "bool" });
  }
  if (encoding === "text") {
    const offsets = typed(Int32Array, part(0));
    const bytes = bytesOf(part(1));
    return (row) => {
      const text = utf8.decode(bytes.subarray(offsets[row], offsets[row + 1]));
      if (text === "" && column.look === "text") return { text: "empty", look: "empty" };
      return {
        text,
        look: column.look ?? "text",
        picture: column.pictures?.[row] === "1",
        marks: column.marks?.[row],
      };
    };
  }
  if (encoding === "vector") {
    const norms = typed(Float32Array, part(0));
    const shades = bytesOf(part(1));
    const points = column.points ?? 0;
    return (row) => ({
      text: Number(norms[row].toPrecision(3)).toString(),
      look: "vector",
      spark: shades.subarray(row * points, (row + 1) * points),
    });
  }
  const values = typed(ARRAYS[encoding], part(0));
  /** @type {(value: number | bigint) => string} */
  const say = encoding === "f32" ? (value) => narrow(Number(value)) : wide;
  const isWhole = !encoding.startsWith("f");
  return (row) => {
    const value = values[row];
    if (Number.isNaN(value)) return { text: "NaN", look: "nan" };
    const text = say(value);
    const short = isWhole ? undefined : shortNumber(text);
    return short ? { text, look: "number", short } : { text, look: "number" };
  };
}

const NULL = { text: "null", look: "null" };

/**
 * A page ready to be read cell by cell.
 * @param {Lnb.RowPage} page sidecar @param {Lnb.Buffer[]} buffers @returns {Lnb.Page}
 */
export function decodePage(page, buffers) {
  const columns = page.columns.map((column) => {
    const read = reader(column, buffers);
    const valid = column.validity === null ? null : bytesOf(buffers[column.validity]);
    return {
      name: column.name,
      raw: column.raw ?? column.name,
      type: column.type,
      look: lookOf(column),
      pictures: Boolean(column.pictures),
      cell: valid ? (/** @type {number} */ row) => (valid[row] ? read(row) : NULL) : read,
    };
  });
  const { offset, num_rows: numRows, first_column: firstColumn } = page;
  return {
    offset,
    numRows,
    firstColumn,
    columns,
    /** Whether the cell at a row and column of the dataset is in this page. */
    holds: (row, column) =>
      row >= offset &&
      row < offset + numRows &&
      column >= firstColumn &&
      column < firstColumn + columns.length,
    /** @returns {Lnb.Cell} */
    cell: (row, column) => columns[column - firstColumn].cell(row - offset),
  };
}

/** @param {Lnb.PageColumn} column */
function lookOf(column) {
  if (column.encoding === "bool" || column.encoding === "text" || column.encoding === "vector")
    return column.look ?? column.encoding;
  return "number";
}
