// What the grid knows of edits: ranges of cells, marks of what is edited, and the editor, whose
// module is loaded with the first edit.

import { button, copyText, h, plural, setText } from "../js/dom.js";
import { commands } from "../js/grid_keys.js";
import { loadViews } from "../js/tab_host.js";

const AROUND = 60; // rows beside those in sight whose marks are read, too
const MOST = 500; // see editing/widget.py

/**
 * @typedef {{row: number, column: number}} Spot
 * @typedef {{row: number, rows: number, column: number, columns: number}} Block
 * @typedef {{at: number, deleted: boolean, cells: Record<string, string | null>}} Mark
 * @typedef {{open: (row: number, column: number, typed?: string | null) => void,
 *   key: (event: KeyboardEvent) => (() => void) | null | undefined,
 *   changed: (summary: Lnb.Json, added: Lnb.Json[]) => void, enter: () => Promise<void>,
 *   leave: () => void}} Editor
 */

export class GridEdits {
  /** @type {{anchor: Spot, to: Spot} | null} */
  range = null;
  /** @type {Map<number, Mark>} */
  marks = new Map();
  read = { first: 0, stop: 0 };
  /** @type {Lnb.Json} */
  summary = null;
  /** @type {Editor | null} loaded with the first edit */
  editor = null;
  isOn = false;
  turn = 0;
  bar = h("div", { class: "lnb-edit-bar", hidden: true });
  last = { first: 0, last: 0 };
  /** @type {Record<string, [number, number]>} */
  arrows = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };

  /**
   * @param {Lnb.Context} ctx
   * @param {{grid: import("../js/virtual_grid.js").VirtualGrid,
   *   store: Lnb.PageStore, fail: (error: Lnb.Failure) => void}} from
   */
  constructor(ctx, { grid, store, fail }) {
    this.ctx = ctx;
    this.grid = grid;
    this.store = store;
    this.fail = fail;
    this.button = button("Edit", () => (this.isOn ? this.leave() : this.enter()), {
      class: "lnb-link lnb-edit-toggle",
      hidden: true,
      "aria-pressed": "false",
      title: "edit cells, add and delete rows (F2)",
    });
    ctx.onClose(
      ctx.kernel.onState((state) => {
        this.button.hidden = state !== "live" || !ctx.has("stage");
        if (this.button.hidden && this.isOn) this.leave();
      }),
    );
  }

  place = () => ({ ...this.ctx.place(), ...this.ctx.rows.query });

  /** @param {{anchor: Spot, to: Spot}} of @returns {Block} */
  blockOf = ({ anchor, to }) => ({
    row: Math.min(anchor.row, to.row),
    rows: Math.abs(anchor.row - to.row) + 1,
    column: Math.min(anchor.column, to.column),
    columns: Math.abs(anchor.column - to.column) + 1,
  });

  /** @returns {Block} */
  block = () => {
    const { row, column } = this.grid.state;
    return this.range ? this.blockOf(this.range) : { row, rows: 1, column, columns: 1 };
  };

  /** @param {Spot} to */
  extend(to) {
    const { row, column } = this.grid.state;
    this.range = { anchor: this.range?.anchor ?? { row, column }, to };
    this.ctx.rows.selection.clear(); // an act is on the rows or on the block, never on both
    this.grid.moveTo(to.row, to.column);
    const { rows, columns } = this.blockOf(this.range);
    this.ctx.announce(`${plural(rows, "row")} by ${plural(columns, "column")} of cells selected`);
  }

  clear() {
    if (!this.range) return;
    this.range = null;
    this.grid.paint();
  }

  copy = async () => {
    try {
      const { result } = await this.ctx.kernel.ask("edit.copy", {
        ...this.place(),
        ...this.block(),
      });
      const done = await copyText(result.text);
      const { rows, columns } = this.block();
      this.ctx.announce(
        done
          ? `${plural(rows * columns, "cell")} copied`
          : "The browser does not allow this page to copy.",
      );
    } catch (error) {
      this.fail(/** @type {Lnb.Failure} */ (error));
    }
  };

  /** Read the marks around the rows in sight. @param {number} first @param {number} last */
  async load(first, last) {
    this.turn += 1;
    const mine = this.turn;
    const start = Math.max(0, first - AROUND);
    const count = Math.min(MOST, last - start + AROUND);
    this.read = { first: start, stop: start + count };
    try {
      const args = { ...this.place(), first: start, count };
      const { result } = await this.ctx.kernel.ask("edit.marks", args, { quiet: true });
      if (mine !== this.turn) return;
      const had = this.marks.size > 0 || this.summary !== null;
      this.marks = new Map(result.rows.map((/** @type {Mark} */ mark) => [mark.at, mark]));
      this.summary = result.summary;
      setText(this.button, this.summary && !this.isOn ? `Edit (${this.summary.title})` : "Edit");
      this.editor?.changed(this.summary, result.added);
      if (had || this.summary) this.grid.refill();
      // they are to be seen, undone and committed
      if (this.summary && !this.editor) this.enter({ quiet: true });
    } catch {
      // Marks are drawn when they are asked for again; what is edited is in the Stage tab.
    }
  }

  /** Stage that a row, or the selected rows, are deleted. @param {number} row */
  async stageDeletion(row) {
    const { ranges } = this.ctx.rows.selection.wanted();
    try {
      const args = { ...this.place(), ranges: ranges.length ? ranges : [[row, row + 1]] };
      const { result } = await this.ctx.kernel.ask("edit.delete", args);
      await this.refresh();
      this.ctx.announce(result.summary?.title ?? "No edits");
    } catch (error) {
      this.fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  refresh = () => this.load(this.last.first, this.last.last);

  /** @param {{quiet?: boolean}} [how] `quiet`: nobody asked for it, the keyboard stays */
  async enter({ quiet = false } = {}) {
    if (!this.ctx.has("stage")) return false;
    this.isOn = true;
    this.button.setAttribute("aria-pressed", "true");
    setText(this.button, "Edit");
    this.bar.hidden = false;
    try {
      if (!this.editor) {
        const views = await loadViews(this.ctx.kernel, "editing/row_editor.js");
        const mount = /** @type {(...args: unknown[]) => Editor} */ (views.mount);
        this.editor = mount(this.bar, this.ctx, this);
        await this.refresh();
      }
      await this.editor.enter();
      if (!quiet) this.grid.element.focus({ preventScroll: true });
    } catch (error) {
      this.editor = null;
      this.leave();
      this.fail(/** @type {Lnb.Failure} */ (error));
      return false;
    }
    return true;
  }

  leave = () => {
    this.isOn = false;
    this.bar.hidden = true;
    this.button.setAttribute("aria-pressed", "false");
    setText(this.button, this.summary ? `Edit (${this.summary.title})` : "Edit");
    this.editor?.leave();
    this.grid.element.focus({ preventScroll: true });
  };

  /** @param {number} row @param {number} column */
  moveTo(row, column) {
    this.range = null;
    this.grid.moveTo(row, column);
  }

  /** @param {number} row @param {number} column @param {string | null} [typed] */
  async open(row, column, typed = null) {
    this.grid.moveTo(row, column);
    if (this.isOn || (await this.enter())) this.editor?.open(row, column, typed);
  }

  /**
   * Keys of ranges and edits; what is none is left to the grid.
   * @param {KeyboardEvent} event @returns {(() => void) | null | undefined}
   */
  key(event) {
    const { row, column, numRows, numColumns } = this.grid.state;
    if (!numRows) return undefined;
    const arrow = this.arrows[event.key];
    const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (arrow && event.shiftKey && !event.altKey && (this.isOn || this.range || sideways)) {
      const to = this.range?.to ?? { row, column };
      const far = commands(event) ? 1e12 : 1;
      const next = (
        /** @type {number} */ index,
        /** @type {number} */ by,
        /** @type {number} */ end,
      ) => Math.max(0, Math.min(end - 1, index + by * far));
      return () =>
        this.extend({
          row: next(to.row, arrow[0], numRows),
          column: next(to.column, arrow[1], numColumns),
        });
    }
    if (this.range && commands(event) && event.key === "c") return this.copy;
    if (event.key === "F2" && !this.button.hidden) return () => this.open(row, column);
    const mine = this.isOn ? this.editor?.key(event) : undefined;
    if (!mine && (arrow || ["Home", "End", "PageUp", "PageDown"].includes(event.key))) this.clear();
    return mine;
  }

  /** Whether a block of cells is selected. */
  get hasBlock() {
    return this.range !== null;
  }

  /** Whether a double click edits: where nothing can be written, it shows the whole value. */
  get edits() {
    return !this.button.hidden && this.ctx.screen().locked === false;
  }

  /** Begin or extend a range by the mouse. @param {number} row @param {number} column */
  drag(row, column) {
    this.extend({ row, column });
  }

  /** Other rows are shown. */
  reset() {
    this.range = null;
    this.marks = new Map();
    this.read = { first: 0, stop: 0 };
  }

  /** The rows in sight: marks are read where there are edits. */
  seen(/** @type {number} */ first, /** @type {number} */ stop) {
    Object.assign(this.last, { first, last: stop });
    if (this.summary && (first < this.read.first || stop > this.read.stop)) this.load(first, stop);
  }

  /** Look for edits that were made before, once the kernel has time. */
  look() {
    if (this.ctx.has("stage") && this.ctx.kernel.state === "live") this.refresh();
  }

  /** Classes of a cell. @param {number} row @param {number} column */
  mark(row, column) {
    const mark = this.marks.get(row);
    const name = mark ? this.store.column(column)?.raw : undefined;
    const changed = name !== undefined && mark && name in mark.cells ? " lnb-edited" : "";
    return this.holds(row, column) ? `${changed} lnb-in-range` : changed;
  }

  /** Whether a cell is in the selected block. @param {number} row @param {number} column */
  holds(row, column) {
    if (!this.range) return false;
    const of = this.blockOf(this.range);
    return (
      row >= of.row &&
      row < of.row + of.rows &&
      column >= of.column &&
      column < of.column + of.columns
    );
  }

  /** Whether a row is to be deleted. @param {number} row */
  isDeleted = (row) => this.marks.get(row)?.deleted === true;

  /**
   * Put the new value of an edited cell in its place.
   * @param {Lnb.Recycled} cell @param {Lnb.Column | undefined} column @param {number} row
   * @returns {{filled: boolean, look: string} | null}
   */
  fill(cell, column, row) {
    const mark = this.marks.get(row);
    if (!mark || !column || !(column.raw in mark.cells)) return null;
    const text = mark.cells[column.raw];
    cell.replaceChildren(text ?? "null");
    const right = column.look === "number" ? " lnb-right" : "";
    return { filled: true, look: `lnb-look-${text === null ? "null" : "text"}${right}` };
  }
}
