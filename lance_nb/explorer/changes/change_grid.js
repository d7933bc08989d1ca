// One level of a diff in a grid: its pages, what is known of their number, filters and details.

import { decodePage } from "../js/columns.js";
import { count, h, plural, setText, show } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { fillCell } from "../js/grid_cell.js";
import { lookOfOperation } from "../js/operations.js";
import { pageStore } from "../js/page_store.js";
import { virtualGrid } from "../js/virtual_grid.js";
import { changeDetail } from "./change_detail.js";
import { wordDiff, wordParts } from "./word_diff.js";

/** @type {Record<string, [words: string, look: string]>} */
const KINDS = {
  "+": ["added", "lnb-row-add"],
  "-": ["removed", "lnb-row-remove"],
  "~": ["changed", "lnb-row-change"],
};
/** @type {Record<string, string>} */
const SIGNS = { "+": "+", "-": "−", "~": "~", " ": "" };
const FILTERS = [
  ["", "all"],
  ["added", "+ added"],
  ["removed", "− removed"],
  ["changed", "~ changed"],
];
const FILTERED = ["rows", "fragments"];
/** @type {Record<string, string>} */
const LEVEL_NAMES = {
  rows: "rows that differ",
  schema: "columns that differ",
  transactions: "transactions between the versions",
  fragments: "fragments that differ",
  deletions: "fragments whose deletions differ",
  indices: "indices that differ",
  config: "settings that differ",
};

/** @typedef {ReturnType<typeof decodeChanges>} ChangePage */

/**
 * Read a window: a row page whose cells know what they were.
 * @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers
 */
function decodeChanges(result, buffers) {
  const page = decodePage(result.page, buffers.slice(0, result.split));
  const old = decodePage(result.old, buffers.slice(result.split));
  /** @type {Map<number, {order: number, mask: string}>} */
  const marks = new Map();
  for (const [index, order, mask] of result.marks) marks.set(index, { order, mask });
  // Columns are fitted to what their cells show: both values where one changed.
  const columns = page.columns.map((column, index) => {
    const mark = marks.get(index);
    if (!mark) return column;
    return {
      ...column,
      cell: (/** @type {number} */ row) => {
        const value = column.cell(row);
        return mark.mask[row] === "1"
          ? { ...value, text: `${old.columns[mark.order].cell(row).text} → ${value.text}000` }
          : value;
      },
    };
  });
  return {
    ...page,
    columns,
    isAll: result.num_rows === 0 || (result.found && !page.numRows),
    kind: (/** @type {number} */ row) => result.kinds[row - page.offset],
    place: (/** @type {number} */ row) => result.places?.[row - page.offset] ?? null,
    /** @param {number} row @param {number} column */
    cell(row, column) {
      const value = page.cell(row, column);
      const mark = marks.get(column - page.firstColumn);
      if (mark?.mask[row - page.offset] !== "1") return value;
      return { ...value, old: old.cell(row, mark.order) };
    },
  };
}

/**
 * @param {Lnb.Context} ctx
 * @param {{level: string, pair: () => Lnb.Pair, counts: () => Lnb.Json,
 *   rowsCounted: (found: Lnb.Json) => void, code: (python: string, magic: string) => void}} of
 *   `counts`: see changes/change_summary.py; `rowsCounted`: more is known of the rows; `code`:
 *   suffixes of the lines
 */
