// The few row pages kept in the browser, and asking for the ones in sight.

import { decodePage } from "./columns.js";

const MAX_PAGES = 3;
const ROWS_PER_PAGE = 200;
const COLUMNS_PER_PAGE = 40;
const AHEAD = 40;

/**
 * @typedef {(type: string, args: Lnb.Args, done: Lnb.Done, failed: Lnb.Failed) => unknown}
 *   RowRequest
 */

/**
 * @param {Lnb.Kernel} kernel
 * @param {(page?: Lnb.Page) => void} changed called when a page arrived or failed
 * @param {{type?: string, request?: RowRequest, decode?: (result: Lnb.Json,
 *   buffers: Lnb.Buffer[]) => Lnb.Page}} [from] another request (`type`, on its own `request` line)
 *   whose answers `decode` reads
 * @returns {Lnb.PageStore}
 */
export function pageStore(
  kernel,
  changed,
  { type = "rows", request = kernel.line(), decode = decodePage } = {},
) {
  /** @type {Lnb.Page[]} */
  let pages = [];
  /** @type {Lnb.Args | null} */
  let place = null;
  /** @type {Lnb.Card | null} */
  let failure = null;
  let underWay = "";
  let lean = false;
  /** @type {[number, number]} */
  let sight = [0, 0];
  /** @type {Map<number, Lnb.Column>} what pages said of each, and what those before them did */
  let columns = new Map();

  /** @param {number} row @param {number} column */
  const find = (row, column) => pages.find((page) => page.holds(row, column));

  return {
    /**
     * Start over elsewhere; `page` is the first one, already here. With `alike` the columns are
     * those from before.
     */
    reset(next, page, { alike = false } = {}) {
      place = next;
      pages = page ? [page] : [];
      if (!alike) columns = new Map();
      if (page) learn(page);
      failure = null;
      underWay = "";
      lean = false;
    },
    get failure() {
      return failure;
    },
    get count() {
      return pages.length;
    },
    /** Whether rows were asked for and did not come yet. */
    get waits() {
      return underWay !== "";
    },
    /** The page that holds a row, if it is here. */
    pageOf: (row) => pages.find((page) => row >= page.offset && row < page.offset + page.numRows),
    /** The cell, or undefined while it is not here. */
    cell: (row, column) => find(row, column)?.cell(row, column),
    /** Name and type of a column, if any page that arrived has them. */
    column: (index) => columns.get(index),
    /**
     * Ask for what is missing of a rectangle (ends exclusive), else for what comes next. The first
     * `pinned` columns are in sight as well.
     */
    want(rows, wantedColumns, down, numRows, pinned = 0) {
      if (!place || failure || kernel.state === "static") return;
      sight = rows;
      /** @type {[number, number]} */
      const onLeft = [0, pinned];
      const columns =
        pinned && firstMissing(rows, onLeft) !== null && firstMissing(rows, wantedColumns) === null
          ? onLeft
          : wantedColumns;
      const ahead = lean
        ? [0, 0]
        : down
          ? [rows[1], Math.min(numRows, rows[1] + AHEAD)]
          : [Math.max(0, rows[0] - AHEAD), rows[0]];
      const row = firstMissing(rows, columns) ?? firstMissing(ahead, columns);
      if (row === null) return;
      const spare = lean ? 0 : Math.max(0, ROWS_PER_PAGE - (rows[1] - row));
      const offset = Math.max(
        0,
        row - (row > rows[0] ? 0 : Math.floor(spare * (down ? 0.25 : 0.75))),
      );
      const firstColumn = Math.max(
        0,
        columns[0] - Math.floor((COLUMNS_PER_PAGE - (columns[1] - columns[0])) / 2),
      );
      const args = {
        ...place,
        offset,
        limit: ROWS_PER_PAGE,
        first_column: firstColumn,
        num_columns: COLUMNS_PER_PAGE,
      };
      const key = JSON.stringify(args);
      if (key === underWay) return;
      underWay = key;
      const placeThen = place;
      request(
        type,
        args,
        ({ result, buffers }) => {
          if (placeThen !== place) return;
          underWay = "";
          const page = decode(result, buffers);
          keep(page, row);
          changed(page);
        },
        (error) => {
          if (placeThen !== place) return;
          underWay = "";
          failure = error.card ?? {
            title: "Rows cannot be shown",
            message: error.message,
            where: "",
            hint: "Run the cell again.",
            kind: "",
          };
          changed();
        },
      );
    },
  };

  /** @param {Lnb.Page} page */
  function learn(page) {
    page.columns.forEach((column, index) => columns.set(page.firstColumn + index, column));
  }

  /** @param {number[]} rows @param {number[]} columns */
  function firstMissing(rows, columns) {
    for (let row = rows[0]; row < rows[1]; row += 1) {
      if (!find(row, columns[0]) || !find(row, columns[1] - 1)) return row;
    }
    return null;
  }

  /** @param {Lnb.Page} page @param {number} size */
  function keep(page, size) {
    learn(page);
    // Rows so large that the page ends before the row wanted: begin with that row from now on.
    if (size >= page.offset + page.numRows) lean = true;
    // Fewer rows than promised (another program rewrote the place): do not ask for ever.
    if (!page.numRows && !page.isAll)
      failure = {
        title: "No rows came back",
        message: "The version holds fewer rows than its metadata says.",
        where: "",
        hint: "Run the cell again.",
        kind: "",
      };
    // Pages in sight stay, however many they are; of the others only the newest.
    const [first, stop] = sight;
    /** @param {Lnb.Page} page */
    const inSight = (page) => page.offset < stop && page.offset + page.numRows > first;
    const all = [page, ...pages];
    const outside = all.filter((page) => !inSight(page));
    const spare = Math.max(0, MAX_PAGES - (all.length - outside.length));
    pages = all.filter((page) => inSight(page) || outside.indexOf(page) < spare);
  }
}
