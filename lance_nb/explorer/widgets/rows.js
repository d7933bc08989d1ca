// The rows: a grid of recycled elements over any number of rows, filled from pages as they arrive.

import { h, svg, setText, perFrame, count } from "../js/dom.js";
import { decodePage } from "../js/columns.js";
import { errorCard } from "../js/error_card.js";
import { pageStore } from "../js/page_store.js";
import { scrollMap } from "../js/scroll_map.js";
import { columnWidths, textMeasure } from "../js/column_widths.js";
import { cellPeek } from "../js/cell_peek.js";
import { gridKeys } from "../js/grid_keys.js";
import { widget } from "../js/view.js";

const ROW = 28;
const HEAD = 44;
let instances = 0;

/** @param {HTMLElement} el @param {import("../js/view.js").Context} ctx */
export function mountRows(el, ctx) {
  const uid = `lnb-grid${(instances += 1)}`;
  const head = h("div", { class: "lnb-grid-head", role: "row", "aria-rowindex": "1" });
  const body = h("div", { class: "lnb-grid-body", role: "rowgroup" });
  const layer = h("div", { class: "lnb-grid-layer" }, h("div", { role: "rowgroup" }, head), body);
  const spacer = h("div", { class: "lnb-grid-spacer" });
  const scroller = h("div", { class: "lnb-grid", role: "grid", tabindex: "0", "aria-label": "rows", "aria-multiselectable": "true" }, layer, spacer);
  const note = h("div", { class: "lnb-grid-note" });
  const status = h("div", { class: "lnb-grid-status" });
  const scroll = scrollMap(ROW);
  const widths = columnWidths(textMeasure(scroller));
  const store = pageStore(ctx.kernel, (page) => {
    if (page) unlearned = page;
    paint();
  });
  const peek = cellPeek(ctx, scroller, (column) => store.column(column)?.name ?? "");
  el.append(h("div", { class: "lnb-rows" }, scroller, note, status, peek.element));
  const pool = [];
  const corner = h("div", { class: "lnb-grid-corner", role: "columnheader" }, "#");
  const state = { numRows: 0, numColumns: 0, row: 0, column: 0, top: 0, down: true, seen: 0, selected: null, anchor: 0 };
  let unlearned = null; // a page that column widths are not fitted to yet: that needs fonts
  const size = { width: 0, height: 0 };
  let rowHeadWidth = 56;

  const paint = perFrame(() => {
    paintNote();
    // A notebook may take a view away for the length of a frame: the last size still stands.
    size.width = scroller.clientWidth || size.width;
    size.height = scroller.clientHeight || size.height;
    if (!size.width) return;
    if (unlearned) widths.learn(unlearned);
    unlearned = null;
    const room = size.height - HEAD;
    scroll.set(state.numRows, room);
    state.top = topNow();
    const first = Math.floor(state.top);
    const last = Math.min(state.numRows, Math.ceil(state.top + room / ROW));
    const left = scroller.scrollLeft;
    const [from, to] = widths.visible(left, size.width - rowHeadWidth, state.numColumns);
    layer.style.width = `${size.width}px`;
    layer.style.height = `${size.height}px`;
    spacer.style.width = `${rowHeadWidth + widths.total(state.numColumns)}px`;
    spacer.style.height = `${Math.max(scroll.height + HEAD - size.height, 0)}px`;
    paintHead(from, to, left);
    paintRows(first, last, from, to, left);
    ctx.shared.window = { offset: Math.max(0, first - 20), first_column: Math.max(0, from - 4) };
    if (last > first && to > from) store.want([first, last], [from, to], state.down, state.numRows);
    paintStatus(first, last);
  });

  /** Among millions of rows one pixel is many rows: a place that was asked for exactly is kept. */
  function topNow() {
    if (state.exact && Math.abs(state.exact.pixels - scroller.scrollTop) <= 1) return state.exact.top;
    state.exact = null;
    return scroll.topOf(scroller.scrollTop);
  }

  function paintHead(from, to, left) {
    const wanted = to - from;
    while (head.children.length - 1 < wanted) head.append(headCell());
    if (head.firstChild !== corner) head.prepend(corner);
    corner.style.width = `${rowHeadWidth}px`;
    for (let at = 1; at < head.children.length; at += 1) {
      const cell = head.children[at];
      const index = from + at - 1;
      cell.hidden = at > wanted;
      if (cell.hidden) {
        cell.className = "lnb-grid-column"; // the mark of the chosen column belongs to one that is seen
        continue;
      }
      const column = store.column(index);
      cell.lnb = index;
      cell.style.transform = `translateX(${rowHeadWidth + widths.left(index) - left}px)`;
      cell.style.width = `${widths.of(index)}px`;
      cell.setAttribute("aria-colindex", String(index + 2));
      cell.className = `lnb-grid-column lnb-look-${column?.look ?? "text"}${index === state.column ? " lnb-here" : ""}`;
      setText(cell.children[0], column?.name ?? "…");
      setText(cell.children[1], column?.type ?? "");
      cell.title = column ? `${column.name}: ${column.type}` : "";
    }
  }

  function headCell() {
    const grip = h("span", { class: "lnb-grid-grip", "aria-hidden": "true" });
    const cell = h("div", { class: "lnb-grid-column", role: "columnheader" }, h("b"), h("small"), grip);
    grip.addEventListener("pointerdown", (event) => resize(event, cell.lnb, grip));
    grip.addEventListener("dblclick", () => {
      const rows = pool.filter((line) => !line.hidden).map((line) => line.firstChild.lnb);
      widths.fit(cell.lnb, store.column(cell.lnb), rows.map((row) => store.cell(row, cell.lnb)));
      paint();
    });
    return cell;
  }

  function resize(event, index, grip) {
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    const start = event.clientX - widths.of(index);
    const move = (at) => {
      widths.set(index, at.clientX - start);
      paint();
    };
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
  }

  function paintRows(first, last, from, to, left) {
    const needed = last - first;
    while (pool.length < needed) {
      const line = h("div", { class: "lnb-grid-row", role: "row" }, h("div", { class: "lnb-grid-number", role: "rowheader" }));
      pool.push(line);
      body.append(line);
    }
    const used = new Set();
    for (let row = first; row < last; row += 1) {
      const line = pool[row % pool.length];
      used.add(line);
      line.hidden = false;
      line.style.transform = `translateY(${(row - state.top) * ROW}px)`;
      paintRow(line, row, from, to, left);
    }
    for (const line of pool) {
      if (used.has(line) || line.hidden) continue;
      line.hidden = true;
      for (const cell of [...line.children].slice(1)) retire(cell);
    }
    const here = `${uid}-${state.row}-${state.column}`;
    scroller.setAttribute("aria-activedescendant", here);
  }

  function paintRow(line, row, from, to, left) {
    const chosen = isSelected(row);
    line.setAttribute("aria-rowindex", String(row + 2));
    line.setAttribute("aria-selected", String(chosen));
    line.classList.toggle("lnb-chosen", chosen);
    const number = line.firstChild;
    number.style.width = `${rowHeadWidth}px`;
    number.lnb = row;
    setText(number, count(row));
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
      cell.style.transform = `translateX(${rowHeadWidth + widths.left(index) - left}px)`;
      cell.style.width = `${widths.of(index)}px`;
    }
  }

  /** Hide a cell that is not needed now; its id must be free for the one that takes its place. */
  function retire(cell) {
    cell.hidden = true;
    cell.lnb = null;
    cell.className = "lnb-cell";
    cell.removeAttribute("id");
  }

  function paintCell(cell, row, index) {
    const here = row === state.row && index === state.column;
    const key = `${state.seen}:${row}:${index}`;
    if (cell.lnb?.key !== key || !cell.lnb.filled) {
      const value = store.cell(row, index);
      cell.lnb = { key, row, index, filled: value !== undefined };
      cell.id = `${uid}-${row}-${index}`;
      cell.setAttribute("aria-colindex", String(index + 2));
      cell.lnb.look = value ? `lnb-look-${value.look}${store.column(index).look === "number" ? " lnb-right" : ""}` : "lnb-waiting";
      if (value?.spark) cell.replaceChildren(spark(value.spark), h("span", {}, value.text));
      else setText(cell, value ? value.text : "");
    }
    cell.className = `lnb-cell ${cell.lnb.look}${here ? " lnb-here" : ""}`;
  }

  function paintNote() {
    const failure = store.failure ?? state.error;
    note.replaceChildren(...(failure ? [errorCard(failure)] : !state.numRows ? [h("p", { class: "lnb-empty" }, "This version has no rows.")] : []));
    note.hidden = !note.firstChild;
  }

  function paintStatus(first, last) {
    const range = state.numRows ? `rows ${count(first)} – ${count(Math.max(first, last - 1))} of ${count(state.numRows)}` : "";
    const chosen = state.selected ? ` · ${count(state.selected[1] - state.selected[0])} selected` : "";
    setText(status, state.numRows ? `${range}${chosen}` : "");
  }

  const isSelected = (row) => state.selected !== null && row >= state.selected[0] && row < state.selected[1];

  function select(row, extend) {
    if (!extend) state.anchor = row;
    const same = !extend && state.selected?.[0] === row && state.selected[1] === row + 1;
    state.selected = same ? null : [Math.min(row, state.anchor), Math.max(row, state.anchor) + 1];
    const ranges = state.selected ? [state.selected] : [];
    ctx.kernel.ask("select", { ranges }).catch((error) => ctx.announce(error.message));
    paint();
  }

  function moveTo(row, column) {
    state.row = Math.max(0, Math.min(state.numRows - 1, row));
    state.column = Math.max(0, Math.min(state.numColumns - 1, column));
    const fits = Math.max(1, Math.floor((scroller.clientHeight - HEAD) / ROW));
    if (state.row < Math.ceil(state.top)) scrollToRow(state.row);
    else if (state.row >= Math.floor(state.top) + fits) scrollToRow(state.row - fits + 1);
    const left = widths.left(state.column);
    const room = scroller.clientWidth - rowHeadWidth;
    if (left < scroller.scrollLeft) scroller.scrollLeft = left;
    else if (left + widths.of(state.column) > scroller.scrollLeft + room) scroller.scrollLeft = left + widths.of(state.column) - room;
    const value = store.cell(state.row, state.column);
    ctx.announce(`row ${state.row}, ${store.column(state.column)?.name ?? "column"}: ${value?.text ?? "loading"}`);
    paint();
  }

  function scrollToRow(top) {
    const bounded = Math.max(0, Math.min(top, scroll.lastTop));
    const pixels = Math.round(scroll.pixelsOf(bounded));
    state.down = bounded >= state.top;
    state.exact = scroll.scaled ? { top: bounded, pixels } : null;
    scroller.scrollTop = pixels;
    paint();
  }

  scroller.addEventListener("scroll", () => {
    const before = state.top;
    state.down = topNow() >= before;
    paint();
  }, { passive: true });
  scroller.addEventListener("wheel", (event) => {
    if (!scroll.scaled || !event.deltaY || event.ctrlKey) return;
    event.preventDefault();
    const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW;
    scrollToRow(state.top + Math.sign(rows) * Math.max(1, Math.abs(rows)));
  }, { passive: false });
  body.addEventListener("mousedown", (event) => {
    if (!event.target.closest(".lnb-grid-number")) return;
    event.preventDefault(); // Shift and a click would select text
    scroller.focus({ preventScroll: true });
  });
  body.addEventListener("click", (event) => {
    const number = event.target.closest(".lnb-grid-number");
    if (number) return select(number.lnb, event.shiftKey);
    const cell = event.target.closest(".lnb-cell");
    if (cell) moveTo(cell.lnb.row, cell.lnb.index);
  });
  body.addEventListener("dblclick", (event) => {
    const cell = event.target.closest(".lnb-cell");
    if (cell) peek.open(cell.lnb.row, cell.lnb.index);
  });
  gridKeys(scroller, {
    state,
    page: () => Math.max(1, Math.floor((scroller.clientHeight - HEAD) / ROW) - 1),
    moveTo,
    select,
    open: peek.open,
    widen: (by) => {
      widths.set(state.column, widths.of(state.column) + by);
      paint();
    },
  });

  const observer = new ResizeObserver(() => paint());
  observer.observe(scroller);
  // A kernel that was busy answers late: what could not be asked for is asked for then.
  ctx.onClose(ctx.kernel.onState(paint));
  ctx.onClose(() => {
    observer.disconnect();
    paint.cancel();
  });
  ctx.onScreen((screen) => {
    const part = screen.rows;
    if (!part) return;
    state.seen += 1;
    state.selected = null;
    state.error = part.error ?? null;
    state.numRows = part.num_rows ?? 0;
    state.numColumns = part.num_columns ?? 0;
    const page = part.page ? decodePage(part.page, part.buffers) : null;
    store.reset({ branch: screen.branch, version: screen.version }, page);
    unlearned = page;
    rowHeadWidth = Math.max(44, 18 + 8 * count(state.numRows).length);
    state.row = Math.min(state.row, Math.max(0, state.numRows - 1));
    state.column = Math.min(state.column, Math.max(0, state.numColumns - 1));
    scroller.setAttribute("aria-rowcount", String(state.numRows + 1));
    scroller.setAttribute("aria-colcount", String(state.numColumns + 1));
    scroller.classList.toggle("lnb-broken", Boolean(state.error));
    paint();
  }, ["rows"]);
}

function spark(shades) {
  const points = Array.from(shades, (shade, at) => `${((at * 60) / Math.max(1, shades.length - 1)).toFixed(1)},${(15 - (shade * 14) / 255).toFixed(1)}`);
  return svg("svg", { class: "lnb-spark", viewBox: "0 0 60 16", width: 60, height: 16, "aria-hidden": "true" }, svg("polyline", { points: points.join(" ") }));
}

export default widget(mountRows, "rows of the dataset");
