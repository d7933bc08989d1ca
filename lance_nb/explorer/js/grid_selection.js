// What is selected in the grid: ranges of rows, and columns; told to the kernel as it changes.

/** @param {import("./view.js").Context} ctx @param {() => Object} lens @param {() => void} changed */
export function gridSelection(ctx, lens, changed) {
  let ranges = [];
  let columns = new Set();
  let anchor = 0;

  function tell() {
    ctx.kernel.ask("select", wanted()).catch((error) => ctx.announce(error.message));
    changed();
  }
  const wanted = () => ({ ranges, columns: [...columns].sort((a, b) => a - b), ...lens() });
  const holds = (row) => ranges.some(([first, stop]) => row >= first && row < stop);

  return {
    wanted,
    row: holds,
    column: (at) => columns.has(at),
    /** Rows selected in all. */
    get rows() {
      return ranges.reduce((sum, [first, stop]) => sum + stop - first, 0);
    },
    get columns() {
      return columns.size;
    },
    /** Select a row; `extend` up to it, `add` it to what is selected; the only one again: none. */
    select(row, { extend = false, add = false } = {}) {
      const alone = ranges.length === 1 && ranges[0][0] === row && ranges[0][1] === row + 1;
      if (extend)
        ranges = [...ranges.slice(0, -1), [Math.min(row, anchor), Math.max(row, anchor) + 1]];
      else if (add && holds(row))
        ranges = ranges.flatMap(([first, stop]) =>
          row < first || row >= stop
            ? [[first, stop]]
            : [
                [first, row],
                [row + 1, stop],
              ].filter(([a, b]) => b > a),
        );
      else if (add) ranges = [...ranges, [row, row + 1]];
      else ranges = alone ? [] : [[row, row + 1]];
      if (!extend) anchor = row;
      tell();
    },
    toggleColumn(at) {
      if (!columns.delete(at)) columns.add(at);
      tell();
    },
    /** Other rows are shown: rows are forgotten; columns too, when their places change. */
    reset(keepColumns) {
      ranges = [];
      if (!keepColumns) columns = new Set();
    },
  };
}
