// What is selected in the grid: ranges of rows, and columns; sent to the kernel as it changes.

/** @typedef {[first: number, stop: number]} Range */

/** @param {Lnb.Context} ctx @param {() => Lnb.Args} lens @param {() => void} changed */
export function gridSelection(ctx, lens, changed) {
  /** @type {Range[]} */
  let ranges = [];
  /** @type {Set<number>} */
  let columns = new Set();
  let anchor = 0;

  function tell() {
    ctx.kernel.ask("select", wanted()).catch((error) => ctx.announce(error.message));
    changed();
  }
  const wanted = () => ({ ranges, columns: [...columns].sort((a, b) => a - b), ...lens() });
  /** @param {number} row */
  const holds = (row) => ranges.some(([first, stop]) => row >= first && row < stop);

  return {
    wanted,
    row: holds,
    column: (/** @type {number} */ at) => columns.has(at),
    /** Rows selected in all. */
    get rows() {
      return ranges.reduce((sum, [first, stop]) => sum + stop - first, 0);
    },
    get columns() {
      return columns.size;
    },
    /**
     * Select a row; `extend` up to it, `add` it to what is selected; the only one again: none.
     * @param {number} row @param {{extend?: boolean, add?: boolean}} how
     */
    select(row, { extend = false, add = false } = {}) {
      const alone = ranges.length === 1 && ranges[0][0] === row && ranges[0][1] === row + 1;
      if (extend)
        ranges = [...ranges.slice(0, -1), [Math.min(row, anchor), Math.max(row, anchor) + 1]];
      else if (add && holds(row)) ranges = ranges.flatMap((range) => without(range, row));
      else if (add) ranges = [...ranges, [row, row + 1]];
      else ranges = alone ? [] : [[row, row + 1]];
      if (!extend) anchor = row;
      tell();
    },
    /** @param {number} at */
    toggleColumn(at) {
      if (!columns.delete(at)) columns.add(at);
      tell();
    },
    /** Select the first rows. @param {number} most */
    all(most) {
      ranges = [[0, most]];
      anchor = 0;
      tell();
    },
    /** Select these rows, where there are any. @param {Range[]} found */
    restore(found) {
      if (!found.length) return;
      ranges = found;
      anchor = found[0][0];
      tell();
    },
    /**
     * Other rows or columns are shown: what has no place among them is forgotten, of the rest the
     * kernel is told again, because it is read as it is shown.
     * @param {{rows: boolean, columns: boolean}} keep
     */
    reset(keep) {
      if (!keep.rows) ranges = [];
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
