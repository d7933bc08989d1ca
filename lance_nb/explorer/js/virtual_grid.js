// A grid over any number of rows and columns: recycled elements for what is in sight, the scroll
// bar, the place of the keyboard. What the rows are, and what is done with them, is its caller's.

import { columnWidths, textMeasure } from "./column_widths.js";
import { atOnce, h, onResize, perFrame, setAttribute, setText } from "./dom.js";
import { fillCell, retire } from "./grid_cell.js";
import { gridHead } from "./grid_head.js";
import { gridKeys } from "./grid_keys.js";
import { scrollMap, scrollSight } from "./scroll_map.js";

export const ROW = 28;
const HOLD_MS = 60;
let instances = 0;

/** @param {number} from @param {number} to exclusive */
const range = (from, to) =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);

/**
 * @typedef {Object} GridOptions
 * @property {string} label
 * @property {string} [look] a class
 * @property {Lnb.PageStore} store
 * @property {number} gutter pixels beside the cells @property {number} head pixels above them
 * @property {import("./grid_head.js").Titles} titles
 * @property {(row: number) => {text: string, look: string, words?: string,
 *   chosen?: boolean | null}} row its head
 * @property {(column: number) => boolean} [isChosen]
 * @property {(row: number, column: number) => string} [mark] more classes of a cell
 * @property {(cell: Lnb.Recycled, value: Lnb.Cell | undefined, column: Lnb.Column | undefined,
 *   row: number, index: number) => {filled: boolean, look: string, hint?: string}} [cell] puts a
 *   value in a cell
 * @property {() => void} [before] called before each painting
 * @property {(span: {first: number, last: number, from: number, to: number,
 *   columns: number[]}) => void} painted called after it; `columns` has the pinned ones, too
 * @property {(row: number, column: number) => string} said for screen readers
 * @property {Pick<import("./grid_keys.js").GridActions,
 *   "select" | "chooseColumn" | "open" | "openRow" | "letters" | "first">} keys
 */

export class VirtualGrid {
  uid = `lnb-grid${(instances += 1)}`;
  rowHeight = ROW;
  scroll = scrollMap(ROW);
  body = h("div", { class: "lnb-grid-body", role: "rowgroup" });
  spacer = h("div", { class: "lnb-grid-spacer" });
  /**
   * @type {{numRows: number, numColumns: number, pinned: number, row: number, column: number,
   *   top: number, down: boolean, seen: number, exact: {top: number, pixels: number} | null}}
   */
  state = {
    numRows: 0,
    numColumns: 0,
    pinned: 0,
    row: 0,
    column: 0,
    top: 0,
    down: true,
    seen: 0,
    exact: null,
  };
  /** @type {{timer: ReturnType<typeof setTimeout> | undefined, over: boolean}} */
  hold = { timer: undefined, over: false };
  /** @type {Lnb.Recycled[]} */
  pool = [];
  /** @type {Lnb.Page[]} */
  unlearned = []; // pages that column widths are not fitted to yet: that needs fonts

  /** @param {Lnb.Context} ctx @param {GridOptions} options */
  constructor(ctx, options) {
    const { label, look = "", store, gutter, head, titles, keys } = options;
    this.ctx = ctx;
    this.options = options;
    this.store = store;
    this.isChosen = options.isChosen ?? (() => false);
    this.fill = options.cell ?? fillCell;
    this.sizes = { gutter, head };
    const headRow = h("div", { class: "lnb-grid-head", role: "row", "aria-rowindex": "1" });
    this.layer = h(
      "div",
      { class: "lnb-grid-layer" },
      h("div", { role: "rowgroup" }, headRow),
      this.body,
    );
    this.element = h(
      "div",
      { class: `lnb-grid ${look}`, role: "grid", tabindex: "0", "aria-label": label },
      this.layer,
      this.spacer,
    );
    this.widths = columnWidths(textMeasure(this.element));
    this.sight = scrollSight(this.element);
    /** Scroll to `{left, top}`, in pixels. */
    this.scrollTo = this.sight.to;
    this.paint = perFrame(() => this.paintNow());
    this.paintHead = gridHead(headRow, {
      store,
      widths: this.widths,
      titles,
      isChosen: this.isChosen,
      shown: () => this.pool.filter((line) => !line.hidden).map((line) => line.lnb),
      paint: this.paint,
    });
    const place = {
      state: this.state,
      page: () => Math.max(1, this.fits() - 1),
      moveTo: this.moveTo,
      widen: (/** @type {number} */ by) => this.widen(by),
    };
    gridKeys(this.element, Object.assign(keys, place));
    this.listen();
  }

