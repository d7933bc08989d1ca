// A grid of changes: a glyph and a tint per row, old values beside new ones. It says nothing of what
// the rows are; see change_grid.js.

import { count, h, setText } from "./dom.js";
import { fillCell } from "./grid_cell.js";
import { virtualGrid } from "./virtual_grid.js";

const GUTTER = 34;

/**
 * @param {import("./view.js").Context} ctx
 * @param {Object} of `label`, `store` (see page_store.js), `mark(row)` -> {glyph, look, words}, `open(row)`,
 *   `note(column)` words under a title, `end()` called when the last row known is in sight
 */
export function sheet(ctx, { label, store, mark, open, note = () => "", end = () => {} }) {
  const titles = {
    corner: { text: "", label: "kind of change" },
    parts: () => h("span", { class: "lnb-sheet-sub" }, h("small"), h("em")),
    draw(cell, index) {
      const words = note(index);
      setText(cell.querySelector("em"), words);
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
      return `${mark(row).words ?? "row"} ${row}, ${store.column(column)?.name ?? ""}: ${value?.old ? `${value.old.text} became ` : ""}${value?.text ?? "loading"}`;
    },
    keys: { select() {}, chooseColumn() {}, letters: {}, open, openRow: open },
  });
  const { element, body, state } = grid;
  body.addEventListener("click", (event) => {
    const line = event.target.closest(".lnb-grid-row");
    if (!line) return;
    grid.moveTo(line.lnb, event.target.closest(".lnb-cell")?.lnb?.index ?? state.column);
    open(line.lnb);
  });

  return {
    element,
    paint: grid.paint,
    learn: grid.learn,
    /** How much there is; `anew` begins again at the top. `head`: height of the titles. */
    size(numRows, numColumns, { anew = false, head } = {}) {
      if (anew) {
        Object.assign(state, { row: 0, column: 0, top: 0 });
        grid.scrollTo({ left: 0, top: 0 });
      }
      grid.size(numRows, numColumns, { anew, head });
    },
  };
}

/** The value of a cell and, where it changed, what it was: `old → new`. */
function fillChange(cell, value, column) {
  if (!value?.old) return fillCell(cell, value, column);
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
  return { filled: true, look: `lnb-look-changed${column.look === "number" ? " lnb-right" : ""}` };
}
