// A grid of changes: recycled rows over any number of them, a glyph and a tint per row, old values
// beside new ones. It says nothing of what the rows are; see change_grid.js.

import { h, setText, perFrame, count } from "./dom.js";
import { fillCell, retire } from "./grid_cell.js";
import { sheetHead } from "./sheet_head.js";
import { columnWidths, textMeasure } from "./column_widths.js";
import { scrollMap } from "./scroll_map.js";
import { gridKeys } from "./grid_keys.js";

const ROW = 28;
const GUTTER = 34;
let instances = 0;

/**
 * @param {import("./view.js").Context} ctx
 * @param {Object} of `label`, `store` (see page_store.js), `mark(row)` -> {glyph, look}, `open(row)`,
 *   `note(column)` words under a title, `end()` called when the last row known is in sight
 */
export function sheet(ctx, { label, store, mark, open, note = () => "", end = () => {} }) {
  const uid = `lnb-sheet${(instances += 1)}`;
  const body = h("div", { class: "lnb-grid-body", role: "rowgroup" });
  const headRow = h("div", { class: "lnb-grid-head", role: "row", "aria-rowindex": "1" });
  const layer = h("div", { class: "lnb-grid-layer" }, h("div", { role: "rowgroup" }, headRow), body);
  const spacer = h("div", { class: "lnb-grid-spacer" });
  const scroller = h("div", { class: "lnb-grid lnb-sheet", role: "grid", tabindex: "0", "aria-label": label }, layer, spacer);
  const scroll = scrollMap(ROW);
  const widths = columnWidths(textMeasure(scroller));
  const pool = [];
  const state = { numRows: 0, numColumns: 0, row: 0, column: 0, top: 0, head: 44, seen: 0 };
  let unlearned = [];
  const size = { width: 0, height: 0 };
  const paintHead = sheetHead(headRow, { store, widths, note, paint: () => paint() });

  const paint = perFrame(() => {
    size.width = scroller.clientWidth || size.width;
    size.height = scroller.clientHeight || size.height;
    if (!size.width) return;
    for (const page of unlearned.splice(0)) widths.learn(page);
    const room = size.height - state.head;
    scroll.set(state.numRows, room);
    state.top = scroll.topOf(scroller.scrollTop);
    const first = Math.floor(state.top);
    const last = Math.min(state.numRows, Math.ceil(state.top + room / ROW));
    const left = scroller.scrollLeft;
    const [from, to] = widths.visible(left, size.width - GUTTER, state.numColumns);
    layer.style.width = `${size.width}px`;
    layer.style.height = `${size.height}px`;
    spacer.style.width = `${GUTTER + widths.total(state.numColumns)}px`;
    spacer.style.height = `${Math.max(scroll.height + state.head - size.height, 0)}px`;
    paintHead(from, to, left, GUTTER, state.column);
    paintRows(first, last, from, to, left);
    if (last > first && to > from) store.want([first, last], [from, to], true, state.numRows);
    if (last >= state.numRows) end();
  });

  function paintRows(first, last, from, to, left) {
    while (pool.length < last - first) {
      const line = h("div", { class: "lnb-grid-row", role: "row" }, h("div", { class: "lnb-grid-number lnb-sheet-mark", role: "rowheader" }));
      pool.push(line);
      body.append(line);
    }
    const used = new Set();
    for (let row = first; row < last; row += 1) {
      const line = pool[row % pool.length];
      used.add(line);
      paintRow(line, row, from, to, left);
    }
    for (const line of pool) {
      if (used.has(line) || line.hidden) continue;
      line.hidden = true;
      for (const cell of [...line.children].slice(1)) retire(cell);
    }
    scroller.setAttribute("aria-activedescendant", `${uid}-${state.row}-${state.column}`);
  }

  function paintRow(line, row, from, to, left) {
    const { glyph, look, words } = mark(row);
    line.lnb = row;
    line.hidden = false;
    line.className = `lnb-grid-row ${look}${row === state.row ? " lnb-current" : ""}`;
    line.style.transform = `translateY(${(row - state.top) * ROW}px)`;
    line.setAttribute("aria-rowindex", String(row + 2));
    setText(line.firstChild, glyph);
    line.firstChild.setAttribute("aria-label", words ? `${words}, row ${count(row)}` : `row ${count(row)}`);
    const wanted = to - from;
    while (line.children.length - 1 < wanted) line.append(h("div", { class: "lnb-cell", role: "gridcell" }));
    for (let at = 1; at < line.children.length; at += 1) {
      const cell = line.children[at];
      const index = from + at - 1;
      if (at > wanted) {
        retire(cell);
        continue;
      }
      cell.hidden = false;
      paintCell(cell, row, index);
      cell.style.transform = `translateX(${GUTTER + widths.left(index) - left}px)`;
      cell.style.width = `${widths.of(index)}px`;
    }
  }

  function paintCell(cell, row, index) {
    const key = `${state.seen}:${row}:${index}`;
    if (cell.lnb?.key !== key || !cell.lnb.filled) {
      cell.lnb = { key, row, index, ...fillChange(cell, store.cell(row, index), store.column(index)) };
      cell.id = `${uid}-${row}-${index}`;
      cell.setAttribute("aria-colindex", String(index + 2));
    }
    cell.className = `lnb-cell ${cell.lnb.look}${row === state.row && index === state.column ? " lnb-here" : ""}`;
  }

  function moveTo(row, column) {
    state.row = Math.max(0, Math.min(state.numRows - 1, row));
    state.column = Math.max(0, Math.min(state.numColumns - 1, column));
    const fits = Math.max(1, Math.floor((scroller.clientHeight - state.head) / ROW));
    if (state.row < Math.ceil(state.top)) scroller.scrollTop = scroll.pixelsOf(state.row);
    else if (state.row >= Math.floor(state.top) + fits) scroller.scrollTop = scroll.pixelsOf(state.row - fits + 1);
    const left = widths.left(state.column);
    const room = scroller.clientWidth - GUTTER;
    if (left < scroller.scrollLeft) scroller.scrollLeft = left;
    else if (left + widths.of(state.column) > scroller.scrollLeft + room) scroller.scrollLeft = left + widths.of(state.column) - room;
    const value = store.cell(state.row, state.column);
    ctx.announce(`${mark(state.row).words ?? "row"} ${state.row}, ${store.column(state.column)?.name ?? ""}: ${value?.old ? `${value.old.text} became ` : ""}${value?.text ?? "loading"}`);
    paint();
  }

  scroller.addEventListener("scroll", () => paint(), { passive: true });
  body.addEventListener("click", (event) => {
    const line = event.target.closest(".lnb-grid-row");
    if (!line) return;
    moveTo(line.lnb, event.target.closest(".lnb-cell")?.lnb?.index ?? state.column);
    open(line.lnb);
  });
  gridKeys(scroller, {
    state,
    page: () => Math.max(1, Math.floor((scroller.clientHeight - state.head) / ROW) - 1),
    moveTo,
    select() {},
    chooseColumn() {},
    letters: {},
    open,
    openRow: open,
    widen: (by) => {
      widths.set(state.column, widths.of(state.column) + by);
      paint();
    },
  });
  const observer = new ResizeObserver(() => paint());
  observer.observe(scroller);
  ctx.onClose(ctx.kernel.onState(() => paint()));
  ctx.onClose(() => {
    observer.disconnect();
    paint.cancel();
  });

  return {
    element: scroller,
    paint,
    /** A page arrived: fit columns to it. */
    learn(page) {
      unlearned.push(page);
      paint();
    },
    /** How much there is; `anew` begins again at the top. `head`: height of the titles. */
    size(numRows, numColumns, { anew = false, head: tall = state.head } = {}) {
      Object.assign(state, { numRows, numColumns, head: tall });
      scroller.style.setProperty("--lnb-head", `${tall}px`);
      if (anew) {
        state.seen += 1;
        Object.assign(state, { row: 0, column: 0, top: 0 });
        scroller.scrollTop = scroller.scrollLeft = 0;
      }
      scroller.setAttribute("aria-rowcount", String(numRows + 1));
      scroller.setAttribute("aria-colcount", String(numColumns + 1));
      paint();
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
  cell.replaceChildren(part("del", value.old), h("i", { "aria-hidden": "true" }, "→"), part("ins", value));
  return { filled: true, look: `lnb-look-changed${column.look === "number" ? " lnb-right" : ""}` };
}