  listen() {
    const { ctx, element, sight } = this;
    const scrolled = () => {
      const before = this.state.top;
      sight.read();
      this.state.down = this.topNow() >= before;
      this.paint();
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    const turn = (/** @type {WheelEvent} */ event) => {
      if (!this.scroll.scaled || !event.deltaY || event.ctrlKey) return;
      event.preventDefault();
      const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / this.rowHeight;
      this.scrollToRow(this.state.top + Math.sign(rows) * Math.max(1, Math.abs(rows)));
    };
    element.addEventListener("wheel", turn, { passive: false });
    ctx.onClose(
      onResize(element, () => {
        const was = sight.width > 0 && this.wasInSight();
        // A pane that opens beside the grid must not push the chosen cell out of sight.
        if (sight.read() && was) this.bringIntoSight();
        atOnce(this.paint);
      }),
    );
    // A kernel that was busy answers late: what could not be asked for is asked for then.
    ctx.onClose(ctx.kernel.onState(() => this.paint()));
    ctx.onClose(() => {
      clearTimeout(this.hold.timer);
      this.paint.cancel();
    });
  }

  paintNow() {
    const { state, sight, sizes, widths, spacer, layer } = this;
    this.options.before?.();
    if (!sight.width && !sight.read()) return;
    this.learnWidths();
    const room = sight.height - sizes.head;
    this.scroll.set(state.numRows, room);
    state.top = this.topNow();
    const first = Math.floor(state.top);
    const last = Math.min(state.numRows, Math.ceil(state.top + room / this.rowHeight));
    const pinned = this.numStuck();
    const stuck = widths.left(pinned);
    const [from, to] = widths.visible(
      sight.left + stuck,
      sight.width - sizes.gutter - stuck,
      state.numColumns,
    );
    const columns = [...range(0, pinned), ...range(from, to)];
    layer.style.width = `${sight.width}px`;
    layer.style.height = `${sight.height}px`;
    spacer.style.width = `${sizes.gutter + widths.total(state.numColumns)}px`;
    this.stretch();
    // What is missing is asked for first: the kernel reads while the rest is painted.
    if (last > first && to > from)
      this.store.want([first, last], [from, to], state.down, state.numRows, pinned);
    if (this.holds(first, last)) return;
    this.paintHead(columns, { xOf: this.xOf, pinned, gutter: sizes.gutter, here: state.column });
    this.paintRows(first, last, columns);
    this.options.painted({ first, last, from, to, columns });
  }

  /** Make what is scrolled as high as all rows are. */
  stretch() {
    const height = this.scroll.height + this.sizes.head - this.sight.height;
    this.spacer.style.height = `${Math.max(height, 0)}px`;
  }

  /** Make all rows as high as that; the first one in sight stays. @param {number} pixels */
  setRowHeight(pixels) {
    if (pixels === this.rowHeight) return;
    const { top, numRows } = this.state;
    this.rowHeight = pixels;
    this.scroll = scrollMap(pixels);
    this.scroll.set(numRows, this.sight.height - this.sizes.head);
    this.element.style.setProperty("--lnb-row-height", `${pixels}px`);
    this.element.classList.toggle("lnb-tall", pixels > ROW);
    this.stretch();
    if (top) this.scrollToRow(top);
    this.refill();
  }

  /** Pinned columns that leave room for others. */
  numStuck() {
    const most = 0.7 * (this.sight.width - this.sizes.gutter);
    let count = Math.min(this.state.pinned, this.state.numColumns);
    while (count && this.widths.left(count) > most) count -= 1;
    return count;
  }

  stuckWidth = () => this.widths.left(this.numStuck());

  /** Where a column begins, in pixels of what is in sight. @param {number} index */
  xOf = (index) =>
    this.sizes.gutter + this.widths.left(index) - (index < this.numStuck() ? 0 : this.sight.left);

  /**
   * Whether what is shown stays a moment longer: of the rows in sight none is here, and they are on
   * their way. To paint that nothing is here yet takes the page as long as to paint what comes.
   * @param {number} first @param {number} last
   */
  holds(first, last) {
    const comes =
      last > first && this.store.waits && !this.store.pageOf(first) && !this.store.pageOf(last - 1);
    if (comes && !this.hold.over && this.pool.length) {
      this.hold.timer ||= setTimeout(() => {
        Object.assign(this.hold, { timer: undefined, over: true });
        this.paint();
      }, HOLD_MS);
      return true;
    }
    clearTimeout(this.hold.timer);
    Object.assign(this.hold, { timer: undefined, over: comes });
    return false;
  }

  /**
   * Fit columns to the pages that came: the chosen cell stays in sight when others before it, or
   * it, change.
   */
  learnWidths() {
    const { state, widths, sizes } = this;
    const [before, width] = [widths.left(state.column), widths.of(state.column)];
    const wasFocused = this.unlearned.length > 0 && before > 0 && this.wasInSight();
    for (const page of this.unlearned.splice(0)) widths.learn(page);
    const stays = widths.left(state.column) === before && widths.of(state.column) === width;
    if (!wasFocused || stays) return;
    this.spacer.style.width = `${sizes.gutter + widths.total(state.numColumns)}px`;
    this.bringColumn();
  }

  /** Among millions of rows one pixel is many rows: a place that was asked for exactly is kept. */
  topNow() {
    const { state, sight } = this;
    if (state.exact && Math.abs(state.exact.pixels - sight.top) <= 1) return state.exact.top;
    state.exact = null;
    return this.scroll.topOf(sight.top);
  }

  /** @param {number} first @param {number} last @param {number[]} columns in sight */
  paintRows(first, last, columns) {
    while (this.pool.length < last - first) {
      const line = h(
        "div",
        { class: "lnb-grid-row", role: "row" },
        h("div", { class: "lnb-grid-number", role: "rowheader" }),
      );
      this.pool.push(line);
      this.body.append(line);
    }
    const used = new Set();
    const places = columns.map((index) => `translateX(${this.xOf(index)}px)`);
    const stuck = this.numStuck();
    for (let row = first; row < last; row += 1) {
      const line = this.pool[row % this.pool.length];
      used.add(line);
      this.paintRow(line, row, columns, places, stuck);
    }
    for (const line of this.pool) {
      if (used.has(line) || line.hidden) continue;
      line.hidden = true;
      for (const cell of [...line.children].slice(1)) retire(/** @type {Lnb.Recycled} */ (cell));
    }
    this.element.setAttribute(
      "aria-activedescendant",
      `${this.uid}-${this.state.row}-${this.state.column}`,
    );
  }

  /**
   * @param {Lnb.Recycled} line @param {number} row @param {number[]} columns
   * @param {string[]} places of the columns @param {number} stuck
   */
  paintRow(line, row, columns, places, stuck) {
    const { text, words = "", look: tint, chosen = null } = this.options.row(row);
    const number = /** @type {HTMLElement} */ (line.firstElementChild);
    line.lnb = row;
    line.hidden = false;
    line.className = `lnb-grid-row ${tint}${row === this.state.row ? " lnb-current" : ""}`;
    line.style.transform = `translateY(${(row - this.state.top) * this.rowHeight}px)`;
    line.setAttribute("aria-rowindex", String(row + 2));
    if (chosen !== null) line.setAttribute("aria-selected", String(chosen));
    number.style.width = `${this.sizes.gutter}px`;
    if (words) number.setAttribute("aria-label", words);
    setText(number, text);
    const numColumns = columns.length;
    while (line.children.length - 1 < numColumns)
      line.append(h("div", { class: "lnb-cell", role: "gridcell" }));
    for (let cellIndex = 1; cellIndex < line.children.length; cellIndex += 1) {
      const cell = /** @type {Lnb.Recycled} */ (line.children[cellIndex]);
      if (cellIndex > numColumns) {
        retire(cell);
        continue;
      }
      const index = columns[cellIndex - 1];
      cell.hidden = false;
      this.paintCell(cell, row, index, index < stuck);
      cell.style.transform = places[cellIndex - 1];
      cell.style.width = `${this.widths.of(index)}px`;
    }
  }

  /**
   * @param {Lnb.Recycled} cell @param {number} row @param {number} index
   * @param {boolean} isStuck
   */
  paintCell(cell, row, index, isStuck) {
    const key = `${this.state.seen}:${row}:${index}`;
    if (cell.lnb?.key !== key || !cell.lnb.filled) {
      cell.lnb = {
        key,
        row,
        index,
        ...this.fill(cell, this.store.cell(row, index), this.store.column(index), row, index),
      };
      if (cell.lnb.hint) setAttribute(cell, "title", cell.lnb.hint);
      else cell.removeAttribute("title");
      cell.id = `${this.uid}-${row}-${index}`;
      cell.setAttribute("aria-colindex", String(index + 2));
    }
    const marker = row === this.state.row && index === this.state.column ? " lnb-here" : "";
    const stuck = isStuck ? " lnb-pinned" : "";
    const chosen = this.isChosen(index) ? " lnb-chosen" : "";
    const marks = this.options.mark?.(row, index) ?? "";
    cell.className = `lnb-cell ${cell.lnb.look}${marker}${chosen}${stuck}${marks}`;
  }

  /** Rows that fit whole. */
  fits = () => Math.max(1, Math.floor((this.sight.height - this.sizes.head) / this.rowHeight));

  /** @param {number} row @param {number} column */
  moveTo = (row, column) => {
    const { state } = this;
    state.row = Math.max(0, Math.min(state.numRows - 1, row));
    state.column = Math.max(0, Math.min(state.numColumns - 1, column));
    this.bringIntoSight();
    this.ctx.announce(this.options.said(state.row, state.column));
    this.paint();
  };

  /** Whether the cell of the keyboard was whole in sight when the grid was painted last. */
  wasInSight() {
    const { state, sight, sizes, widths } = this;
    const left = widths.left(state.column);
    const right = left + widths.of(state.column);
    return (
      state.row >= state.top &&
      state.row + 0.99 <= state.top + (sight.height - sizes.head) / this.rowHeight &&
      (state.column < this.numStuck() ||
        (left - this.stuckWidth() >= sight.left - 1 &&
          right <= sight.left + sight.width - sizes.gutter + 1))
    );
  }

  bringIntoSight() {
    const { row, top } = this.state;
    if (row < Math.ceil(top)) this.scrollToRow(row);
    else if (row >= Math.floor(top) + this.fits()) this.scrollToRow(row - this.fits() + 1);
    this.bringColumn();
  }

  bringColumn() {
    const { state, sight, sizes, widths } = this;
    if (state.column < this.numStuck()) return;
    const least = widths.left(state.column) - this.stuckWidth();
    const right = widths.left(state.column) + widths.of(state.column);
    const room = sight.width - sizes.gutter;
    if (least < sight.left) sight.to({ left: least });
    else if (right > sight.left + room) sight.to({ left: right - room });
  }

  /** @param {number} top */
  scrollToRow(top) {
    const bounded = Math.max(0, Math.min(top, this.scroll.lastTop));
    const pixels = Math.round(this.scroll.pixelsOf(bounded));
    this.state.down = bounded >= this.state.top;
    this.state.exact = this.scroll.scaled ? { top: bounded, pixels } : null;
    if (pixels !== this.sight.top) this.sight.to({ top: pixels });
    this.paint();
  }

  /** @param {number} by */
  widen(by) {
    this.widths.set(this.state.column, this.widths.of(this.state.column) + by);
    this.paint();
  }

  /** A page arrived: fit columns to it. @param {Lnb.Page} page */
  learn(page) {
    this.unlearned.push(page);
    this.paint();
  }

  /** Put the values in all cells once more. */
  refill() {
    this.state.seen += 1;
    this.paint();
  }

  /**
   * How much there is; `anew`: other rows, what cells show is forgotten.
   * @param {number} numRows
   * @param {number} numColumns
   * @param {{anew?: boolean, gutter?: number, head?: number, pinned?: number}} how `pinned`
   *   columns stay on the left
   */
  size(numRows, numColumns, { anew = false, gutter, head, pinned = 0 } = {}) {
    Object.assign(this.state, { numRows, numColumns, pinned });
    if (gutter !== undefined) this.sizes.gutter = gutter;
    if (head !== undefined) this.sizes.head = head;
    if (anew) {
      this.hold.over = true; // what is shown is of other rows
      this.state.seen += 1;
      this.unlearned = [];
    }
    this.state.row = Math.min(this.state.row, Math.max(0, numRows - 1));
    this.state.column = Math.min(this.state.column, Math.max(0, numColumns - 1));
    this.element.style.setProperty("--lnb-head", `${this.sizes.head}px`);
    this.element.setAttribute("aria-rowcount", String(numRows + 1));
    this.element.setAttribute("aria-colcount", String(numColumns + 1));
    this.paint();
  }
}
