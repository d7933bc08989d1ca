// The rows: a grid over any number of them, a filter, an order, a selection, and what cells hold.

import { GridEdits } from "../editing/grid_edits.js";
import { decodePage } from "../js/columns.js";
import { button, count, h, plural, setText } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { isWhole } from "../js/message_buffers.js";
import { pageStore } from "../js/page_store.js";
import { allRows, same, sameRows } from "../js/shown_rows.js";
import { widget } from "../js/view.js";
import { ROW, VirtualGrid } from "../js/virtual_grid.js";
import { markBars, selectBars } from "./bar_selection.js";
import { cellPeek } from "./cell_peek.js";
import { ColumnChooser } from "./column_chooser.js";
import { ColumnProfiles, profileFacts } from "./column_profiles.js";
import { GridActions, gridPanes } from "./grid_actions.js";
import { GridMouse } from "./grid_mouse.js";
import { RowsBar } from "./rows_bar.js";
import { TALL, thumbnails } from "./thumbnails.js";

const HEAD = 66;
const EDITS_MS = 300; // the rows come first

/** ▲, and which of several columns it is. @param {Lnb.SortKey[]} order @param {number} place */
const sortMark = (order, place) =>
  `${order[place].ascending ? "▲" : "▼"}${order.length > 1 ? place + 1 : ""}`;

/** @param {KeyboardEvent} event */
const isMenuKey = ({ key, shiftKey }) => key === "ContextMenu" || (key === "F10" && shiftKey);

