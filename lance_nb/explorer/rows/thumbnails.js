// Small pictures in the cells of a grid: asked for when they are in sight, made small here, kept
// few.

import { button, h } from "../js/dom.js";
import { fillCell } from "../js/grid_cell.js";
import { canvasOf, smallPicture } from "../js/media.js";

const HEIGHT = 24;
const WIDTH = 64;
const SHARP = 2; // pixels kept per pixel shown
const AT_ONCE = 12;
const MAX_KEPT = 400;

/**
 * @typedef {{at: number, mime: string, width: number, height: number}} About a picture of the
 *   kernel
 * @typedef {{row: number, count: number, column: number}} Run rows of a column whose pictures are
 *   asked for
 */

/**
 * @param {Lnb.Context} ctx @param {Lnb.PageStore} store @param {() => void} changed
 * @param {() => void} refill every cell
 */
export function thumbnails(ctx, store, changed, refill) {
  const request = ctx.kernel.line({ quiet: true });
  const toggle = button("Pictures", flip, {
    class: "lnb-link",
    "aria-pressed": "true",
    title: "show small pictures in cells",
    hidden: true,
  });
  /**
   * @type {Map<string, ImageBitmap | null>} by "row:column" a small picture, or null where there is
   *   none
   */
  let bitmaps = new Map();
  /** @type {Lnb.Args | null} */
  let place = null;
  let sight = { first: 0, last: 0 };
  let shown = true;
  let underWay = "";

  function flip() {
    shown = !shown;
    toggle.setAttribute("aria-pressed", String(shown));
    refill();
  }

  function forget() {
    for (const bitmap of bitmaps.values()) bitmap?.close();
    bitmaps = new Map();
  }
  ctx.onClose(forget);

  /** @param {string} key @param {ImageBitmap | null} picture */
  function keep(key, picture) {
    bitmaps.get(key)?.close();
    bitmaps.set(key, picture);
    if (bitmaps.size <= MAX_KEPT) return;
    for (const [oldest, old] of bitmaps) {
      const row = Number.parseInt(oldest, 10);
      if (row >= sight.first && row < sight.last) continue; // it would be asked for again at once
      old?.close();
      bitmaps.delete(oldest);
      break;
    }
  }

  /**
   * The first run of rows whose pictures are missing.
   * @param {number} first @param {number} last @param {number[]} columns
   * @returns {Run | null}
   */
  function missing(first, last, columns) {
    for (const column of columns) {
      /** @param {number} row */
      const lacks = (row) => store.cell(row, column)?.picture && !bitmaps.has(`${row}:${column}`);
      for (let row = first; row < last; row += 1) {
        if (!lacks(row)) continue;
        let stop = row + 1;
        while (stop < last && stop - row < AT_ONCE && lacks(stop)) stop += 1;
        return { row, count: stop - row, column };
      }
    }
    return null;
  }

  /** @param {Lnb.Answer} answer @param {Run} run @param {Lnb.Args | null} placeThen */
  async function arrived({ result, buffers }, { row, count, column }, placeThen) {
    /** @type {(ImageBitmap | null)[]} */
    const pictures = await Promise.all(
      result.thumbs.map((/** @type {About} */ about, /** @type {number} */ index) =>
        small(about, buffers[index]),
      ),
    );
    if (placeThen !== place) return pictures.forEach((bitmap) => bitmap?.close());
    for (let index = row; index < row + count; index += 1)
      if (!bitmaps.has(`${index}:${column}`)) keep(`${index}:${column}`, null);
    result.thumbs.forEach((/** @type {About} */ about, /** @type {number} */ index) =>
      keep(`${about.at}:${column}`, pictures[index]),
    );
    underWay = "";
    return changed();
  }

  return {
    toggle,
    /** @param {Lnb.Args | null} next */
    reset(next) {
      place = next;
      underWay = "";
      toggle.hidden = true;
      forget();
    },
    /**
     * Ask for the pictures of rows (`last` exclusive) that are not here.
     * @param {number} first @param {number} last @param {number[]} columns
     */
    want(first, last, columns) {
      sight = { first, last };
      if (ctx.kernel.state !== "live") return;
      if (columns.some((column) => store.column(column)?.pictures)) toggle.hidden = false;
      const missingRun = shown && !toggle.hidden ? missing(first, last, columns) : null;
      const key = JSON.stringify(missingRun);
      if (!missingRun || key === underWay) return;
      underWay = key;
      const placeThen = place;
      request(
        "rows.thumbs",
        { ...place, ...missingRun },
        (answer) => arrived(answer, missingRun, placeThen),
        () => {
          if (placeThen !== place) return; // of rows that are not shown any more
          for (let index = 0; index < missingRun.count; index += 1)
            keep(`${missingRun.row + index}:${missingRun.column}`, null);
          underWay = "";
          changed(); // the next ones are asked for
        },
      );
    },
    /**
     * Put a value in a cell, with its picture where there is one.
     * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
     * @param {Lnb.Column | undefined} column @param {number} row @param {number} index
     */
    fill(cell, value, column, row, index) {
      const picture = shown && value?.picture ? bitmaps.get(`${row}:${index}`) : null;
      if (!picture) {
        const words = fillCell(cell, value, column);
        // While a picture is on its way, the cell is filled again.
        return { ...words, filled: words.filled && picture === null };
      }
      const canvas = canvasOf(picture, { class: "lnb-thumb" });
      canvas.style.width = `${picture.width / SHARP}px`;
      cell.replaceChildren(
        h("i", { class: "lnb-thumb-place" }, canvas),
        h("span", {}, (value?.text ?? "").split(" · ").slice(0, 2).join(" · ")),
      );
      return { filled: true, look: "lnb-look-binary lnb-look-picture" };
    },
  };
}

/**
 * A picture made small, null when it cannot be decoded.
 * @param {About} about @param {Lnb.Buffer} buffer
 */
function small(about, buffer) {
  return smallPicture(buffer, about, WIDTH * SHARP, HEIGHT * SHARP).catch(() => null);
}
