// A grid over any number of rows and columns: recycled elements for what is in sight, the scroll
// bar, the place of the keyboard. What the rows are, and what is done with them, is its caller's.

import { columnWidths, textMeasure } from "./column_widths.js";
import { atOnce, h, perFrame, setText } from "./dom.js";
import { fillCell, retire } from "./grid_cell.js";
import { gridHead } from "./grid_head.js";
import { gridKeys } from "./grid_keys.js";
import { scrollMap, scrollSight } from "./scroll_map.js";

const ROW = 28;
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
 *   row: number, index: number) => {filled: boolean, look: string}} [cell] puts a value in a cell
 * @property {() => void} [before] called before each painting
 * @property {(span: {first: number, last: number, from: number, to: number,
 *   columns: number[]}) => void} painted called after it; `columns` has the pinned ones, too
 * @property {(row: number, column: number) => string} said for screen readers
 * @property {Pick<import("./grid_keys.js").GridActions,
 *   "select" | "chooseColumn" | "open" | "openRow" | "letters" | "first">} keys
 */

/**
 * @param {Lnb.Context} ctx
 * @param {GridOptions} options
 */
export function virtualGrid(
  ctx,
  {
    label,
    look = "",
    store,
    gutter,
    head,
    titles,
    row: rowHead,
    isChosen = () => false,
    mark = () => "",
    cell: fill = fillCell,
    before = () => {},
    painted,
    said,
    keys,
  },
) {
  const uid = `lnb-grid${(instances += 1)}`;
  const body = h("div", { class: "lnb-grid-body", role: "rowgroup" });
  const headRow = h("div", { class: "lnb-grid-head", role: "row", "aria-rowindex": "1" });
  const layer = h(
    "div",
    { class: "lnb-grid-layer" },
    h("div", { role: "rowgroup" }, headRow),
    body,
  );
  const spacer = h("div", { class: "lnb-grid-spacer" });
  const scroller = h(
    "div",
    { class: `lnb-grid ${look}`, role: "grid", tabindex: "0", "aria-label": label },
    layer,
    spacer,
  );
  const scroll = scrollMap(ROW);
  const widths = columnWidths(textMeasure(scroller));
  /**
   * @type {{numRows: number, numColumns: number, pinned: number, row: number, column: number,
   *   top: number, down: boolean, seen: number, exact: {top: number, pixels: number} | null}}
   */
  const state = {
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
  const sizes = { gutter, head };
  const sight = scrollSight(scroller);
  /** @type {{timer: ReturnType<typeof setTimeout> | undefined, over: boolean}} */
  const hold = { timer: undefined, over: false };
  /** @type {Lnb.Recycled[]} */
  const pool = [];
  /** @type {Lnb.Page[]} */
  let unlearned = []; // pages that column widths are not fitted to yet: that needs fonts
  const inSight = () => pool.filter((line) => !line.hidden).map((line) => line.lnb);
  const paintHead = gridHead(headRow, {
    store,
    widths,
    titles,
    isChosen,
    shown: inSight,
    paint: () => paint(),
  });

  const paint = perFrame(() => {
    before();
    if (!sight.width && !sight.read()) return;
    learnWidths();
    const room = sight.height - sizes.head;
    scroll.set(state.numRows, room);
    state.top = topNow();
    const first = Math.floor(state.top);
    const last = Math.min(state.numRows, Math.ceil(state.top + room / ROW));
    const { left } = sight;
    const stuck = stuckWidth();
    const [from, to] = widths.visible(
      left + stuck,
      sight.width - sizes.gutter - stuck,
      state.numColumns,
    );
    const columns = [...range(0, numStuck()), ...range(from, to)];
    layer.style.width = `${sight.width}px`;
    layer.style.height = `${sight.height}px`;
    spacer.style.width = `${sizes.gutter + widths.total(state.numColumns)}px`;
    spacer.style.height = `${Math.max(scroll.height + sizes.head - sight.height, 0)}px`;
    // What is missing is asked for first: the kernel reads while the rest is painted.
    if (last > first && to > from)
      store.want([first, last], [from, to], state.down, state.numRows, numStuck());
    if (holds(first, last)) return;
    const place = { xOf, pinned: numStuck(), gutter: sizes.gutter, here: state.column };
    paintHead(columns, place);
    paintRows(first, last, columns);
    painted({ first, last, from, to, columns });
  });

  /** Pinned columns that leave room for others. */
  function numStuck() {
    const most = 0.7 * (sight.width - sizes.gutter);
    let count = Math.min(state.pinned, state.numColumns);
    while (count && widths.left(count) > most) count -= 1;
    return count;
  }
  const stuckWidth = () => widths.left(numStuck());

  /** Where a column begins, in pixels of what is in sight. @param {number} index */
  const xOf = (index) => sizes.gutter + widths.left(index) - (index < numStuck() ? 0 : sight.left);

  /**
   * Whether what is shown stays a moment longer: of the rows in sight none is here, and they are on
   * their way. To paint that nothing is here yet takes the page as long as to paint what comes.
   * @param {number} first @param {number} last
   */
  function holds(first, last) {
    const comes = last > first && store.waits && !store.pageOf(first) && !store.pageOf(last - 1);
    if (comes && !hold.over && pool.length) {
      hold.timer ||= setTimeout(() => {
        Object.assign(hold, { timer: undefined, over: true });
        paint();
      }, HOLD_MS);
      return true;
    }
    clearTimeout(hold.timer);
    Object.assign(hold, { timer: undefined, over: comes });
    return false;
  }

  /**
   * Fit columns to the pages that came: the chosen cell stays in sight when others before it, or
   * it, change.
   */
  function learnWidths() {
    const [before, width] = [widths.left(state.column), widths.of(state.column)];
    const wasFocused = unlearned.length > 0 && before > 0 && wasInSight();
    for (const page of unlearned.splice(0)) widths.learn(page);
    if (!wasFocused || (widths.left(state.column) === before && widths.of(state.column) === width))
      return;
    spacer.style.width = `${sizes.gutter + widths.total(state.numColumns)}px`;
    bringColumn();
  }

  /** Among millions of rows one pixel is many rows: a place that was asked for exactly is kept. */
  function topNow() {
    if (state.exact && Math.abs(state.exact.pixels - sight.top) <= 1) return state.exact.top;
    state.exact = null;
    return scroll.topOf(sight.top);
  }

  /** @param {number} first @param {number} last @param {number[]} columns in sight */
  function paintRows(first, last, columns) {
    while (pool.length < last - first) {
      const line = h(
        "div",
        { class: "lnb-grid-row", role: "row" },
        h("div", { class: "lnb-grid-number", role: "rowheader" }),
      );
      pool.push(line);
      body.append(line);
    }
    const used = new Set();
    const places = columns.map((index) => `translateX(${xOf(index)}px)`);
    const stuck = numStuck();
    for (let row = first; row < last; row += 1) {
      const line = pool[row % pool.length];
      used.add(line);
      paintRow(line, row, columns, places, stuck);
    }
    for (const line of pool) {
      if (used.has(line) || line.hidden) continue;
      line.hidden = true;
      for (const cell of [...line.children].slice(1)) retire(/** @type {Lnb.Recycled} */ (cell));
    }
    scroller.setAttribute("aria-activedescendant", `${uid}-${state.row}-${state.column}`);
  }

  /**
   * @param {Lnb.Recycled} line @param {number} row @param {number[]} columns
   * @param {string[]} places of the columns @param {number} stuck
   */
  function paintRow(line, row, columns, places, stuck) {
    const { text, words = "", look: tint, chosen = null } = rowHead(row);
    const number = /** @type {HTMLElement} */ (line.firstElementChild);
    line.lnb = row;
    line.hidden = false;
    line.className = `lnb-grid-row ${tint}${row === state.row ? " lnb-current" : ""}`;
    line.style.transform = `translateY(${(row - state.top) * ROW}px)`;
    line.setAttribute("aria-rowindex", String(row + 2));
    if (chosen !== null) line.setAttribute("aria-selected", String(chosen));
    number.style.width = `${sizes.gutter}px`;
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
      paintCell(cell, row, index, index < stuck);
      cell.style.transform = places[cellIndex - 1];
      cell.style.width = `${widths.of(index)}px`;
    }
  }

  /**
   * @param {Lnb.Recycled} cell @param {number} row @param {number} index
   * @param {boolean} isStuck
   */
  function paintCell(cell, row, index, isStuck) {
    const key = `${state.seen}:${row}:${index}`;
    if (cell.lnb?.key !== key || !cell.lnb.filled) {
      cell.lnb = {
        key,
        row,
        index,
        ...fill(cell, store.cell(row, index), store.column(index), row, index),
      };
      cell.id = `${uid}-${row}-${index}`;
      cell.setAttribute("aria-colindex", String(index + 2));
    }
    const marker = row === state.row && index === state.column ? " lnb-here" : "";
    const stuck = isStuck ? " lnb-pinned" : "";
    const chosen = isChosen(index) ? " lnb-chosen" : "";
    cell.className = `lnb-cell ${cell.lnb.look}${marker}${chosen}${stuck}${mark(row, index)}`;
  }

  /** Rows that fit whole. */
  const fits = () => Math.max(1, Math.floor((sight.height - sizes.head) / ROW));

  /** @param {number} row @param {number} column */
  function moveTo(row, column) {
    state.row = Math.max(0, Math.min(state.numRows - 1, row));
    state.column = Math.max(0, Math.min(state.numColumns - 1, column));
    bringIntoSight();
    ctx.announce(said(state.row, state.column));
    paint();
  }

  /** Whether the cell of the keyboard was whole in sight when the grid was painted last. */
  function wasInSight() {
    const right = widths.left(state.column) + widths.of(state.column);
    return (
      state.row >= state.top &&
      state.row + 0.99 <= state.top + (sight.height - sizes.head) / ROW &&
      (state.column < numStuck() ||
        (widths.left(state.column) - stuckWidth() >= sight.left - 1 &&
          right <= sight.left + sight.width - sizes.gutter + 1))
    );
  }

  function bringIntoSight() {
    if (state.row < Math.ceil(state.top)) scrollToRow(state.row);
    else if (state.row >= Math.floor(state.top) + fits()) scrollToRow(state.row - fits() + 1);
    bringColumn();
  }

  function bringColumn() {
    if (state.column < numStuck()) return;
    const left = widths.left(state.column);
    const room = sight.width - sizes.gutter;
    const least = left - stuckWidth();
    if (least < sight.left) sight.to({ left: least });
    else if (left + widths.of(state.column) > sight.left + room)
      sight.to({ left: left + widths.of(state.column) - room });
  }

  /** @param {number} top */
  function scrollToRow(top) {
    const bounded = Math.max(0, Math.min(top, scroll.lastTop));
    const pixels = Math.round(scroll.pixelsOf(bounded));
    state.down = bounded >= state.top;
    state.exact = scroll.scaled ? { top: bounded, pixels } : null;
    if (pixels !== sight.top) sight.to({ top: pixels });
    paint();
  }

  scroller.addEventListener(
    "scroll",
    () => {
      const before = state.top;
      sight.read();
      state.down = topNow() >= before;
      paint();
    },
    { passive: true },
  );
  scroller.addEventListener(
    "wheel",
    (event) => {
      if (!scroll.scaled || !event.deltaY || event.ctrlKey) return;
      event.preventDefault();
      const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW;
      scrollToRow(state.top + Math.sign(rows) * Math.max(1, Math.abs(rows)));
    },
    { passive: false },
  );
  /** @param {number} by */
  const widen = (by) => {
    widths.set(state.column, widths.of(state.column) + by);
    paint();
  };
  gridKeys(
    scroller,
    Object.assign(keys, { state, page: () => Math.max(1, fits() - 1), moveTo, widen }),
  );
  const observer = new ResizeObserver(() => {
    const was = sight.width > 0 && wasInSight();
    // A pane that opens beside the grid must not push the chosen cell out of sight.
    if (sight.read() && was) bringIntoSight();
    atOnce(paint);
  });
  observer.observe(scroller);
  // A kernel that was busy answers late: what could not be asked for is asked for then.
  ctx.onClose(ctx.kernel.onState(() => paint()));
  ctx.onClose(() => {
    observer.disconnect();
    clearTimeout(hold.timer);
    paint.cancel();
  });

  return {
    element: scroller,
    body,
    state,
    paint,
    moveTo,
    /** Scroll to `{left, top}`, in pixels. */
    scrollTo: sight.to,
    /** A page arrived: fit columns to it. @param {Lnb.Page} page */
    learn(page) {
      unlearned.push(page);
      paint();
    },
    /** Put the values in all cells once more. */
    refill() {
      state.seen += 1;
      paint();
    },
    /**
     * How much there is; `anew`: other rows, what cells show is forgotten.
     * @param {number} numRows
     * @param {number} numColumns
     * @param {{anew?: boolean, gutter?: number, head?: number, pinned?: number}} how `pinned`
     *   columns stay on the left
     */
    size(
      numRows,
      numColumns,
      { anew = false, gutter: wide = sizes.gutter, head: tall = sizes.head, pinned = 0 } = {},
    ) {
      Object.assign(state, { numRows, numColumns, pinned });
      Object.assign(sizes, { gutter: wide, head: tall });
      if (anew) {
        hold.over = true; // what is shown is of other rows
        state.seen += 1;
        unlearned = [];
      }
      state.row = Math.min(state.row, Math.max(0, numRows - 1));
      state.column = Math.min(state.column, Math.max(0, numColumns - 1));
      scroller.style.setProperty("--lnb-head", `${tall}px`);
      scroller.setAttribute("aria-rowcount", String(numRows + 1));
      scroller.setAttribute("aria-colcount", String(numColumns + 1));
      paint();
    },
  };
}
