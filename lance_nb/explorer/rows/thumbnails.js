// Small pictures in the cells of a grid: asked for when they are in sight, made small here, kept
// few. Until one has come a grey place stands for it.

import { h } from "../js/dom.js";
import { fillCell } from "../js/grid_cell.js";
import { canvasOf, smallPicture } from "../js/media.js";

export const TALL = 60; // pixels of a row with pictures
const MARGIN = 4;
const SHARP = 2; // pixels kept per pixel shown
const AT_ONCE = 12;
const MAX_KEPT = 400;

/**
 * @typedef {{at: number, mime: string, width: number, height: number}} About a picture of the
 *   kernel
 * @typedef {{row: number, count: number, column: number, old?: boolean}} Run rows of a column whose
 *   pictures are asked for
 */

/** What a picture is, without its first bytes. @param {Lnb.Cell} value */
const labelOf = ({ text }) => text.split(" · ").slice(0, 2).join(" · ");

/** @param {number} row @param {number} column @param {boolean} [old] */
const keyOf = (row, column, old = false) => `${row}:${column}${old ? ":old" : ""}`;

/**
 * @param {Lnb.Context} ctx
 * @param {{store: Lnb.PageStore, changed: () => void, height: () => number, type?: string,
 *   sides?: boolean[]}} grid `height` of a row; `sides`: false for values, true for those before
 */
export function thumbnails(ctx, { store, changed, height, type = "rows.thumbs", sides = [false] }) {
  const request = ctx.kernel.line({ quiet: true });
  /**
   * @type {Map<string, ImageBitmap | null>} by row and column a small picture, or null where there
   *   is none
   */
  let bitmaps = new Map();
  /** @type {Lnb.Args | null} */
  let place = null;
  let sight = { first: 0, last: 0 };
  let underWay = "";

  function forget() {
    for (const bitmap of bitmaps.values()) bitmap?.close();
    bitmaps = new Map();
    underWay = "";
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
      if (store.column(column)?.look !== "binary") continue;
      for (const old of sides) {
        /** @param {number} row */
        const lacks = (row) => {
          const value = store.cell(row, column);
          return (old ? value?.old : value)?.picture && !bitmaps.has(keyOf(row, column, old));
        };
        for (let row = first; row < last; row += 1) {
          if (!lacks(row)) continue;
          let stop = row + 1;
          while (stop < last && stop - row < AT_ONCE && lacks(stop)) stop += 1;
          return { row, count: stop - row, column, ...(old ? { old } : {}) };
        }
      }
    }
    return null;
  }

  /** @param {Lnb.Answer} answer @param {Run} run @param {Lnb.Args | null} placeThen */
  async function arrived({ result, buffers }, { row, count, column, old }, placeThen) {
    const pixels = (height() - MARGIN) * SHARP;
    /** @type {(ImageBitmap | null)[]} */
    const pictures = await Promise.all(
      result.thumbs.map((/** @type {About} */ about, /** @type {number} */ index) =>
        // One that cannot be decoded has no picture.
        smallPicture(buffers[index], about, 1.6 * pixels, pixels).catch(() => null),
      ),
    );
    if (placeThen !== place) return pictures.forEach((bitmap) => bitmap?.close());
    for (let index = row; index < row + count; index += 1)
      if (!bitmaps.has(keyOf(index, column, old))) keep(keyOf(index, column, old), null);
    result.thumbs.forEach((/** @type {About} */ about, /** @type {number} */ index) =>
      keep(keyOf(about.at, column, old), pictures[index]),
    );
    underWay = "";
    return changed();
  }

  return {
    forget,
    /** @param {Lnb.Args | null} next */
    reset(next) {
      place = next;
      forget();
    },
    /**
     * Ask for the pictures of rows (`last` exclusive) that are not here.
     * @param {number} first @param {number} last @param {number[]} columns
     */
    want(first, last, columns) {
      sight = { first, last };
      if (ctx.kernel.state !== "live") return;
      const missingRun = missing(first, last, columns);
      const key = JSON.stringify(missingRun);
      if (!missingRun || key === underWay) return;
      underWay = key;
      const placeThen = place;
      request(
        type,
        { ...place, ...missingRun },
        (answer) => arrived(answer, missingRun, placeThen),
        () => {
          if (placeThen !== place) return; // of rows that are not shown any more
          const { row, count, column, old } = missingRun;
          for (let index = row; index < row + count; index += 1)
            keep(keyOf(index, column, old), null);
          underWay = "";
          changed(); // the next ones are asked for
        },
      );
    },
    /**
     * The picture of a value, or the grey place for it; null where there is none.
     * @param {Lnb.Cell | null | undefined} value @param {number} row @param {number} column
     * @param {boolean} [old]
     */
    pictureOf(value, row, column, old = false) {
      const bitmap = value?.picture ? bitmaps.get(keyOf(row, column, old)) : null;
      if (!value || bitmap === null || (!bitmap && ctx.kernel.state === "static")) return null;
      const name = { class: "lnb-thumb", role: "img", "aria-label": labelOf(value) };
      if (!bitmap) return h("i", name);
      return canvasOf(bitmap, { ...name, "aria-hidden": null });
    },
    /**
     * Put a value in a cell, with its picture where there is one.
     * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
     * @param {Lnb.Column | undefined} column @param {number} row @param {number} index
     * @returns {{filled: boolean, look: string, hint?: string}}
     */
    fill(cell, value, column, row, index) {
      const picture = this.pictureOf(value, row, index);
      if (!value || !picture) return fillCell(cell, value, column);
      cell.replaceChildren(picture);
      // While a picture is on its way, the cell is filled again.
      const filled = picture.localName === "canvas";
      return { filled, look: "lnb-look-binary lnb-look-picture", hint: labelOf(value) };
    },
  };
}
