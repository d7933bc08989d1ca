// One level of a diff in a grid: its pages, what is known of their number, filters and details.

import { decodePage } from "../js/columns.js";
import { button, count, h, plural, setText, show } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { fillCell, shownText } from "../js/grid_cell.js";
import { lookOfOperation, titleOfOperation } from "../js/operations.js";
import { pageStore } from "../js/page_store.js";
import { VirtualGrid } from "../js/virtual_grid.js";
import { TALL, thumbnails } from "../rows/thumbnails.js";
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
/** @type {Record<string, string>} */
const NOUNS = {
  rows: "row",
  transactions: "transaction",
  schema: "column",
  fragments: "fragment",
  deletions: "fragment",
  indices: "index segment",
  config: "setting",
};
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

const GUTTER = 34;
const PAIR = 176; // pixels for two pictures
const AROUND = 24; // characters beside a changed word in a cell

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
    const before = old.columns[mark.order];
    return {
      ...column,
      pictures: column.pictures || before.pictures,
      room: PAIR,
      cell: (/** @type {number} */ row) => {
        const value = column.cell(row);
        if (mark.mask[row] !== "1") return value;
        const [left, right] = shownPair(before.cell(row), value);
        return { ...value, short: undefined, text: `${left} → ${right}000` };
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
 * What is shown of two values: short where they still differ.
 * @param {Lnb.Cell} old @param {Lnb.Cell} value @returns {[string, string]}
 */
function shownPair(old, value) {
  const [before, after] = [shownText(old), shownText(value)];
  return before === after ? [old.text, value.text] : [before, after];
}

export class ChangeGrid {
  /** @type {Lnb.Json} what is known of the number of rows */
  found = null;
  kind = ""; // of the changes that are shown; all if empty
  numRows = 0;
  /** @type {Map<string, number>} how many cells differ, by column */
  cells = new Map();
  isStopped = false;
  note = h("div.lnb-grid-note", { hidden: true });
  status = h("span", { "aria-live": "polite" });
  bar = h("progress.lnb-ch-bar", { "aria-label": "rows compared", hidden: true });

  /**
   * @param {Lnb.Context} ctx
   * @param {{level: string, pair: () => Lnb.Pair, counts: () => Lnb.Json,
   *   rowsCounted: (found: Lnb.Json) => void, code: (python: string, magic: string) => void}} of
   *   `counts`: see changes/change_summary.py; `rowsCounted`: more is known of the rows; `code`:
   *   suffixes of the lines
   */
  constructor(ctx, { level, pair, counts, rowsCounted, code }) {
    this.ctx = ctx;
    this.level = level;
    this.pair = pair;
    this.counts = counts;
    this.rowsCounted = rowsCounted;
    this.code = code;
    this.isRows = level === "rows";
    this.stopButton = button("Stop", this.stop, { class: "lnb-link", hidden: true });
    this.whole = button("Count all", this.countAll, { class: "lnb-link", hidden: true });
    this.request = ctx.kernel.line({ progress: this.busy });
    this.counting = ctx.kernel.line({ progress: this.busy });
    this.store = pageStore(ctx.kernel, this.arrived, {
      type: this.isRows ? "changes.rows" : "changes.level",
      decode: this.decode,
      request: (type, args, done, failed) =>
        this.request(type, args, done, (error) =>
          error.card?.kind === "CancelledError" ? this.stopped() : failed(error),
        ),
    });
    this.thumbs = thumbnails(ctx, {
      store: this.store,
      changed: () => this.grid.paint(),
      height: () => this.grid.rowHeight,
      type: "changes.thumbs",
      sides: [false, true],
    });
    this.grid = this.makeGrid();
    this.filters = h(
      "div.lnb-choices",
      {
        role: "group",
        "aria-label": "kinds of changes",
        hidden: !FILTERED.includes(level),
      },
      FILTERS.map(([kind, words]) =>
        button(words, () => this.filter(kind), {
          class: "lnb-choice",
          "aria-pressed": String(kind === ""),
        }),
      ),
    );
    this.element = h(
      "div.lnb-ch-level",
      h("div.lnb-grid-place", this.grid.element, this.note),
      h(
        "div.lnb-grid-foot.lnb-ch-foot",
        this.filters,
        this.status,
        this.bar,
        this.stopButton,
        this.whole,
      ),
    );
    ctx.onClose(this.stop);
  }

  stop = () => [this.request, this.counting].forEach((line) => line.cancel());

  makeGrid() {
    const grid = new VirtualGrid(this.ctx, {
      label: LEVEL_NAMES[this.level],
      store: this.store,
      titles: {
        corner: { text: "", label: "kind of change" },
        parts: () => h("span.lnb-sheet-sub", h("small"), h("em")),
        draw: (cell, index) => {
          const number = this.isRows ? this.cells.get(this.nameOf(index)) : undefined;
          const words = number === undefined ? "" : `~ ${count(number)}`;
          setText(/** @type {Element} */ (cell.querySelector("em")), words);
          return words && `${words} changed`;
        },
      },
      look: "lnb-sheet",
      gutter: GUTTER,
      head: 44,
      cell: (cell, value, column, row, index) =>
        fillChange(cell, value, column, (shown, old) =>
          this.thumbs.pictureOf(shown, row, index, old),
        ),
      row: (row) => {
        const { glyph, look, words } = this.mark(row);
        const label = words ? `${words}, row ${count(row)}` : `row ${count(row)}`;
        return { text: glyph, look, words: label };
      },
      painted: ({ first, last, columns }) => {
        if (this.isRows) this.thumbs.want(first, last, columns);
        if (last >= grid.state.numRows) this.more();
      },
      said: (row, column) => {
        const value = this.store.cell(row, column);
        const old = value?.old ? `${value.old.text} became ` : "";
        const place = `${this.mark(row).words} ${row}, ${this.nameOf(column)}`;
        return `${place}: ${old}${value?.text ?? "loading"}`;
      },
      keys: {
        select() {},
        chooseColumn() {},
        letters: {},
        open: (row) => this.openRow(row),
        openRow: (row) => this.openRow(row),
      },
    });
    grid.body.addEventListener("click", ({ target }) => {
      /** @param {string} selector @returns {Lnb.Recycled | null} */
      const around = (selector) => /** @type {Element} */ (target).closest(selector);
      const line = around(".lnb-grid-row");
      if (!line) return;
      grid.moveTo(line.lnb, around(".lnb-cell")?.lnb?.index ?? grid.state.column);
      this.openRow(line.lnb);
    });
    return grid;
  }

  /** The kind of change of a row. @param {number} row */
  mark(row) {
    if (this.level === "transactions") {
      const operation = this.operationOf(row);
      const { family, glyph } = lookOfOperation(operation);
      return { glyph, look: `lnb-op-${family} lnb-row-op`, words: titleOfOperation(operation) };
    }
    const kind = this.pageAt(row)?.kind(row) ?? " ";
    const [words, look] = KINDS[kind] ?? ["", ""];
    return { glyph: SIGNS[kind], look, words };
  }

  /** @param {number} row */
  pageAt(row) {
    return /** @type {ChangePage | undefined} */ (this.store.pageOf(row));
  }

  /** @param {number} column */
  nameOf(column) {
    return this.store.column(column)?.name ?? "";
  }

  /** @param {number} row */
  operationOf(row) {
    const firstColumn = this.store.column(1)?.name === "side" ? 2 : 1;
    return this.store.cell(row, firstColumn)?.text ?? "";
  }

  /** @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers */
  decode = (result, buffers) => {
    if (this.isRows) this.know(result.found);
    else this.numRows = result.num_rows;
    return decodeChanges(result, buffers);
  };

  /** More is known of how many rows there are. @param {Lnb.Json} counts */
  know(counts) {
    this.found = counts;
    this.cells = new Map(counts.cells);
    /** @type {Record<string, number>} */
    const number = { added: counts.added, removed: counts.removed, changed: counts.changed };
    const remaining = counts.is_finished ? number.added + number.removed : 0;
    this.numRows = this.kind ? number[this.kind] : number.changed + remaining;
    this.rowsCounted(counts);
  }

  /** @param {Lnb.Page} [page] */
  arrived = (page) => {
    this.busy();
    if (page) {
      this.grid.size(this.numRows, this.isRows ? this.counts().num_columns : page.columns.length);
      this.grid.learn(page);
      if (page.columns.some(({ pictures }) => pictures)) this.grid.setRowHeight(TALL);
    }
    this.paint();
  };

  /** @param {number | null} done */
  busy = (done = null, total = 0) => {
    const running = done !== null && total > 0;
    this.bar.hidden = this.stopButton.hidden = !running;
    if (!running) return;
    this.bar.max = total;
    this.bar.value = done;
    this.status.textContent = `${count(done)} of ${count(total)} rows compared`;
    this.whole.hidden = true;
  };

  paint() {
    const note = this.noteNow();
    show(this.note, note);
    this.note.hidden = !note;
    this.grid.element.classList.toggle("lnb-broken", Boolean(note));
    const { found } = this;
    this.whole.hidden = !this.isRows || !found || found.is_finished;
    if (this.bar.hidden) this.status.textContent = this.store.count ? this.statusWords(found) : "…";
    this.grid.paint();
  }

  /** What stands in the place of rows. */
  noteNow() {
    if (this.store.failure) return errorCard(this.store.failure);
    if (this.numRows) return null;
    if (this.isStopped) {
      const go = button("Continue", () => this.begin(), { class: "lnb-link" });
      return h("p.lnb-empty", "Stopped. ", go);
    }
    return this.store.count ? h("p.lnb-empty", this.emptyWords()) : null;
  }

  /** @param {Lnb.Json} counts */
  statusWords(counts) {
    if (!this.isRows || !counts || counts.is_finished || ["added", "removed"].includes(this.kind))
      return plural(this.numRows, NOUNS[this.level]);
    const compared = `${count(counts.compared)} of ${count(counts.to_compare)} rows compared`;
    return `${count(counts.changed)} changed so far · ${compared}`;
  }

  stopped() {
    this.isStopped = true;
    this.arrived();
  }

  emptyWords() {
    if (this.kind) return `Nothing was ${this.kind}.`;
    return `No ${NOUNS[this.level]} differs.`;
  }

  /** @param {string} kind */
  filter(kind) {
    this.kind = kind;
    [...this.filters.children].forEach((filter, index) =>
      filter.setAttribute("aria-pressed", String(FILTERS[index][0] === kind)),
    );
    this.begin();
  }

  currentRequest = () => ({
    ...this.pair(),
    ...(this.isRows ? {} : { level: this.level }),
    kinds: this.kind ? [this.kind] : null,
  });

  /** From the top: before the first page has come one row is assumed, so that it is asked for. */
  begin() {
    this.numRows = 0;
    this.isStopped = false;
    this.store.reset(this.currentRequest(), null);
    this.thumbs.reset(this.currentRequest());
    this.note.hidden = true;
    this.grid.element.classList.remove("lnb-broken");
    Object.assign(this.grid.state, { row: 0, column: 0, top: 0 });
    this.grid.scrollTo({ left: 0, top: 0 });
    this.grid.size(1, this.isRows ? Math.max(1, this.counts().num_columns) : 1, {
      anew: true,
      head: this.isRows ? 48 : 30,
    });
    this.status.textContent = "…";
    const kinds = this.kind ? `kinds=${JSON.stringify(this.kind)}` : "";
    this.code(this.isRows ? `.rows(${kinds}).read_all()` : `.${this.level}`, ` --${this.level}`);
  }

  /** The last row known is in sight, but not all are compared: go on. */
  more() {
    const { found } = this;
    if (
      !this.isRows ||
      !found ||
      found.is_finished ||
      this.isStopped ||
      !this.bar.hidden ||
      !["", "changed"].includes(this.kind) ||
      !this.numRows
    )
      return;
    this.store.want([this.numRows, this.numRows + 1], [0, 1], true, this.numRows + 1);
  }

  countAll = () => {
    this.counting(
      "changes.summary",
      this.pair(),
      ({ result }) => {
        this.know(result);
        this.busy();
        this.grid.size(this.numRows, this.counts().num_columns);
        this.paint();
      },
      (error) => {
        this.busy();
        this.paint();
        if (error.card?.kind !== "CancelledError") show(this.note, this.ctx.problem(error));
      },
    );
  };

  /** @param {number} row */
  openRow(row) {
    const page = this.pageAt(row);
    if (!page) return;
    const cells = page.columns.map((column, index) => ({
      name: column.name,
      ...page.cell(row, page.firstColumn + index),
    }));
    changeDetail(this.ctx, {
      level: this.level,
      pair: this.pair(),
      kinds: this.currentRequest().kinds,
      row,
      place: page.place(row),
      cells,
    });
  }
}

/**
 * The value of a cell and, where it changed, what it was: `old → new`, of a sentence its words, of
 * pictures both.
 * @param {Lnb.Recycled} cell @param {Lnb.Cell | undefined} value
 * @param {Lnb.Column | undefined} column
 * @param {(value: Lnb.Cell, old: boolean) => HTMLElement | null} pictureOf
 */
function fillChange(cell, value, column, pictureOf) {
  const { old } = value ?? {};
  const pictures = [old && pictureOf(old, true), value && pictureOf(value, false)];
  // While a picture is on its way, the cell is filled again.
  const filled = pictures.every((picture) => picture?.localName !== "i");
  if (!value || !old) {
    if (!value || !pictures[1]) return fillCell(cell, value, column);
    cell.replaceChildren(pictures[1]);
    return { filled, look: "lnb-look-binary lnb-look-picture", hint: value.text };
  }
  const words = value.spark || pictures.some(Boolean) ? null : wordDiff(old.text, value.text);
  if (words) {
    cell.replaceChildren(h("span.lnb-words", wordParts(words, AROUND)));
    return { filled: true, look: "lnb-look-changed" };
  }
  const texts = shownPair(old, value);
  const parts = [old, value].map((side, index) => {
    const element = h(index ? "ins" : "del", { dir: "auto" });
    const { look } = fillCell(element, { ...side, short: texts[index] }, column);
    element.className = look;
    if (pictures[index]) element.replaceChildren(pictures[index]);
    return element;
  });
  cell.replaceChildren(parts[0], h("i", { "aria-hidden": "true" }, "→"), parts[1]);
  const right = column?.look === "number" ? " lnb-right" : "";
  const hint = `${old.text} → ${value.text}`;
  return { filled, look: `lnb-look-changed${right}`, hint };
}
