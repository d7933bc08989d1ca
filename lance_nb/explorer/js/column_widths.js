// Column widths of the grid: guessed from the first page, changed by hand, kept across versions.

const LEAST = 48;
const MOST = 640;
const USUAL = 132;
const CHAR = 7.4;
const DIGIT = 8.4;
const FIRST_FIXED = { bool: 76, vector: 148 };

export function columnWidths() {
  let widths = [];
  let lefts = [0];

  function recount(from) {
    lefts.length = Math.max(1, Math.min(lefts.length, from + 1));
  }
  function left(index) {
    while (lefts.length <= index) lefts.push(lefts.at(-1) + of(lefts.length - 1));
    return lefts[index];
  }
  function of(index) {
    return widths[index]?.px ?? USUAL;
  }

  return {
    of,
    left,
    total: (columns) => left(columns),
    set(index, px) {
      widths[index] = { px: Math.max(LEAST, Math.min(MOST, Math.round(px))), by: "hand", name: widths[index]?.name };
      recount(index);
    },
    /** Guess from names and the first rows of a page; a width set by hand stays. */
    learn(page) {
      page.columns.forEach((column, at) => {
        const index = page.firstColumn + at;
        const known = widths[index];
        if (known && known.name === column.name) return;
        widths[index] = { px: guess(column, page), by: "guess", name: column.name };
        recount(index);
      });
    },
    /** Fit one column to the cells in sight. */
    fit(index, column, cells) {
      if (!column) return;
      const longest = Math.max(0, ...cells.map((cell) => cell?.text.length ?? 0));
      const px = Math.max(titleWidth(column), FIRST_FIXED[column.look] ?? longest * widthOf(column) + 24);
      widths[index] = { px: Math.max(LEAST, Math.min(MOST, Math.round(px))), by: "hand", name: column.name };
      recount(index);
    },
    /** First and one-past-last column in sight. */
    visible(scrolled, room, columns) {
      let first = 0;
      while (first < columns && left(first + 1) <= scrolled) first += 1;
      let stop = first;
      while (stop < columns && left(stop) < scrolled + room) stop += 1;
      return [first, stop];
    },
  };
}

function titleWidth(column) {
  return Math.max(column.name.length * 8.6, Math.min(column.type.length, 22) * 6.2) + 26;
}

function guess(column, page) {
  let longest = 0;
  for (let row = 0; row < Math.min(100, page.numRows); row += 1) {
    longest = Math.max(longest, column.cell(row).text.length);
  }
  const content = FIRST_FIXED[column.look] ?? Math.min(260, longest * widthOf(column) + 24);
  return Math.round(Math.max(LEAST + 8, Math.min(300, Math.max(titleWidth(column), content))));
}

function widthOf(column) {
  return column.look === "number" || column.look === "plain" ? DIGIT : CHAR;
}
