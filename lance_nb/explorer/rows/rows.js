// The rows: a grid over any number of them, a filter, an order, a selection, and what cells hold.

import { gridEdits } from "../editing/grid_edits.js";
import { decodePage } from "../js/columns.js";
import { count, h, plural, setText } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { isWhole } from "../js/message_buffers.js";
import { pageStore } from "../js/page_store.js";
import { allRows, same, sameRows } from "../js/shown_rows.js";
import { widget } from "../js/view.js";
import { virtualGrid } from "../js/virtual_grid.js";
import { markBars, selectBars } from "./bar_selection.js";
import { cellPeek } from "./cell_peek.js";
import { columnChooser } from "./column_chooser.js";
import { columnProfiles } from "./column_profiles.js";
import { exportPane } from "./export_pane.js";
import { gridActions } from "./grid_actions.js";
import { rowDetail } from "./row_detail.js";
import { rowsBar } from "./rows_bar.js";
import { thumbnails } from "./thumbnails.js";

const HEAD = 62;
const EDITS_MS = 300; // the rows come first

/** @param {Event} event */
const targetOf = (event) => /** @type {Element} */ (event.target);

/** ▲, and which of several columns it is. @param {Lnb.SortKey[]} order @param {number} place */
const sortMark = (order, place) =>
  `${order[place].ascending ? "▲" : "▼"}${order.length > 1 ? place + 1 : ""}`;

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountRows(el, ctx) {
  const { asked, lens: look, selection } = ctx.rows;
  /**
   * @type {{error: Lnb.Card | null, whole: {rows: number, columns: number} | null,
   *   searched: {ranked: boolean, condition: string | null} | null, found: number}}
   */
  const now = { error: null, whole: null, searched: null, found: 0 };
  const rowLens = () => look;
  let top = 0;
  const note = h("div", { class: "lnb-grid-note" });
  const status = h("div", { class: "lnb-grid-status" });
  const store = pageStore(ctx.kernel, (page) => {
    if (page) grid.learn(page);
    grid.paint();
  });
  const profiles = columnProfiles(
    ctx,
    () => grid.paint(),
    (passing, filter) => bar.estimate(passing, filter),
    (words) => bar.crossed(words),
  );
  const thumbs = thumbnails(
    ctx,
    store,
    () => grid.paint(),
    () => grid.refill(),
  );
  /** @type {import("../js/grid_head.js").Titles} */
  const titles = {
    corner: { text: "#" },
    parts(index) {
      const drawn = h("span", { class: "lnb-profile", "aria-hidden": "true" });
      // The head may show another column, or another profile, before the pointer is released.
      /** @type {import("./grid_actions.js").Histogram | null} */
      let pressed = null;
      selectBars(
        drawn,
        () => {
          pressed = actions.histogram(index());
          return pressed?.profile ?? null;
        },
        (from, to) => actions.brush(pressed, from, to),
        (odd) => actions.brushOdd(pressed, odd),
        (from, to) => actions.brush(pressed, from, to, true),
      );
      const mark = h("i", { class: "lnb-sort", title: "sort; with Shift beside other columns" });
      return [h("small"), drawn, mark];
    },
    clicked(index, event) {
      const target = targetOf(event);
      if (target.closest(".lnb-profile")) return;
      if (target.closest(".lnb-sort")) actions.sort(index, event.shiftKey);
      else if (event.shiftKey) actions.sort(index, true);
      else if (event.ctrlKey || event.metaKey) selection.toggleColumn(index);
      else actions.openColumn(index);
    },
    draw(cell, index, column) {
      const order = asked.order ?? [];
      const place = column ? order.findIndex((sort) => sort.column === column.raw) : -1;
      if (place < 0) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", order[place].ascending ? "ascending" : "descending");
      const mark = /** @type {Element} */ (cell.querySelector(".lnb-sort"));
      setText(mark, place < 0 ? "" : sortMark(order, place));
      const drawn = /** @type {Lnb.Recycled} */ (cell.querySelector(".lnb-profile"));
      const words = profiles.draw(drawn, index);
      markBars(drawn, profiles.of(index), column ? bar.barsOf(column.raw) : null);
      return words;
    },
  };
  const grid = virtualGrid(ctx, {
    label: "rows",
    store,
    titles,
    gutter: 56,
    head: HEAD,
    isChosen: selection.column,
    cell: (cell, value, column, row, index) =>
      edits.fill(cell, column, row) ?? thumbs.fill(cell, value, column, row, index),
    mark: (row, column) => edits.mark(row, column),
    before: paintNote,
    row(row) {
      const chosen = selection.row(row);
      const isDeleted = edits.isDeleted(row);
      const look = `${chosen ? "lnb-chosen" : ""}${isDeleted ? " lnb-row-gone" : ""}`;
      return { text: count(row), look, chosen, words: isDeleted ? `${row}, to be deleted` : "" };
    },
    painted({ first, last, from, columns }) {
      ctx.shared.window = { offset: Math.max(0, first - 20), first_column: Math.max(0, from - 4) };
      top = first;
      if (columns.length) profiles.want(columns, state.numRows);
      thumbs.want(first, last, columns);
      paintStatus(first, last);
      edits.seen(first, last);
    },
    said: (row, column) =>
      `row ${row}, ${store.column(column)?.name ?? "column"}: ` +
      (store.cell(row, column)?.text ?? "loading"),
    keys: {
      first: (event) => (event.key === "Escape" ? clearSelected() : null) ?? edits.key(event),
      select: selectRow,
      chooseColumn: selection.toggleColumn,
      openRow,
      open: (row, column) => peek.open(row, column),
      get letters() {
        return { ...actions.letters, ...chooser.letters };
      },
    },
  });
  const { element: scroller, body, state } = grid;
  scroller.setAttribute("aria-multiselectable", "true");
  const bar = rowsBar(ctx, {
    asked,
    lens: rowLens,
    changed: ctx.rows.look,
    found: (at, raw) => (at === null ? chooser.reveal(raw) : grid.moveTo(state.row, at)),
    choose: () => chooser.open(),
    cancel: ctx.rows.cancel,
    brushed: (conditions, text) => profiles.brush(withSearch(conditions), text),
  });
  const edits = gridEdits(ctx, { grid: () => grid, store, fail: bar.fail });
  const actions = gridActions(ctx, {
    state,
    store,
    profiles,
    bar: () => bar,
  });
  const chooser = columnChooser(ctx, {
    state,
    column: (index) => store.column(index),
    moveTo: grid.moveTo,
    fail: bar.fail,
  });
  const peek = cellPeek(ctx, scroller, {
    columnOf: (column) => store.column(column),
    lens: rowLens,
    similar: actions.similar,
    alike: actions.alike,
    only: actions.only,
  });
  const keys = h(
    "button",
    {
      class: "lnb-link",
      type: "button",
      title: "keys of the grid (?)",
      on: { click: actions.keys },
    },
    "Keys",
  );
  const more = h(
    "button",
    {
      class: "lnb-link",
      type: "button",
      title: "all values of the row (Shift+Enter)",
      on: { click: () => openRow(state.row) },
    },
    "Whole row",
  );
  const exports = h(
    "button",
    {
      class: "lnb-link",
      type: "button",
      title: "write these rows to a Parquet, CSV or Arrow file, or to a Lance dataset",
      on: { click: () => exportPane(ctx) },
    },
    "Export…",
  );
  const copies = h(
    "span",
    { hidden: true },
    "copy as ",
    ["text", "markdown", "code"].flatMap((form) => [
      h(
        "button",
        { class: "lnb-link", type: "button", on: { click: () => actions.copy(form) } },
        form,
      ),
      " ",
    ]),
  );
  el.append(
    h(
      "div",
      { class: "lnb-rows" },
      bar.element,
      h("div", { class: "lnb-grid-place" }, scroller, note),
      edits.bar,
      h(
        "div",
        { class: "lnb-grid-foot" },
        status,
        copies,
        exports,
        thumbs.toggle,
        edits.button,
        keys,
        more,
      ),
      peek.element,
    ),
  );

  function paintNote() {
    const failure = store.failure ?? now.error;
    note.replaceChildren(
      ...(failure
        ? [errorCard(failure)]
        : !state.numRows
          ? [
              h(
                "p",
                { class: "lnb-empty" },
                asked.search
                  ? "No row has these words."
                  : look.filter
                    ? "No row passes the filter."
                    : "This version has no rows.",
              ),
            ]
          : []),
    );
    if (note.hidden === Boolean(note.firstChild)) note.hidden = !note.firstChild;
  }

  /** @param {number} first @param {number} last */
  function paintStatus(first, last) {
    const span = `rows ${count(first)} – ${count(Math.max(first, last - 1))}`;
    const whole = now.whole ? ` kept of ${count(now.whole.rows)}` : "";
    const range = `${span} of ${count(state.numRows)}${whole}`;
    const columns = selection.columns ? ` · ${plural(selection.columns, "column")} selected` : "";
    const chosen = `${selection.rows ? ` · ${count(selection.rows)} selected` : ""}${columns}`;
    if (copies.hidden === selection.rows > 0) copies.hidden = !selection.rows;
    setText(status, state.numRows ? `${range}${chosen}` : "");
  }

  /** @type {typeof selection.select} */
  function selectRow(row, options) {
    edits.clear();
    selection.select(row, options);
  }

  /** What Escape does where something is selected. */
  function clearSelected() {
    if (!selection.rows && !selection.columns && !edits.hasBlock) return null;
    return () => {
      edits.clear();
      selection.clear();
      ctx.announce("Nothing is selected");
    };
  }

  /** Every value of a row, in the pane beside. @param {number} row */
  function openRow(row) {
    if (state.numRows)
      rowDetail(ctx, { branch: ctx.screen().branch, version: ctx.screen().version, ...look }, row);
  }

  /**
   * Other rows begin at the first. What a search has found, a distance or a score, is the first
   * column, and stands there.
   * @param {number} position @param {number} before 1 where there is such a column
   * @param {Lnb.Near | null} near whose rows were shown
   */
  function placeKeyboard(position, before, near) {
    state.row = 0;
    if (position > before) {
      state.column = 0;
      grid.scrollTo({ left: 0 });
    } else if (before > position) state.column = state.column ? state.column - 1 : (near?.at ?? 0);
  }

  /**
   * With the words that rows are searched for, where they are a condition.
   * @param {import("./column_profiles.js").Conditions} conditions
   * @returns {import("./column_profiles.js").Conditions}
   */
  function withSearch(conditions) {
    const condition = now.searched?.condition;
    return condition ? [...conditions, [null, condition]] : conditions;
  }

  /** @param {Lnb.RowsShown} what */
  function begin({ place, result, before, part }) {
    // A host that loses buffers gives a page without values: the rows are asked for again.
    const page =
      part?.page && isWhole(part.buffers, part.num_buffers)
        ? decodePage(part.page, part.buffers)
        : null;
    const alike =
      before !== null &&
      same(asked.choice, before.choice) &&
      asked.system === before.system &&
      ctx.rows.numFound === now.found;
    bar.note("");
    if (part) {
      now.error = part.error ?? null;
      now.whole = part.whole ?? null; // of a snapshot, which keeps some of the rows
      scroller.classList.toggle("lnb-broken", Boolean(now.error));
    }
    // Where only other columns are shown, the rows stay.
    const stays = before !== null && sameRows(asked, before);
    if (before && !stays) placeKeyboard(ctx.rows.numFound, now.found, before.near);
    now.found = ctx.rows.numFound;
    now.searched = result?.search ?? null;
    store.reset({ ...place, ...look }, page, { alike });
    const chosen = Boolean(asked.near || asked.within || now.searched?.ranked);
    profiles.reset({ ...place, ...look }, withSearch(bar.conditions()), chosen);
    thumbs.reset({ ...place, ...look });
    edits.reset();
    const { numRows, numColumns } = ctx.rows;
    grid.size(numRows, numColumns, {
      anew: true,
      pinned: ctx.rows.numPinned,
      gutter: Math.max(44, 18 + 8 * count(numRows).length),
    });
    if (page) grid.learn(page);
    setTimeout(edits.look, EDITS_MS);
    ctx.code(result && !same(asked, allRows()) ? result.code : null);
    if (!result) return;
    if (!stays) grid.scrollTo({ top: 0 });
    bar.say(result);
  }

  /** @param {Event} event @returns {Lnb.Recycled | null} */
  const cellOf = (event) => targetOf(event).closest(".lnb-cell");
  /** @type {{row: number, index: number} | null} */
  let pressed = null;
  let dragged = false; // a block of cells was selected with it
  let held = false; // the mouse button is down in a cell
  body.addEventListener("mousedown", (event) => {
    if (event.button) return;
    const cell = cellOf(event);
    if (cell) {
      held = true;
      dragged = false;
      pressed = { row: cell.lnb.row, index: cell.lnb.index };
      if (event.shiftKey) event.preventDefault(); // it would select text
      return;
    }
    if (!targetOf(event).closest(".lnb-grid-number")) return;
    event.preventDefault(); // Shift and a click would select text
    scroller.focus({ preventScroll: true });
  });
  body.addEventListener("click", (event) => {
    const number = targetOf(event).closest(".lnb-grid-number");
    if (number) {
      const row = /** @type {Lnb.Recycled} */ (number.parentNode).lnb;
      const from = state.row;
      grid.moveTo(row, state.column); // Shift and an arrow goes on from there
      const add = event.ctrlKey || event.metaKey;
      return selectRow(row, { extend: event.shiftKey, add, from });
    }
    const cell = cellOf(event);
    if (!cell) return;
    const { row, index } = cell.lnb;
    if (event.shiftKey) edits.drag(row, index);
    else if (dragged) dragged = false;
    else {
      edits.clear();
      selection.clear();
      grid.moveTo(row, index);
    }
  });
  body.addEventListener("dblclick", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const { row, index } = cell.lnb;
    if (edits.edits) edits.open(row, index);
    else peek.open(row, index);
  });
  body.addEventListener("mousemove", (event) => {
    const cell = held && event.buttons === 1 ? cellOf(event) : null;
    if (!cell) return;
    const { row, index } = cell.lnb;
    if (!dragged && pressed && row === pressed.row && index === pressed.index) return;
    if (!dragged && pressed) {
      edits.clear();
      grid.moveTo(pressed.row, pressed.index);
      getSelection()?.removeAllRanges();
      scroller.focus({ preventScroll: true });
    }
    dragged = true;
    edits.drag(row, index);
  });
  const release = () => {
    held = false;
  };
  window.addEventListener("mouseup", release);
  ctx.onClose(() => window.removeEventListener("mouseup", release));
  ctx.describe("rows", () => ({ ...look, row: top }));
  ctx.onClose(
    ctx.rows.on({
      busy: bar.busy,
      shown: begin,
      failed: bar.fail,
      selected: grid.paint,
      held({ row, words }) {
        bar.note(words);
        if (row !== null) grid.moveTo(row, state.column);
        if (words) ctx.announce(words);
      },
    }),
  );
  // Nobody went to the first row: it is where a grid begins.
  ctx.rows.followRow(() => state.row || null);
  const { branch, version, rows: part } = ctx.screen();
  if (part) begin({ place: { branch, version }, result: null, before: null, part });
  return {
    shown: edits.look,
    /**
     * Come from elsewhere: to a row, or to the rows that pass a filter.
     * @param {{row?: number, filter?: string}} target
     */
    open({ row, filter }) {
      if (filter !== undefined) bar.filter(filter);
      if (row !== undefined) {
        grid.moveTo(row, state.column);
        scroller.focus({ preventScroll: true });
      }
    },
  };
}

export default widget(mountRows, "rows of the dataset");
