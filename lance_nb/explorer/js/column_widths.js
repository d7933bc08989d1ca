// Column widths of the grid: guessed from the first page, changed by hand, kept across versions.

import { shownText } from "./grid_cell.js";

const LEAST = 48;
const HISTOGRAM = 80; // the least width of a picture of the values
const MOST = 640;
const USUAL = 132;
/** @typedef {"plain" | "bold" | "mono"} Font */

/** @type {Record<string, number>} */
const FIXED = { vector: 148 };
const ROOM = 21; // padding on both sides, and the line between columns

/**
 * @param {(text: string, font: Font) => number} measure width of a text in pixels
 * @returns {Lnb.ColumnWidths}
 */
export function columnWidths(measure) {
  /** @type {{px: number, by: string, name: string | undefined}[]} */
  const widths = [];
  const lefts = [0];

  /** @param {number} from */
  function recount(from) {
    lefts.length = Math.max(1, Math.min(lefts.length, from + 1));
  }
  /** @param {number} index @returns {number} */
  function left(index) {
    while (lefts.length <= index) lefts.push((lefts.at(-1) ?? 0) + of(lefts.length - 1));
    return lefts[index];
  }
  /** @param {number} index */
  function of(index) {
    return widths[index]?.px ?? USUAL;
  }

  /**
   * The width that shows the title, and the longest texts of the cells.
   * @param {Lnb.Column} column @param {Lnb.Cell[]} cells
   */
  function fitting(column, cells) {
    const title = Math.max(column.room ?? HISTOGRAM, measure(column.name, "bold"));
    if (column.pictures) return Math.ceil(title + ROOM); // a picture is fitted into this
    if (FIXED[column.look]) return Math.ceil(Math.max(FIXED[column.look], title + ROOM));
    const font = column.look === "json" || column.look === "binary" ? "mono" : "plain";
    const longest = cells
      .map(shownText)
      .sort((a, b) => b.length - a.length)
      .slice(0, 4);
    const content = Math.max(0, ...longest.map((text) => measure(text.slice(0, 120), font)));
    return Math.ceil(Math.max(title, content) + ROOM);
  }

  return {
    of,
    left,
    total: (columns) => left(columns),
    set(index, px) {
      widths[index] = {
        px: Math.max(LEAST, Math.min(MOST, Math.round(px))),
        by: "hand",
        name: widths[index]?.name,
      };
      recount(index);
    },
    /**
     * Fit to names and rows of a page: wider when a page needs it, never over a width set by hand.
     */
    learn(page) {
      page.columns.forEach((column, pageIndex) => {
        const index = page.firstColumn + pageIndex;
        const width = widths[index];
        const fresh = !width || width.name !== column.name;
        if (!fresh && width.by === "hand") return;
        const cells = Array.from({ length: Math.min(100, page.numRows) }, (_, row) =>
          column.cell(row),
        );
        const px = Math.min(300, fitting(column, cells));
        if (!fresh && px <= width.px) return;
        widths[index] = { px, by: "guess", name: column.name };
        recount(index);
      });
    },
    /** Fit one column to the cells in sight. */
    fit(index, column, cells) {
      if (!column) return;
      widths[index] = {
        px: Math.min(MOST, fitting(column, /** @type {Lnb.Cell[]} */ (cells.filter(Boolean)))),
        by: "hand",
        name: column.name,
      };
      recount(index);
    },
    /** First and one-past-last column in sight. */
    visible(scrolled, room, columns) {
      let first = 0;
      while (first < columns && left(first + 1) <= scrolled) first += 1;
      let stop = first;
      while (stop < columns && left(stop) < scrolled + room) stop += 1;
      return [first, stop];
    },
  };
}

/**
 * Measures texts in the fonts of an element (in the page), on a canvas that is never shown.
 * @param {Element} element @returns {(text: string, font: Font) => number}
 */
export function textMeasure(element) {
  const canvas = document.createElement("canvas");
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  /** @type {Record<Font, string> | null} */
  let fonts = null;
  return (text, font) => {
    if (!fonts) {
      const style = getComputedStyle(element);
      const usual = `${style.fontSize} ${style.fontFamily}`;
      fonts = {
        plain: usual,
        bold: `600 ${usual}`,
        mono: `12px ${style.getPropertyValue("--lnb-mono")}`,
      };
    }
    pen.font = fonts[font];
    return pen.measureText(text).width;
  };
}