class RowsView {
  /** @type {Lnb.Card | null} why the first rows could not be read */
  error = null;
  /** @type {{rows: number, columns: number} | null} of a snapshot, which keeps some of the rows */
  whole = null;
  /** @type {{ranked: boolean, condition: string | null} | null} the words that are searched for */
  searched = null;
  numFound = 0; // columns of a search in what is shown
  top = 0; // the first row in sight
  note = h("div", { class: "lnb-grid-note" });
  status = h("div", { class: "lnb-grid-status" });
  density = button("Large rows", () => this.resize(!this.isLarge), {
    class: "lnb-link",
    "aria-pressed": "true",
    title: "rows as high as their pictures, or more rows at once",
    hidden: true,
  });
  isLarge = true; // rows with pictures are
  deselect = button("Clear selection", () => this.clear(), {
    class: "lnb-link",
    title: "select nothing (Escape)",
    hidden: true,
  });

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.selection = ctx.rows.selection;
    this.store = pageStore(ctx.kernel, (page) => {
      if (page) this.learn(page);
      this.grid.paint();
    });
    this.profiles = new ColumnProfiles(
      ctx,
      () => this.grid.paint(),
      (passing, filter) => this.bar.estimate(passing, filter),
      (words) => this.bar.crossed(words),
    );
    this.thumbs = thumbnails(ctx, {
      store: this.store,
      changed: () => this.grid.paint(),
      height: () => this.grid.rowHeight,
    });
    this.grid = this.makeGrid();
    const { state, moveTo } = this.grid;
    this.state = state;
    const fail = (/** @type {Lnb.Failure} */ error) => this.bar.fail(error);
    this.bar = new RowsBar(ctx, {
      criteria: ctx.rows.criteria,
      query: () => ctx.rows.query,
      changed: ctx.rows.look,
      cancel: ctx.rows.cancel,
      showColumn: (at, raw) => (at === null ? this.chooser.reveal(raw) : moveTo(state.row, at)),
      choose: () => this.chooser.open(),
      brushed: (conditions, text) => this.profiles.brush(this.withSearch(conditions), text),
    });
    this.edits = new GridEdits(ctx, { grid: this.grid, store: this.store, fail });
    this.actions = new GridActions(ctx, {
      state,
      store: this.store,
      profiles: this.profiles,
      bar: () => this.bar,
    });
    const column = (/** @type {number} */ index) => this.store.column(index);
    this.chooser = new ColumnChooser(ctx, { state, column, moveTo, fail });
    this.peek = cellPeek(ctx, this.grid.element, {
      columnOf: column,
      query: () => ctx.rows.query,
      similar: (row, index) => this.actions.similar(row, index),
      alike: (row, index) => this.actions.alike(row, index),
      only: (row, index) => this.actions.only(row, index),
    });
    new GridMouse(ctx, {
      grid: this.grid,
      edits: this.edits,
      clear: () => this.clear(),
      selectRow: this.selectRow,
      open: this.peek.open,
      isSelected: this.selection.row,
      openMenu: this.openMenu,
    });
    el.append(this.page());
    this.follow();
  }

  page() {
    const link = { class: "lnb-link" };
    const foot = h(
      "div",
      { class: "lnb-grid-foot" },
      this.status,
      this.deselect,
      button("Export…", () => this.withPanes(({ exportPane }) => exportPane(this.ctx)), {
        ...link,
        title: "write these rows to a Parquet, CSV or Arrow file, or to a Lance dataset",
      }),
      this.density,
      this.edits.button,
      button("Keys", () => this.actions.keys(), { ...link, title: "keys of the grid (?)" }),
      button("Whole row", () => this.openRow(this.state.row), {
        ...link,
        title: "all values of the row (Shift+Enter)",
      }),
    );
    return h(
      "div",
      { class: "lnb-rows" },
      this.bar.element,
      h("div", { class: "lnb-grid-place" }, this.grid.element, this.note),
      this.edits.bar,
      foot,
      this.peek.element,
    );
  }

  follow() {
    const { ctx, state } = this;
    ctx.describe("rows", () => ({ ...ctx.rows.query, row: this.top }));
    ctx.onClose(
      ctx.rows.on({
        busy: (done, total) => this.bar.busy(done, total),
        shown: (rows) => this.begin(rows),
        failed: (error) => this.bar.fail(error),
        selected: this.grid.paint,
        held: ({ row, words }) => {
          this.bar.note(words);
          if (row !== null) this.grid.moveTo(row, state.column);
          if (words) ctx.announce(words);
        },
      }),
    );
    // Nobody went to the first row: it is where a grid begins.
    ctx.rows.followRow(() => state.row || null);
    const { branch, version, rows: part } = ctx.screen();
    if (part) this.begin({ place: { branch, version }, result: null, before: null, part });
    this.chooser.recall();
  }

  shown() {
    this.edits.look();
  }

  /**
   * Come from elsewhere: to a row, or to the rows that pass a filter.
   * @param {{row?: number, filter?: string}} target
   */
  open({ row, filter }) {
    if (filter !== undefined) this.bar.set(filter);
    if (row === undefined) return;
    this.grid.moveTo(row, this.state.column);
    this.grid.element.focus({ preventScroll: true });
  }

  makeGrid() {
    const view = this;
    const grid = new VirtualGrid(this.ctx, {
      label: "rows",
      store: this.store,
      titles: this.titles(),
      gutter: 56,
      head: HEAD,
      isChosen: this.selection.column,
      cell: (cell, value, column, row, index) =>
        this.edits.fill(cell, column, row) ?? this.thumbs.fill(cell, value, column, row, index),
      mark: (row, column) => this.edits.mark(row, column),
      before: () => this.paintNote(),
      row: (row) => {
        const chosen = this.selection.row(row);
        const isDeleted = this.edits.isDeleted(row);
        const look = `${chosen ? "lnb-chosen" : ""}${isDeleted ? " lnb-row-gone" : ""}`;
        return { text: count(row), look, chosen, words: isDeleted ? `${row}, to be deleted` : "" };
      },
      painted: (span) => this.painted(span),
      said: (row, column) =>
        `row ${row}, ${this.store.column(column)?.name ?? "column"}: ` +
        (this.store.cell(row, column)?.text ?? "loading"),
      keys: {
        first: (event) =>
          (event.key === "Escape" ? this.clearSelected() : null) ??
          (isMenuKey(event) ? () => this.openMenu(this.corner()) : this.edits.key(event)),
        select: this.selectRow,
        chooseColumn: this.selection.toggleColumn,
        openRow: (row) => this.openRow(row),
        open: (row, column) => this.peek.open(row, column),
        get letters() {
          return { ...view.actions.letters, ...view.chooser.letters };
        },
      },
    });
    grid.element.setAttribute("aria-multiselectable", "true");
    return grid;
  }

  /** A page of rows arrived. @param {Lnb.Page} page */
  learn(page) {
    if (this.density.hidden && page.columns.some(({ pictures }) => pictures)) {
      this.density.hidden = false;
      this.resize(this.isLarge);
    }
    this.grid.learn(page);
  }

  /** @param {boolean} large */
  resize(large) {
    this.isLarge = large;
    this.density.setAttribute("aria-pressed", String(large));
    this.thumbs.forget();
    this.grid.setRowHeight(large ? TALL : ROW);
  }

  /**
   * What the head of the grid has of each column.
   * @returns {import("../js/grid_head.js").Titles}
   */
  titles() {
    return {
      corner: { text: "#" },
      parts: (index) => {
        const mark = h("i", { class: "lnb-sort", title: "sort; with Shift beside other columns" });
        return [h("small"), this.histogram(index), h("em"), mark];
      },
      clicked: (index, event) => {
        const target = /** @type {Element} */ (event.target);
        if (target.closest(".lnb-profile")) return;
        if (target.closest(".lnb-sort")) this.actions.sort(index, event.shiftKey);
        else if (event.shiftKey) this.actions.sort(index, true);
        else if (event.ctrlKey || event.metaKey) this.selection.toggleColumn(index);
        else this.actions.openColumn(index);
      },
      draw: (cell, index, column) => {
        const order = this.ctx.rows.criteria.order ?? [];
        const place = column ? order.findIndex((sort) => sort.column === column.raw) : -1;
        if (place < 0) cell.removeAttribute("aria-sort");
        else cell.setAttribute("aria-sort", order[place].ascending ? "ascending" : "descending");
        const mark = /** @type {Element} */ (cell.querySelector(".lnb-sort"));
        setText(mark, place < 0 ? "" : sortMark(order, place));
        const drawn = /** @type {Lnb.Recycled} */ (cell.querySelector(".lnb-profile"));
        const words = this.profiles.draw(drawn, index);
        const profile = this.profiles.of(index);
        markBars(drawn, profile, column ? this.bar.barsOf(column.raw) : null);
        const facts = /** @type {Element} */ (cell.querySelector("em"));
        setText(facts, profile ? profileFacts(profile) : "");
        return words;
      },
    };
  }

  /** The place of a histogram, whose bars can be selected. @param {() => number} index */
  histogram(index) {
    const drawn = h("span", { class: "lnb-profile", "aria-hidden": "true" });
    // The head may show another column, or another profile, before the pointer is released.
    /** @type {import("./grid_actions.js").Histogram | null} */
    let pressed = null;
    selectBars(
      drawn,
      () => {
        pressed = this.actions.histogram(index());
        return pressed?.profile ?? null;
      },
      (from, to) => this.actions.brush(pressed, from, to),
      (odd) => this.actions.brushOdd(pressed, odd),
      (from, to) => this.actions.brush(pressed, from, to, true),
    );
    return drawn;
  }

  paintNote() {
    const failure = this.store.failure ?? this.error;
    const { search } = this.ctx.rows.criteria;
    const isFiltered = this.ctx.rows.query.filter;
    const emptyWords = search
      ? "No row has these words."
      : isFiltered
        ? "No row passes the filter."
        : "This version has no rows.";
    this.note.replaceChildren();
    if (failure) this.note.append(errorCard(failure));
    else if (!this.state.numRows) this.note.append(h("p", { class: "lnb-empty" }, emptyWords));
    if (this.note.hidden === Boolean(this.note.firstChild))
      this.note.hidden = !this.note.firstChild;
  }

  /**
   * The grid was painted.
   * @param {{first: number, last: number, from: number, columns: number[]}} span
   */
  painted({ first, last, from, columns }) {
    this.ctx.shared.window = {
      offset: Math.max(0, first - 20),
      first_column: Math.max(0, from - 4),
    };
    this.top = first;
    if (columns.length) this.profiles.want(columns, this.state.numRows);
    this.thumbs.want(first, last, columns);
    this.paintStatus(first, last);
    this.edits.seen(first, last);
  }

  /** @param {number} first @param {number} last */
  paintStatus(first, last) {
    const { rows, columns } = this.selection;
    this.deselect.hidden = !rows && !columns && !this.edits.hasBlock;
    const parts = [
      `rows ${count(first)} – ${count(Math.max(first, last - 1))} of ${count(this.state.numRows)}`,
      this.whole ? ` kept of ${count(this.whole.rows)}` : "",
      rows ? ` · ${count(rows)} selected` : "",
      columns ? ` · ${plural(columns, "column")} selected` : "",
    ];
    setText(this.status, this.state.numRows ? parts.join("") : "");
  }

  /**
   * @param {number} row
   * @param {{extend?: boolean, add?: boolean, from?: number, walks?: boolean}} how
   */
  selectRow = (row, how) => {
    this.edits.clear();
    this.selection.select(row, how);
  };

  /** Select no row, no column and no block of cells. */
  clear() {
    this.edits.clear();
    this.selection.clear();
  }

  /** What Escape does where something is selected. */
  clearSelected() {
    if (!this.selection.rows && !this.selection.columns && !this.edits.hasBlock) return null;
    return () => {
      this.clear();
      this.ctx.announce("Nothing is selected");
    };
  }

  /** @param {(panes: import("./grid_panes.js").GridPanes) => void} use */
  withPanes(use) {
    return this.actions.attempt(async () => use(await gridPanes(this.ctx)));
  }

  /** Open the menu of the cell of the keyboard. @param {{x: number, y: number}} corner */
  openMenu = (corner) => {
    const { ctx, grid, actions, chooser, edits } = this;
    const column = this.store.column(this.state.column);
    if (!column || !this.state.numRows) return;
    const openRow = (/** @type {number} */ row) => this.openRow(row);
    const targets = { ctx, grid, actions, chooser, edits, column, open: this.peek.open, openRow };
    this.withPanes(({ cellMenu }) => cellMenu(targets, corner));
  };

  /** The place in the window under the cell of the keyboard. */
  corner() {
    const id = this.grid.element.getAttribute("aria-activedescendant") ?? "";
    const cell = this.grid.body.querySelector(`[id="${id}"]`) ?? this.grid.body;
    const { left, bottom } = cell.getBoundingClientRect();
    return { x: left + 8, y: bottom };
  }

  /** Every value of a row, in the pane beside. @param {number} row */
  openRow(row) {
    if (!this.state.numRows) return;
    const place = { ...this.ctx.place(), ...this.ctx.rows.query };
    this.withPanes(({ rowDetail }) => rowDetail(this.ctx, place, row));
  }

  /**
   * Other rows begin at the first. What a search has found, a distance or a score, is the first
   * column, and stands there.
   * @param {number} position @param {number} before 1 where there is such a column
   * @param {Lnb.Near | null} near whose rows were shown
   */
  placeKeyboard(position, before, near) {
    const { state } = this;
    state.row = 0;
    if (position > before) {
      state.column = 0;
      this.grid.scrollTo({ left: 0 });
    } else if (before > position) state.column = state.column ? state.column - 1 : (near?.at ?? 0);
  }

  /**
   * With the words that rows are searched for, where they are a condition.
   * @param {import("./column_profiles.js").Conditions} conditions
   * @returns {import("./column_profiles.js").Conditions}
   */
  withSearch(conditions) {
    const condition = this.searched?.condition;
    return condition ? [...conditions, [null, condition]] : conditions;
  }

  /** Show other rows. @param {Lnb.RowsShown} rows */
  begin({ place, result, before, part }) {
    const { criteria, query, numRows, numColumns, numFound, numPinned } = this.ctx.rows;
    // A host that loses buffers gives a page without values: the rows are asked for again.
    const hasPage = part?.page && isWhole(part.buffers, part.num_buffers);
    const page = hasPage ? decodePage(part.page, part.buffers) : null;
    const alike =
      before !== null &&
      same(criteria.choice, before.choice) &&
      criteria.system === before.system &&
      numFound === this.numFound;
    this.bar.note("");
    if (part) {
      this.error = part.error ?? null;
      this.whole = part.whole ?? null;
      this.grid.element.classList.toggle("lnb-broken", Boolean(this.error));
    }
    // Where only other columns are shown, the rows stay.
    const stays = before !== null && sameRows(criteria, before);
    if (before && !stays) this.placeKeyboard(numFound, this.numFound, before.near);
    this.numFound = numFound;
    this.searched = result?.search ?? null;
    const rows = { ...place, ...query };
    this.store.reset(rows, page, { alike });
    const chosen = Boolean(criteria.near || criteria.within || this.searched?.ranked);
    this.profiles.reset(rows, this.withSearch(this.bar.conditions()), chosen);
    this.thumbs.reset(rows);
    this.edits.reset();
    this.grid.size(numRows, numColumns, {
      anew: true,
      pinned: numPinned,
      gutter: Math.max(44, 18 + 8 * count(numRows).length),
    });
    if (page) this.learn(page);
    setTimeout(() => this.edits.look(), EDITS_MS);
    this.ctx.code(result && !same(criteria, allRows()) ? result.code : null);
    if (!result) return;
    if (!stays) this.grid.scrollTo({ top: 0 });
    this.bar.say(result);
  }
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountRows(el, ctx) {
  return new RowsView(el, ctx);
}

export default widget(mountRows, "rows of the dataset");
