// One cell of the grid: its text or its spark line, and taking it out of use.

import { h, setText, svg } from "./dom.js";
import { markedText } from "./search_box.js";

/** What a cell shows of a value. @param {Lnb.Cell} value */
export const shownText = ({ short, text }) => short ?? text;

/**
 * Put a value in a cell; `hint` is shown beside the pointer.
 * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
 * @param {Lnb.Column | undefined} column
 * @returns {{filled: boolean, look: string, hint?: string}}
 */
export function fillCell(cell, value, column) {
  if (value?.marks) cell.replaceChildren(...markedText(value.text, value.marks));
  else if (value?.spark) fillSpark(cell, value.spark, value.text);
  else if (cell.firstElementChild)
    cell.replaceChildren(value ? shownText(value) : ""); // the same may stand beside a line
  else setText(cell, value ? shownText(value) : "");
  return {
    ...(value?.short ? { hint: value.text } : {}),
    filled: value !== undefined,
    look: value
      ? `lnb-look-${value.look}${column?.look === "number" ? " lnb-right" : ""}`
      : "lnb-waiting",
  };
}

/**
 * Hide a cell that is not needed now; its id must be free for the one that takes its place.
 * @param {Lnb.Recycled} cell
 */
export function retire(cell) {
  cell.hidden = true;
  cell.lnb = null;
  cell.className = "lnb-cell";
  cell.removeAttribute("id");
  cell.removeAttribute("title");
}

/**
 * A line and a number beside it; those that stand in the cell already are used again.
 * @param {HTMLElement} cell @param {Uint8Array} spark @param {string} text
 */
function fillSpark(cell, spark, text) {
  const points = Array.from(spark, (shade, index) =>
    [(index * 60) / Math.max(1, spark.length - 1), 15 - (shade * 14) / 255]
      .map((pixels) => pixels.toFixed(1))
      .join(),
  ).join(" ");
  if (cell.firstElementChild?.classList.contains("lnb-spark")) {
    cell.firstElementChild.firstElementChild?.setAttribute("points", points);
    if (cell.lastElementChild) setText(cell.lastElementChild, text);
  } else
    cell.replaceChildren(
      svg(
        "svg",
        { class: "lnb-spark", viewBox: "0 0 60 16", width: 60, height: 16, "aria-hidden": "true" },
        svg("polyline", { points }),
      ),
      h("span", {}, text),
    );
}