export function changeGrid(ctx, { level, pair, counts, rowsCounted, code }) {
  const isRows = level === "rows";
  /**
   * @type {{found: Lnb.Json, filter: string, numRows: number, cells: Map<string, number>,
   *   stopped: boolean}}
   */
  const state = { found: null, filter: "", numRows: 0, cells: new Map(), stopped: false };
  const note = h("div", { class: "lnb-grid-note", hidden: true });
  const status = h("span", { "aria-live": "polite" });
  const bar = h("progress", { class: "lnb-ch-bar", "aria-label": "rows compared", hidden: true });
  const halt = () => [request, counting].forEach((line) => line.cancel());
  const stop = button("Stop", halt);
  const whole = button("Count all", countAll);
  const request = ctx.kernel.line({ progress: busy });
  const counting = ctx.kernel.line({ progress: busy });
  const store = pageStore(ctx.kernel, arrived, {
    type: isRows ? "changes.rows" : "changes.level",
    decode,
    request: (type, args, done, failed) =>
      request(type, args, done, (error) =>
        error.card?.kind === "CancelledError" ? stopped() : failed(error),
      ),
  });
  const view = diffGrid(ctx, {
    label: LEVEL_NAMES[level],
    store,
    open: openRow,
    end: more,
    mark(row) {
      const glyph = pageAt(row)?.kind(row) ?? " ";
      if (level === "transactions") {
        const operation = operationOf(row);
        const { family, glyph: sign } = lookOfOperation(operation);
        return { glyph: sign, look: `lnb-op-${family} lnb-row-op`, words: operation };
      }
      const [words, look] = KINDS[glyph] ?? ["", ""];
      return { glyph: SIGNS[glyph], look, words };
    },
    note: (column) =>
      isRows && state.cells.has(nameOf(column))
        ? `~ ${count(state.cells.get(nameOf(column)) ?? 0)}`
        : "",
  });
  const filters = h(
    "div",
    {
      class: "lnb-choices",
      role: "group",
      "aria-label": "kinds of changes",
      hidden: !FILTERED.includes(level),
    },
    FILTERS.map(([kind, words]) =>
      h(
        "button",
        {
          class: "lnb-choice",
          type: "button",
          "aria-pressed": String(kind === ""),
          on: { click: () => filter(kind) },
        },
        words,
      ),
    ),
  );
  const element = h(
    "div",
    { class: "lnb-ch-level" },
    h("div", { class: "lnb-grid-place" }, view.element, note),
    h("div", { class: "lnb-grid-foot lnb-ch-foot" }, filters, status, bar, stop, whole),
  );
  ctx.onClose(halt);

  /** @param {number} row */
  function pageAt(row) {
    return /** @type {ChangePage | undefined} */ (store.pageOf(row));
  }

  /** @param {number} column */
  function nameOf(column) {
    return store.column(column)?.name ?? "";
  }

  /** @param {string} words @param {() => unknown} act */
  function button(words, act) {
    return h(
      "button",
      { class: "lnb-link", type: "button", hidden: true, on: { click: act } },
      words,
    );
  }

  /** @param {number} row */
  function operationOf(row) {
    const firstColumn = store.column(1)?.name === "side" ? 2 : 1;
    return store.cell(row, firstColumn)?.text ?? "";
  }

  /** @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers */
  function decode(result, buffers) {
    if (isRows) know(result.found);
    else state.numRows = result.num_rows;
    return decodeChanges(result, buffers);
  }

  /** More is known of how many rows there are. @param {Lnb.Json} counts */
  function know(counts) {
    state.found = counts;
    state.cells = new Map(counts.cells);
    /** @type {Record<string, number>} */
    const number = { added: counts.added, removed: counts.removed, changed: counts.changed };
    const remaining = counts.is_finished ? number.added + number.removed : 0;
    state.numRows = state.filter ? number[state.filter] : number.changed + remaining;
    rowsCounted(counts);
  }

  /** @param {Lnb.Page} [page] */
  function arrived(page) {
    busy();
    if (page) {
      view.size(state.numRows, isRows ? counts().num_columns : page.columns.length);
      view.learn(page);
    }
    paint();
  }

  /** @param {number | null} done */
  function busy(done = null, total = 0) {
    const running = done !== null && total > 0;
    bar.hidden = stop.hidden = !running;
    if (!running) return;
    bar.max = total;
    bar.value = done;
    status.textContent = `${count(done)} of ${count(total)} rows compared`;
    whole.hidden = true;
  }

  function paint() {
    const shown = store.failure
      ? [errorCard(store.failure)]
      : state.numRows
        ? []
        : state.stopped
          ? [again()]
          : store.count
            ? [h("p", { class: "lnb-empty" }, emptyWords())]
            : [];
    show(note, shown);
    note.hidden = !shown.length;
    view.element.classList.toggle("lnb-broken", Boolean(shown.length));
    const { found } = state;
    whole.hidden = !isRows || !found || found.is_finished;
    if (bar.hidden) status.textContent = store.count ? statusWords(found) : "…";
    view.paint();
  }

  /** @param {Lnb.Json} counts */
  function statusWords(counts) {
    if (!isRows || !counts || counts.is_finished || ["added", "removed"].includes(state.filter))
      return plural(state.numRows, isRows ? "row" : noun());
    const compared = `${count(counts.compared)} of ${count(counts.to_compare)} rows compared`;
    return `${count(counts.changed)} changed so far · ${compared}`;
  }

  function stopped() {
    state.stopped = true;
    arrived();
  }
  const noun = () =>
    /** @type {Record<string, string>} */ ({
      transactions: "transaction",
      schema: "column",
      fragments: "fragment",
      deletions: "fragment",
      indices: "index segment",
      config: "setting",
    })[level];

  function again() {
    return h(
      "p",
      { class: "lnb-empty" },
      "Stopped. ",
      h("button", { class: "lnb-link", type: "button", on: { click: () => begin() } }, "Continue"),
    );
  }

  function emptyWords() {
    if (state.filter) return `Nothing was ${state.filter}.`;
    return isRows ? "No row differs." : `No ${noun()} differs.`;
  }

  /** @param {string} kind */
  function filter(kind) {
    state.filter = kind;
    [...filters.children].forEach((filter, index) =>
      filter.setAttribute("aria-pressed", String(FILTERS[index][0] === kind)),
    );
    begin();
  }

  const currentRequest = () => ({
    ...pair(),
    ...(isRows ? {} : { level }),
    kinds: state.filter ? [state.filter] : null,
  });

  /** From the top: before the first page has come one row is assumed, so that it is asked for. */
  function begin() {
    state.numRows = 0;
    state.stopped = false;
    store.reset(currentRequest(), null);
    note.hidden = true;
    view.element.classList.remove("lnb-broken");
    view.size(1, isRows ? Math.max(1, counts().num_columns) : 1, {
      anew: true,
      head: isRows ? 48 : 30,
    });
    status.textContent = "…";
    code(
      isRows
        ? `.rows(${state.filter ? `kinds=${JSON.stringify(state.filter)}` : ""}).read_all()`
        : `.${level}`,
      isRows ? " --rows" : ` --${level}`,
    );
  }

  /** The last row known is in sight, but not all are compared: go on. */
  function more() {
    const { found } = state;
    if (
      !isRows ||
      !found ||
      found.is_finished ||
      state.stopped ||
      !bar.hidden ||
      !["", "changed"].includes(state.filter) ||
      !state.numRows
    )
      return;
    store.want([state.numRows, state.numRows + 1], [0, 1], true, state.numRows + 1);
  }

  function countAll() {
    counting(
      "changes.summary",
      pair(),
      ({ result }) => {
        know(result);
        busy();
        view.size(state.numRows, counts().num_columns);
        paint();
      },
      (error) => {
        busy();
        paint();
        if (error.card?.kind !== "CancelledError") show(note, ctx.problem(error));
      },
    );
  }

  /** @param {number} row */
  function openRow(row) {
    const page = pageAt(row);
    if (!page) return;
    const cells = page.columns.map((column, index) => ({
      name: column.name,
      ...page.cell(row, page.firstColumn + index),
    }));
    changeDetail(ctx, {
      level,
      pair: pair(),
      kinds: currentRequest().kinds,
      row,
      place: page.place(row),
      cells,
    });
  }

  return { element, begin, stop: halt };
}

