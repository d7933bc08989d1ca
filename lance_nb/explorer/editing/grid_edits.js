// What the grid knows of edits: ranges of cells, marks of what is edited, and the editor, whose
// module is loaded with the first edit.

import { copyText, h, plural, setText } from "../js/dom.js";
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
 * @typedef {Object} EditLink what the editor gets
 * @property {() => Lnb.Args} place the version and what the grid looks at
 * @property {() => Block} block the cells that are selected, or the one of the keyboard
 * @property {(row: number, column: number) => void} moveTo
 * @property {HTMLElement} scroller @property {HTMLElement} body
 * @property {{row: number, column: number, numRows: number, numColumns: number}} state
 * @property {(column: number) => Lnb.Column | undefined} column
 * @property {() => Promise<void>} refresh reads the marks again
 * @property {() => void} left the editor was closed
 * @property {Editor} [editor] set by the editor
 */

/**
 * @param {Lnb.Context} ctx
 * @param {{grid: () => ReturnType<typeof import("../js/virtual_grid.js").virtualGrid>,
 *   store: Lnb.PageStore, fail: (error: Lnb.Failure) => void}} from
 */
export function gridEdits(ctx, { grid, store, fail }) {
  /** @type {{anchor: Spot, to: Spot} | null} */
  let range = null;
  /** @type {Map<number, Mark>} */
  let marks = new Map();
  let read = { first: 0, stop: 0 };
  /** @type {Lnb.Json} */
  let summary = null;
  /** @type {EditLink | null} */
  let link = null;
  let isOn = false;
  let tried = false;
  let turn = 0;
  const bar = h("div", { class: "lnb-edit-bar", hidden: true });
  const button = h(
    "button",
    {
      class: "lnb-link lnb-edit-toggle",
      type: "button",
      hidden: true,
      "aria-pressed": "false",
      title: "edit cells, add and delete rows (F2)",
      on: { click: () => (isOn ? leave() : enter()) },
    },
    "Edit",
  );
  const place = () => ({
    branch: ctx.screen().branch,
    version: ctx.screen().version,
    ...ctx.rows.lens,
  });

  /** @param {{anchor: Spot, to: Spot}} of @returns {Block} */
  const blockOf = ({ anchor, to }) => ({
    row: Math.min(anchor.row, to.row),
    rows: Math.abs(anchor.row - to.row) + 1,
    column: Math.min(anchor.column, to.column),
    columns: Math.abs(anchor.column - to.column) + 1,
  });

  /** @returns {Block} */
  function block() {
    const { row, column } = grid().state;
    return range ? blockOf(range) : { row, rows: 1, column, columns: 1 };
  }

  /** @param {Spot} to */
  function extend(to) {
    const { row, column } = grid().state;
    range = { anchor: range?.anchor ?? { row, column }, to };
    ctx.rows.selection.clear(); // an act is on the rows or on the block, never on both
    grid().moveTo(to.row, to.column);
    const { rows, columns } = blockOf(range);
    ctx.announce(`${plural(rows, "row")} by ${plural(columns, "column")} of cells selected`);
  }

  function clear() {
    if (!range) return;
    range = null;
    grid().paint();
  }

  async function copy() {
    try {
      const { result } = await ctx.kernel.ask("edit.copy", { ...place(), ...block() });
      const done = await copyText(result.text);
      const { rows, columns } = block();
      ctx.announce(
        done
          ? `${plural(rows * columns, "cell")} copied`
          : "The browser does not allow this page to copy.",
      );
    } catch (error) {
      fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  /** Read the marks around the rows in sight. @param {number} first @param {number} last */
  async function load(first, last) {
    turn += 1;
    const mine = turn;
    const start = Math.max(0, first - AROUND);
    const count = Math.min(MOST, last - start + AROUND);
    read = { first: start, stop: start + count };
    try {
      const args = { ...place(), first: start, count };
      const { result } = await ctx.kernel.ask("edit.marks", args, { quiet: true });
      if (mine !== turn) return;
      const had = marks.size > 0 || summary !== null;
      marks = new Map(result.rows.map((/** @type {Mark} */ mark) => [mark.at, mark]));
      summary = result.summary;
      setText(button, summary && !isOn ? `Edit (${summary.title})` : "Edit");
      link?.editor?.changed(summary, result.added);
      if (had || summary) grid().refill();
      if (summary && !link) enter({ quiet: true }); // they are to be seen, undone and committed
    } catch {
      // Marks are drawn when they are asked for again; what is edited is in the Stage tab.
    }
  }

  const last = { first: 0, last: 0 };
  const refresh = () => load(last.first, last.last);

  /** @param {{quiet?: boolean}} [how] `quiet`: nobody asked for it, the keyboard stays */
  async function enter({ quiet = false } = {}) {
    if (!ctx.has("stage")) return false;
    isOn = true;
    button.setAttribute("aria-pressed", "true");
    setText(button, "Edit");
    bar.hidden = false;
    try {
      if (!link) {
        const views = await loadViews(ctx.kernel, "editing/row_editor.js", tried);
        const { element: scroller, body, state } = grid();
        link = {
          place,
          block,
          scroller,
          body,
          state,
          refresh,
          moveTo: (row, column) => {
            range = null;
            grid().moveTo(row, column);
          },
          column: (column) => store.column(column),
          left: leave,
        };
        const mount = /** @type {(...args: unknown[]) => unknown} */ (views.mount);
        mount(bar, ctx, link);
        await refresh();
      }
      await link.editor?.enter();
      if (!quiet) grid().element.focus({ preventScroll: true });
    } catch (error) {
      tried = true;
      link = null;
      leave();
      fail(/** @type {Lnb.Failure} */ (error));
      return false;
    }
    return true;
  }

  function leave() {
    isOn = false;
    bar.hidden = true;
    button.setAttribute("aria-pressed", "false");
    setText(button, summary ? `Edit (${summary.title})` : "Edit");
    link?.editor?.leave();
    grid().element.focus({ preventScroll: true });
  }

  /** @param {number} row @param {number} column @param {string | null} [typed] */
  async function open(row, column, typed = null) {
    grid().moveTo(row, column);
    if (isOn || (await enter())) link?.editor?.open(row, column, typed);
  }

  /** @type {Record<string, [number, number]>} */
  const arrows = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };

  /**
   * Keys of ranges and edits; what is none is left to the grid.
   * @param {KeyboardEvent} event @returns {(() => void) | null | undefined}
   */
  function key(event) {
    const { row, column, numRows, numColumns } = grid().state;
    if (!numRows) return undefined;
    const arrow = arrows[event.key];
    const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (arrow && event.shiftKey && !event.altKey && (isOn || range || sideways)) {
      const to = range?.to ?? { row, column };
      const far = commands(event) ? 1e12 : 1;
      const next = (
        /** @type {number} */ index,
        /** @type {number} */ by,
        /** @type {number} */ end,
      ) => Math.max(0, Math.min(end - 1, index + by * far));
      return () =>
        extend({
          row: next(to.row, arrow[0], numRows),
          column: next(to.column, arrow[1], numColumns),
        });
    }
    if (range && commands(event) && event.key === "c") return copy;
    if (event.key === "F2" && !button.hidden) return () => open(row, column);
    const mine = isOn ? link?.editor?.key(event) : undefined;
    if (!mine && (arrow || ["Home", "End", "PageUp", "PageDown"].includes(event.key))) clear();
    return mine;
  }

  ctx.onClose(
    ctx.kernel.onState((state) => {
      button.hidden = state !== "live" || !ctx.has("stage");
      if (button.hidden && isOn) leave();
    }),
  );

  return {
    bar,
    button,
    key,
    open,
    refresh,
    clear,
    /** Whether a block of cells is selected. */
    get hasBlock() {
      return range !== null;
    },
    /** Whether a double click edits: where nothing can be written, it shows the whole value. */
    get edits() {
      return !button.hidden && ctx.screen().locked === false;
    },
    /** Begin or extend a range by the mouse. @param {number} row @param {number} column */
    drag(row, column) {
      extend({ row, column });
    },
    /** Other rows are shown. */
    reset() {
      range = null;
      marks = new Map();
      read = { first: 0, stop: 0 };
    },
    /** The rows in sight: marks are read where there are edits. */
    seen(/** @type {number} */ first, /** @type {number} */ stop) {
      Object.assign(last, { first, last: stop });
      if (summary && (first < read.first || stop > read.stop)) load(first, stop);
    },
    /** Look for edits that were made before, once the kernel has time. */
    look() {
      if (ctx.has("stage") && ctx.kernel.state === "live") refresh();
    },
    /** Classes of a cell. @param {number} row @param {number} column */
    mark(row, column) {
      const mark = marks.get(row);
      const name = mark ? store.column(column)?.raw : undefined;
      const changed = name !== undefined && mark && name in mark.cells ? " lnb-edited" : "";
      if (!range) return changed;
      const of = blockOf(range);
      const inside =
        row >= of.row &&
        row < of.row + of.rows &&
        column >= of.column &&
        column < of.column + of.columns;
      return inside ? `${changed} lnb-in-range` : changed;
    },
    /** Whether a row is to be deleted. @param {number} row */
    isDeleted: (row) => marks.get(row)?.deleted === true,
    /**
     * Put the new value of an edited cell in its place.
     * @param {Lnb.Recycled} cell @param {Lnb.Column | undefined} column @param {number} row
     * @returns {{filled: boolean, look: string} | null}
     */
    fill(cell, column, row) {
      const mark = marks.get(row);
      if (!mark || !column || !(column.raw in mark.cells)) return null;
      const text = mark.cells[column.raw];
      cell.replaceChildren(text ?? "null");
      const right = column.look === "number" ? " lnb-right" : "";
      return { filled: true, look: `lnb-look-${text === null ? "null" : "text"}${right}` };
    },
  };
}
