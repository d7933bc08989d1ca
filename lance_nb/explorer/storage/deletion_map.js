// The deleted rows of a fragment as pixels on a canvas, however many rows; the kernel counts them.

import { onTheme, penOf, percent, themeColours } from "../js/canvas.js";
import { button, count, h, perFrame, plural } from "../js/dom.js";

const HEIGHT = 120;
const MOST_CELL = 9;

/**
 * @param {Lnb.Context} ctx @param {Lnb.Place} place
 * @param {number} fragment @param {number} numRows
 */
export function deletionMap(ctx, place, fragment, numRows) {
  const canvas = h("canvas.lnb-dm-canvas", { role: "img", "aria-label": "deleted rows" });
  const readout = h("p.lnb-dm-readout");
  const out = button("All rows", () => load(0, numRows), {
    title: "show all rows of the fragment",
  });
  const closer = button("Zoom in", () => zoom(0.5), { title: "show a quarter of these rows" });
  const element = h("div.lnb-dm", canvas, readout, h("div.lnb-dm-tools", closer, out));
  const request = ctx.kernel.line();
  /**
   * @type {{shades: Uint8Array, num_rows: number, num_deleted: number, first: number, stop: number,
   *   rows_per_pixel: number} | null}
   */
  let shown = null;
  let cells = { columns: 1, size: 1 };

  /** @param {number} rows */
  function layout(rows) {
    const width = Math.max(80, Math.min(900, element.clientWidth || 280));
    const size = Math.max(
      1,
      Math.min(MOST_CELL, Math.floor(Math.sqrt((width * HEIGHT) / Math.max(1, rows)))),
    );
    const columns = Math.max(1, Math.floor(width / size));
    return { size, columns, pixels: columns * Math.floor(HEIGHT / size) };
  }

  /** @param {number} first @param {number} rows */
  function load(first, rows) {
    const { pixels } = layout(rows);
    request(
      "storage.deletions",
      {
        ...place,
        fragment,
        first: Math.max(0, Math.floor(first)),
        rows: Math.max(1, Math.floor(rows)),
        pixels,
      },
      ({ result, buffers }) => {
        const buffer = buffers[0];
        shown = {
          ...result,
          shades:
            buffer instanceof ArrayBuffer
              ? new Uint8Array(buffer)
              : new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength),
        };
        paint();
      },
      (error) => element.replaceChildren(ctx.problem(error)),
    );
  }

  const paint = perFrame(() => {
    if (!shown) return;
    const total = shown.shades.length;
    cells = layout(total);
    const lines = Math.max(1, Math.ceil(total / cells.columns));
    const colours = themeColours(element, ["remove", "line"]);
    const pen = penOf(canvas, cells.columns * cells.size, lines * cells.size);
    const gap = cells.size > 3 ? 1 : 0;
    pen.fillStyle = colours.line;
    for (let line = 0; line < lines; line += 1) {
      const wide = Math.min(cells.columns, total - line * cells.columns);
      pen.fillRect(0, line * cells.size, wide * cells.size, cells.size - gap);
    }
    pen.fillStyle = colours.remove;
    for (let index = 0; index < total; index += 1) {
      const shade = shown.shades[index];
      if (!shade) continue;
      pen.globalAlpha = 0.25 + (0.75 * shade) / 255;
      pen.fillRect(
        (index % cells.columns) * cells.size,
        Math.floor(index / cells.columns) * cells.size,
        cells.size - gap,
        cells.size - gap,
      );
    }
    pen.globalAlpha = 1;
    canvas.setAttribute(
      "aria-label",
      `${percent(shown.num_deleted, shown.num_rows)} of ${plural(shown.num_rows, "row")} deleted`,
    );
    out.disabled = shown.first === 0 && shown.stop === shown.num_rows;
    closer.disabled = shown.rows_per_pixel <= 1;
    tell(-1);
  });

  /** @param {number} index */
  function tell(index) {
    if (!shown) return;
    const each = shown.rows_per_pixel;
    if (index < 0) {
      const rows = `rows ${count(shown.first)} – ${count(Math.max(shown.first, shown.stop - 1))}`;
      const unit = cells.size > 1 ? "square" : "pixel";
      const share = each > 1 ? `${count(each)} rows` : "a row";
      readout.textContent = `${rows} · each ${unit} is ${share} · red is deleted`;
      return;
    }
    const first = shown.first + index * each;
    const last = Math.min(shown.stop, first + each) - 1;
    const state =
      each > 1
        ? `${percent(shown.shades[index], 255)} deleted`
        : shown.shades[index]
          ? "deleted"
          : "live";
    readout.textContent =
      first === last
        ? `row ${count(first)}: ${state}`
        : `rows ${count(first)} – ${count(last)}: ${state}`;
  }

  /** @param {MouseEvent} event */
  function under(event) {
    const box = canvas.getBoundingClientRect();
    const index =
      Math.floor((event.clientY - box.top) / cells.size) * cells.columns +
      Math.floor((event.clientX - box.left) / cells.size);
    return index >= 0 && index < (shown?.shades.length ?? 0) ? index : -1;
  }

  /** Show a quarter of the rows around a share of them. @param {number} share */
  function zoom(share) {
    if (!shown) return;
    const rows = Math.max(1, Math.ceil((shown.stop - shown.first) / 4));
    load(
      Math.min(
        shown.stop - rows,
        Math.max(shown.first, shown.first + share * (shown.stop - shown.first) - rows / 2),
      ),
      rows,
    );
  }

  canvas.addEventListener("pointermove", (event) => shown && tell(under(event)));
  canvas.addEventListener("pointerleave", () => shown && tell(-1));
  canvas.addEventListener("click", (event) => {
    const index = shown ? under(event) : -1;
    if (shown && index >= 0 && shown.rows_per_pixel > 1) zoom(index / shown.shades.length);
  });
  ctx.onClose(onTheme(paint));
  requestAnimationFrame(() => load(0, numRows));
  return element;
}
