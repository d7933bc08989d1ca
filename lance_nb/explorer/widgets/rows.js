// The rows: a grid of recycled elements over any number of rows, filled from pages as they arrive.

import { h, setText, perFrame, count, plural } from "../js/dom.js";
import { fillCell, retire } from "../js/grid_cell.js";
import { gridHead } from "../js/grid_head.js";
import { columnProfiles } from "../js/column_profiles.js";
import { rowsBar } from "../js/rows_bar.js";
import { rowDetail } from "../js/row_detail.js";
import { decodePage } from "../js/columns.js";
import { errorCard } from "../js/error_card.js";
import { pageStore } from "../js/page_store.js";
import { scrollMap } from "../js/scroll_map.js";
import { columnWidths, textMeasure } from "../js/column_widths.js";
import { cellPeek } from "../js/cell_peek.js";
import { gridKeys } from "../js/grid_keys.js";
import { gridActions } from "../js/grid_actions.js";
import { gridSelection } from "../js/grid_selection.js";
import { widget } from "../js/view.js";

const ROW = 28;
const HEAD = 62;
let instances = 0;

/** @param {HTMLElement} el @param {import("../js/view.js").Context} ctx */
export function mountRows(el, ctx) {
  const uid = `lnb-grid${(instances += 1)}`;
  const asked = { filter: null, system: false, order: null, near: null };
  const look = { filter: null, system: false, arranged: null };
  const lens = () => look;
  const body = h("div", { class: "lnb-grid-body", role: "rowgroup" });
  const headRow = h("div", { class: "lnb-grid-head", role: "row", "aria-rowindex": "1" });
  const layer = h("div", { class: "lnb-grid-layer" }, h("div", { role: "rowgroup" }, headRow), body);
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
  const profiles = columnProfiles(ctx, () => paint());
  const state = { numRows: 0, numColumns: 0, row: 0, column: 0, top: 0, down: true, seen: 0, turn: 0 };
  const selection = gridSelection(ctx, lens, () => paint());
  const bar = rowsBar(ctx, { asked, lens, changed: lookAgain, found: (at) => moveTo(state.row, at), cancel: () => running?.cancel() });
  const actions = gridActions(ctx, { state, store, profiles, asked, lens, bar: () => bar, selection: () => selection, look: lookAgain, wanted: () => state.wanted ?? asked });
  const peek = cellPeek(ctx, scroller, { columnOf: (column) => store.column(column), lens, similar: actions.similar, only: actions.only });
  const keys = h("button", { class: "lnb-link", type: "button", title: "keys of the grid (?)", on: { click: actions.keys } }, "keys");
  const more = h("button", { class: "lnb-link", type: "button", title: "all values of the row (Shift+Enter)", on: { click: () => openRow(state.row) } }, "whole row");
  el.append(h("div", { class: "lnb-rows" }, bar.element, h("div", { class: "lnb-grid-place" }, scroller, note), h("div", { class: "lnb-grid-foot" }, status, keys, more), peek.element));
  const pool = [];
  let running = null; // rows being looked for
  let unlearned = null; // a page that column widths are not fitted to yet: that needs fonts
  const size = { width: 0, height: 0 };
  let rowHeadWidth = 56;
  const head = gridHead(headRow, { store, widths, profiles, paint: () => paint(), shown: () => pool.filter((line) => !line.hidden).map((line) => line.firstChild.lnb), open: actions.openColumn, choose: selection.toggleColumn, brush: actions.brush, isChosen: selection.column, order: () => asked.order });

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
    head.paint(from, to, left, rowHeadWidth, state.column);
    paintRows(first, last, from, to, left);
    ctx.shared.window = { offset: Math.max(0, first - 20), first_column: Math.max(0, from - 4) };
    if (last > first && to > from) store.want([first, last], [from, to], state.down, state.numRows);
    if (to > from) profiles.want(from, to, state.numRows);
    paintStatus(first, last);
  });

  /** Among millions of rows one pixel is many rows: a place that was asked for exactly is kept. */
  function topNow() {
    if (state.exact && Math.abs(state.exact.pixels - scroller.scrollTop) <= 1) return state.exact.top;
    state.exact = null;
    return scroll.topOf(scroller.scrollTop);
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
    const chosen = selection.row(row);
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

  function paintCell(cell, row, index) {
    const key = `${state.seen}:${row}:${index}`;
    if (cell.lnb?.key !== key || !cell.lnb.filled) {
      cell.lnb = { key, row, index, ...fillCell(cell, store.cell(row, index), store.column(index)) };
      cell.id = `${uid}-${row}-${index}`;
      cell.setAttribute("aria-colindex", String(index + 2));
    }
    cell.className = `lnb-cell ${cell.lnb.look}${row === state.row && index === state.column ? " lnb-here" : ""}${selection.column(index) ? " lnb-chosen" : ""}`;
  }

  function paintNote() {
    const failure = store.failure ?? state.error;
    note.replaceChildren(...(failure ? [errorCard(failure)] : !state.numRows ? [h("p", { class: "lnb-empty" }, look.filter ? "No row passes the filter." : "This version has no rows.")] : []));
    note.hidden = !note.firstChild;
  }

  function paintStatus(first, last) {
    const range = state.numRows ? `rows ${count(first)} – ${count(Math.max(first, last - 1))} of ${count(state.numRows)}${state.whole ? ` kept of ${count(state.whole.rows)}` : ""}` : "";
    const columns = selection.columns ? ` · ${plural(selection.columns, "column")} selected` : "";
    const chosen = `${selection.rows ? ` · ${count(selection.rows)} selected` : ""}${columns}`;
    setText(status, state.numRows ? `${range}${chosen}` : "");
  }

  /** Every value of a row, in the pane beside. */
  function openRow(row) {
    if (state.numRows) rowDetail(ctx, { branch: ctx.screen().branch, version: ctx.screen().version, ...look }, row);
  }

  /** Another filter, order or other columns: find what is shown now, then begin again at the top. */
  async function lookAgain(change) {
    const { branch, version } = ctx.screen();
    const wanted = { ...(state.wanted ?? asked), ...change };
    state.wanted = wanted;
    const turn = (state.turn += 1);
    running?.cancel();
    const answer = ctx.kernel.ask("rows.look", { branch, version, ...wanted }, { progress: (done, total) => turn === state.turn && bar.busy(done, total) });
    running = answer;
    if (wanted.filter || wanted.order || wanted.near) bar.busy(0, 0);
    try {
      const { result } = await answer;
      if (turn !== state.turn) return;
      if (wanted.near && !asked.near) scroller.scrollLeft = 0; // the distance is the first column
      Object.assign(asked, wanted);
      Object.assign(look, { filter: wanted.filter, system: wanted.system, arranged: result.arranged });
      begin({ branch, version }, result.num_rows, result.num_columns, null);
      ctx.code(look.filter || look.system || look.arranged ? result.code : null);
      scroller.scrollTop = 0;
      bar.say(result);
    } catch (error) {
      if (turn === state.turn) bar.fail(error); // what was shown stays
    }
    if (running !== answer) return;
    running = null;
    state.wanted = null;
  }

  function begin(place, numRows, numColumns, page) {
    state.seen += 1;
    selection.reset(state.numColumns === numColumns);
    state.numRows = numRows;
    state.numColumns = numColumns;
    store.reset({ ...place, ...look }, page);
    profiles.reset({ ...place, ...look });
    unlearned = page;
    rowHeadWidth = Math.max(44, 18 + 8 * count(numRows).length);
    state.row = Math.min(state.row, Math.max(0, numRows - 1));
    state.column = Math.min(state.column, Math.max(0, numColumns - 1));
    scroller.setAttribute("aria-rowcount", String(numRows + 1));
    scroller.setAttribute("aria-colcount", String(numColumns + 1));
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
    if (number) return selection.select(number.lnb, { extend: event.shiftKey, add: event.ctrlKey || event.metaKey });
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
    select: selection.select,
    chooseColumn: selection.toggleColumn,
    letters: actions.letters,
    open: peek.open,
    openRow,
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
    state.error = part.error ?? null;
    state.whole = part.whole ?? null; // of a snapshot, which keeps some of the rows
    running?.cancel();
    Object.assign(look, { filter: null, system: false, arranged: null });
    const page = part.page ? decodePage(part.page, part.buffers) : null;
    begin({ branch: screen.branch, version: screen.version }, part.num_rows ?? 0, part.num_columns ?? 0, page);
    // What was asked of the version before is asked of this one.
    state.turn += 1;
    if (asked.filter || asked.system || asked.order || asked.near) lookAgain({});
    else ctx.code(null);
    scroller.classList.toggle("lnb-broken", Boolean(state.error));
  }, ["rows"]);
  return {
    /** Come from elsewhere: to a row, or to the rows that pass a filter. */
    open({ row, filter }) {
      if (filter !== undefined) bar.filter(filter);
      if (row !== undefined) {
        moveTo(row, state.column);
        scroller.focus({ preventScroll: true });
      }
    },
  };
}

export default widget(mountRows, "rows of the dataset");
