// A grid of changes: a glyph and a tint per row, old values beside new ones. It says nothing of
// what the rows are; see change_grid.js.

import { count, h, setText } from "./dom.js";
import { fillCell } from "./grid_cell.js";
import { virtualGrid } from "./virtual_grid.js";

const GUTTER = 34;

/**
 * @param {Lnb.Context} ctx
 * @param {{label: string, store: Lnb.PageStore, mark: (row: number) => {glyph: string,
 *   look: string, words: string}, open: (row: number) => void, note?: (column: number) => string,
 *   end?: () => void}} of `note`: words under a title; `end` is called when the last row known is
 *   in sight
 */
export function diffGrid(ctx, { label, store, mark, open, note = () => "", end = () => {} }) {
  /** @type {import("./grid_head.js").Titles} */
  const titles = {
    corner: { text: "", label: "kind of change" },
    parts: () => h("span", { class: "lnb-sheet-sub" }, h("small"), h("em")),
    draw(cell, index) {
      const words = note(index);
      setText(/** @type {Element} */ (cell.querySelector("em")), words);
      return words && `${words} changed`;
    },
  };
  const grid = virtualGrid(ctx, {
    label,
    store,
    titles,
    look: "lnb-sheet",
    gutter: GUTTER,
    head: 44,
    cell: fillChange,
    row(row) {
      const { glyph, look, words } = mark(row);
      return {
        text: glyph,
        look,
        words: words ? `${words}, row ${count(row)}` : `row ${count(row)}`,
      };
    },
    painted({ last }) {
      if (last >= state.numRows) end();
    },
    said(row, column) {
      const value = store.cell(row, column);
      const old = value?.old ? `${value.old.text} became ` : "";
      const place = `${mark(row).words ?? "row"} ${row}, ${store.column(column)?.name ?? ""}`;
      return `${place}: ${old}${value?.text ?? "loading"}`;
    },
    keys: { select() {}, chooseColumn() {}, letters: {}, open, openRow: open },
  });
  const { element, body, state } = grid;
  body.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    /** @type {Lnb.Recycled | null} */
    const line = target.closest(".lnb-grid-row");
    /** @type {Lnb.Recycled | null} */
    const cell = target.closest(".lnb-cell");
    if (!line) return;
    grid.moveTo(line.lnb, cell?.lnb?.index ?? state.column);
    open(line.lnb);
  });

  return {
    element,
    paint: grid.paint,
    learn: grid.learn,
    /**
     * How much there is; `anew` begins again at the top. `head`: height of the titles.
     * @param {number} numRows @param {number} numColumns
     * @param {{anew?: boolean, head?: number}} how
     */
    size(numRows, numColumns, { anew = false, head } = {}) {
      if (anew) {
        Object.assign(state, { row: 0, column: 0, top: 0 });
        grid.scrollTo({ left: 0, top: 0 });
      }
      grid.size(numRows, numColumns, { anew, head });
    },
  };
}

/**
 * The value of a cell and, where it changed, what it was: `old → new`.
 * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
 * @param {Lnb.Column | undefined} column
 */
function fillChange(cell, value, column) {
  if (!value?.old) return fillCell(cell, value, column);
  /** @param {"del" | "ins"} tag @param {Lnb.Cell} one */
  const part = (tag, one) => {
    const element = h(tag, {});
    const { look } = fillCell(element, one, column);
    element.className = look;
    return element;
  };
  cell.replaceChildren(
    part("del", value.old),
    h("i", { "aria-hidden": "true" }, "→"),
    part("ins", value),
  );
  return { filled: true, look: `lnb-look-changed${column?.look === "number" ? " lnb-right" : ""}` };
}