const GUTTER = 34;
const AROUND = 24; // characters beside a changed word in a cell

/**
 * @param {Lnb.Context} ctx
 * @param {{label: string, store: Lnb.PageStore, mark: (row: number) => {glyph: string,
 *   look: string, words: string}, open: (row: number) => void, note?: (column: number) => string,
 *   end?: () => void}} of `note`: words under a title; `end` is called when the last row known is
 *   in sight
 */
function diffGrid(ctx, { label, store, mark, open, note = () => "", end = () => {} }) {
  /** @type {import("../js/grid_head.js").Titles} */
  const titles = {
    corner: { text: "", label: "kind of change" },
    parts: () => h("span", { class: "lnb-sheet-sub" }, h("small"), h("em")),
    draw(cell, index) {
      const words = note(index);
      setText(/** @type {Element} */ (cell.querySelector("em")), words);
      return words && `${words} changed`;
    },
  };
  const grid = virtualGrid(ctx, {
    label,
    store,
    titles,
    look: "lnb-sheet",
    gutter: GUTTER,
    head: 44,
    cell: fillChange,
    row(row) {
      const { glyph, look, words } = mark(row);
      return {
        text: glyph,
        look,
        words: words ? `${words}, row ${count(row)}` : `row ${count(row)}`,
      };
    },
    painted({ last }) {
      if (last >= state.numRows) end();
    },
    said(row, column) {
      const value = store.cell(row, column);
      const old = value?.old ? `${value.old.text} became ` : "";
      const place = `${mark(row).words ?? "row"} ${row}, ${store.column(column)?.name ?? ""}`;
      return `${place}: ${old}${value?.text ?? "loading"}`;
    },
    keys: { select() {}, chooseColumn() {}, letters: {}, open, openRow: open },
  });
  const { element, body, state } = grid;
  body.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    /** @type {Lnb.Recycled | null} */
    const line = target.closest(".lnb-grid-row");
    /** @type {Lnb.Recycled | null} */
    const cell = target.closest(".lnb-cell");
    if (!line) return;
    grid.moveTo(line.lnb, cell?.lnb?.index ?? state.column);
    open(line.lnb);
  });

  return {
    element,
    paint: grid.paint,
    learn: grid.learn,
    /**
     * How much there is; `anew` begins again at the top. `head`: height of the titles.
     * @param {number} numRows @param {number} numColumns
     * @param {{anew?: boolean, head?: number}} how
     */
    size(numRows, numColumns, { anew = false, head } = {}) {
      if (anew) {
        Object.assign(state, { row: 0, column: 0, top: 0 });
        grid.scrollTo({ left: 0, top: 0 });
      }
      grid.size(numRows, numColumns, { anew, head });
    },
  };
}

/**
 * The value of a cell and, where it changed, what it was: `old → new`, of a sentence its words.
 * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
 * @param {Lnb.Column | undefined} column
 */
function fillChange(cell, value, column) {
  if (!value?.old) return fillCell(cell, value, column);
  const words = value.spark ? null : wordDiff(value.old.text, value.text);
  if (words) {
    cell.replaceChildren(h("span", { class: "lnb-words" }, wordParts(words, AROUND)));
    return { filled: true, look: "lnb-look-changed" };
  }
  /** @param {"del" | "ins"} tag @param {Lnb.Cell} value */
  const part = (tag, value) => {
    const element = h(tag, { dir: "auto" });
    const { look } = fillCell(element, value, column);
    element.className = look;
    return element;
  };
  cell.replaceChildren(
    part("del", value.old),
    h("i", { "aria-hidden": "true" }, "→"),
    part("ins", value),
  );
  return { filled: true, look: `lnb-look-changed${column?.look === "number" ? " lnb-right" : ""}` };
}
