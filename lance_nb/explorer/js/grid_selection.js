// What is selected in the grid: ranges of rows, and columns; sent to the kernel as it changes.

/** @typedef {[first: number, stop: number]} Range */

/**
 * @param {Lnb.Context} ctx @param {() => Lnb.Args} query
 * @param {(byHand: boolean) => void} changed `byHand`: a person selected rows or cleared them
 */
export function gridSelection(ctx, query, changed) {
  /** @type {Range[]} */
  let ranges = [];
  /** @type {Set<number>} */
  let columns = new Set();
  /** @type {number | null} the row that the last range extends from */
  let anchor = null;
  let end = -1; // the row that it was extended to

  function tell(byHand = false) {
    ctx.kernel.ask("select", arguments_()).catch((error) => ctx.announce(error.message));
    changed(byHand);
  }
  const arguments_ = () => ({ ranges, columns: [...columns].sort((a, b) => a - b), ...query() });
  /** @param {number} row */
  const holds = (row) => ranges.some(([first, stop]) => row >= first && row < stop);

  return {
    wanted: arguments_,
    row: holds,
    column: (/** @type {number} */ index) => columns.has(index),
    /** Rows selected in all. */
    get rows() {
      return ranges.reduce((sum, [first, stop]) => sum + stop - first, 0);
    },
    get columns() {
      return columns.size;
    },
    /**
     * Select a row; `extend` up to it, `add` it to what is selected; the only one again: none.
     * `from` is the row of the keyboard: a range extends from there where none was begun, and
     * where the keyboard `walks` away from the place that the last range was extended to.
     * @param {number} row
     * @param {{extend?: boolean, add?: boolean, from?: number, walks?: boolean}} how
     */
    select(row, { extend = false, add = false, from = row, walks = false } = {}) {
      const alone = ranges.length === 1 && ranges[0][0] === row && ranges[0][1] === row + 1;
      if (extend) {
        const start = anchor === null || (walks && end !== from) ? null : anchor;
        const first = start ?? from;
        const otherRanges = start === null ? [] : ranges.slice(0, -1);
        ranges = [...otherRanges, [Math.min(row, first), Math.max(row, first) + 1]];
        anchor = first;
      } else {
        const drops = add ? holds(row) : alone;
        if (add && drops) ranges = ranges.flatMap((range) => without(range, row));
        else if (add) ranges = [...ranges, [row, row + 1]];
        else ranges = alone ? [] : [[row, row + 1]];
        anchor = drops ? null : row;
      }
      end = row;
      tell(true);
    },
    /** Select no row and no column. Rows that are still looked for are not selected later. */
    clear() {
      const had = ranges.length > 0 || columns.size > 0;
      [ranges, columns, anchor, end] = [[], new Set(), null, -1];
      if (had) tell(true);
      else changed(true);
    },
    /** @param {number} index */
    toggleColumn(index) {
      if (!columns.delete(index)) columns.add(index);
      tell();
    },
    /** Select the first rows. @param {number} most */
    all(most) {
      ranges = [[0, most]];
      anchor = 0;
      end = most - 1;
      tell(true);
    },
    /** Select these rows, where there are any. @param {Range[]} selection */
    restore(selection) {
      if (!selection.length) return;
      ranges = selection;
      anchor = selection[selection.length - 1][0];
      end = -1;
      tell();
    },
    /**
     * Other rows or columns are shown: what has no place among them is forgotten, of the rest the
     * kernel is told again, because it is read as it is shown.
     * @param {{rows: boolean, columns: boolean}} keep
     */
    reset(keep) {
      if (!keep.rows) [ranges, anchor, end] = [[], null, -1];
      if (!keep.columns) columns = new Set();
      if (ranges.length || columns.size) tell();
    },
  };
}

/**
 * A range without one of its rows: none to two ranges.
 * @param {Range} range @param {number} row @returns {Range[]}
 */
function without([first, stop], row) {
  if (row < first || row >= stop) return [[first, stop]];
  /** @type {Range[]} */
  const parts = [
    [first, row],
    [row + 1, stop],
  ];
  return parts.filter(([start, end]) => end > start);
}
