// Row pages as the kernel sends them, and grids of a given size, for tests of views with rows.

import { send } from "./light_page.js";

const utf8 = new TextEncoder();

/** One column of texts as its two buffers: offsets and bytes. */
function textBuffers(values) {
  const bytes = values.map((value) => utf8.encode(value));
  const offsets = new Int32Array(values.length + 1);
  bytes.forEach((one, at) => {
    offsets[at + 1] = offsets[at] + one.length;
  });
  const data = new Uint8Array(offsets.at(-1));
  bytes.forEach((one, at) => data.set(one, offsets[at]));
  return [offsets.buffer, data.buffer];
}

/** A page of text columns, `{name: [values]}`, with its buffers. */
export function textPage(columns, { offset = 0, firstColumn = 0, numRows = null } = {}) {
  const buffers = [];
  const models = Object.entries(columns).map(([name, values]) => {
    buffers.push(...textBuffers(values));
    const at = buffers.length;
    return { name, type: "string", encoding: "text", buffers: [at - 2, at - 1], validity: null };
  });
  const length = Object.values(columns)[0]?.length ?? 0;
  const page = {
    offset,
    num_rows: numRows ?? length,
    first_column: firstColumn,
    columns: models,
  };
  return { page, buffers };
}

/** Give a grid 400 by `height` pixels, as if the page had been laid out. */
export function layOut(grid, height = 328) {
  for (const [name, value] of Object.entries({ clientWidth: 400, clientHeight: height }))
    Object.defineProperty(grid, name, { value, configurable: true, writable: true });
  Object.assign(grid, { scrollTop: 0, scrollLeft: 0 });
}

/** The rows in sight, each as the texts of its cells, the head of the row first. */
export const rowsOf = (element) =>
  [...element.querySelectorAll(".lnb-grid-body > *")]
    .filter((line) => !line.hidden)
    .sort((one, other) => one.lnb - other.lnb)
    .map((line) => [...line.children].filter((one) => !one.hidden).map((one) => one.textContent));

/** Press a key in a grid. */
export const press = (grid, key, held = {}) =>
  send(grid, "keydown", {
    key,
    altKey: false,
    ctrlKey: false,
    metaKey: false,
    shiftKey: false,
    ...held,
  });
