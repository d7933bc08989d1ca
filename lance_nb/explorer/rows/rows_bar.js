// Above the grid: a filter with completion, how the rows are ordered, a finder of columns.

import {
  button,
  choice,
  count,
  field,
  h,
  onResize,
  plural,
  setAttribute,
  setText,
  show,
} from "../js/dom.js";
import { searchBox } from "../js/search_box.js";
import { suggestions } from "../js/suggestions.js";

/**
 * @typedef {ReturnType<typeof suggestions>} Suggestions
 * @typedef {{columns: string[], rows: number, skipped: number | null, fragments: number}} Reads see
 *   rows/row_query.py
 */

const LETTER = 7.3; // pixels of a letter in the box of the filter

export class RowsBar {
  /** @typedef {{where: string, bars: [number, number] | null}} Brush */
  /** @type {{base: string, by: Map<string, Brush>}} by column, and what else is in the box */
  brushes = { base: "", by: new Map() };
  estimated = "";
  counted = "";
  /** @type {string[]} */
  examples = [];
  isBrushed = false; // a brush moves, and what passes it is estimated
  /** @type {string | null} */
  hurried = null; // what was in the finder when Enter came before its list did

  /**
   * @param {Lnb.Context} ctx
   * @param {{criteria: Lnb.Look, query: () => Lnb.Args,
   *   changed: (change: Partial<Lnb.Look>) => void,
   *   showColumn: (at: number | null, raw: string) => void, choose: () => void, cancel: () => void,
   *   brushed: (conditions: import("./column_profiles.js").Conditions, filter: string) => void
   * }} grid
   *   `showColumn(null, raw)`: a column that is hidden; `brushed`: called before the rows are
   *   asked for
   */
  constructor(ctx, { criteria, query, changed, showColumn, choose, cancel, brushed }) {
    this.ctx = ctx;
    this.criteria = criteria;
    this.query = query;
    this.changed = changed;
    this.showColumn = showColumn;
    this.brushed = brushed;
    this.box = field("filter of rows, SQL", {
      class: "lnb-input lnb-filter",
      placeholder: "filter: SQL",
    });
    this.filterNote = h("span", { class: "lnb-filter-said", "aria-live": "polite" });
    this.clear = button("×", () => this.set(""), {
      class: "lnb-close",
      "aria-label": "clear the filter",
      hidden: true,
    });
    this.problem = h("div", { class: "lnb-filter-problem", role: "alert", hidden: true });
    this.lost = h("div", { class: "lnb-filter-lost", role: "status", hidden: true });
    this.plan = h("div", { class: "lnb-filter-plan", hidden: true });
    this.readLine = h("div", { class: "lnb-filter-reads", hidden: true });
    /** @type {Reads | null | undefined} */
    this.reads = null;
    this.chips = h("span", { class: "lnb-brushes" });
    this.crossedWords = h("span", { class: "lnb-soft" });
    this.cross = h(
      "div",
      { class: "lnb-filter-cross", hidden: true },
      this.chips,
      this.crossedWords,
    );
    this.find = field("find a column", {
      class: "lnb-input lnb-find",
      placeholder: "find a column…",
      size: "14",
    });
    this.system = button("Row ids", this.toggle, {
      "aria-pressed": "false",
      title: "show row id, row address, and the versions that created and last updated each row",
    });
    this.columns = button("Columns", choose, { title: "choose the columns that are shown (v)" });
    this.explain = button("Explain", this.toggleReads, {
      class: "lnb-link",
      hidden: true,
      "aria-expanded": "false",
      title: "what a filter reads, and what it skips",
    });
    this.stop = button("Cancel", cancel, { class: "lnb-link", hidden: true });
    this.search = searchBox({ criteria, changed });
    ctx.onScreen(({ offers, detail }) => {
      this.search.element.hidden = !offers?.includes("search");
      this.examples = detail?.schema ? filterExamples(detail.schema.lines) : [];
      this.paintExample();
    });
    ctx.onClose(onResize(this.box, this.paintExample));
    this.request = ctx.kernel.line();
    this.finder = suggestions(this.find, "columns", this.goTo);
    this.completion = suggestions(this.box, "columns for the filter", this.complete, this.typing);
    this.box.addEventListener("input", () => this.ask(this.box, this.typing(), this.completion));
    this.box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && !this.completion.list.hidden && !this.completion.moved())
        this.completion.offer([]); // Enter applies unless a line was chosen
      if (this.completion.key(event)) return;
      if (event.key === "Enter") this.apply();
      if (event.key === "Escape" && this.box.value) {
        event.preventDefault();
        this.set("");
      }
    });
    this.find.addEventListener("input", () => {
      this.hurried = null;
      this.ask(this.find, this.find.value.trim(), this.finder);
    });
    this.find.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (this.finder.key(event) || event.key !== "Enter" || !this.find.value.trim()) return;
      this.hurried = this.find.value.trim();
      this.ask(this.find, this.hurried, this.finder);
    });
    this.element = h(
      "div",
      { class: "lnb-rows-bar" },
      h(
        "div",
        { class: "lnb-rows-tools" },
        this.search.element,
        h("span", { class: "lnb-filter-box" }, this.box, this.completion.list, this.clear),
        this.filterNote,
        this.explain,
        this.stop,
        h("span", { class: "lnb-find-box" }, this.find, this.finder.list),
        this.columns,
        this.system,
      ),
      this.problem,
      this.lost,
      this.cross,
      this.plan,
      this.readLine,
    );
  }

  /** The longest example of a filter for which there is room. */
  paintExample = () => {
    const letters = this.box.clientWidth / LETTER - 2;
    const example = this.examples.find((text) => text.length <= letters);
    setAttribute(this.box, "placeholder", example ?? "filter");
  };

  /** @param {string} text */
  set(text) {
    this.box.value = text;
    this.apply();
  }

  /** Apply what is written in the box; what brushes put there before is text from now on. */
  apply() {
    this.brushes = { base: this.box.value.trim(), by: new Map() };
    this.send();
  }

  send() {
    const text = this.box.value.trim();
    this.clear.hidden = !text;
    this.problem.hidden = true;
    this.isBrushed = false;
    this.paintBrushes();
    this.brushed(this.conditionsOf(), text);
    this.changed({ filter: text || null });
  }

  /** What the filter is made of, by the column that a condition was chosen in. */
  conditionsOf({ base, by } = this.brushes) {
    /** @type {import("./column_profiles.js").Conditions} */
    const parts = base ? [[null, base]] : [];
    for (const [column, { where }] of by) parts.push([column, where]);
    return parts;
  }

  /**
   * One condition per column; a new one takes the place of the one before, null or the same bars
   * again take it away. One that `moves` is not applied yet: only its profiles are shown.
   * @param {string} column @param {string | null} where
   * @param {{bars?: [number, number] | null, moves?: boolean}} [how] the bars of its histogram
   */
  brush(column, where, { bars = null, moves = false } = {}) {
    if (this.box.value.trim() !== this.written())
      this.brushes = { base: this.box.value.trim(), by: new Map() };
    const next = { base: this.brushes.base, by: new Map(this.brushes.by) };
    const before = next.by.get(column);
    this.isBrushed = moves;
    const again = !moves && before?.bars && bars && String(before.bars) === String(bars);
    if (where && !again) next.by.set(column, { where, bars });
    else next.by.delete(column);
    if (moves) return this.brushed(this.conditionsOf(next), this.written(next));
    this.brushes = next;
    this.box.value = this.written();
    return this.send();
  }

  written({ base, by } = this.brushes) {
    const own = base && by.size && /\bor\b/i.test(base) ? `(${base})` : base;
    return [own, ...[...by.values()].map(({ where }) => where)].filter(Boolean).join(" AND ");
  }

  /** Each condition that was chosen in a histogram, with a button that takes it away. */
  paintBrushes() {
    const { by } = this.brushes;
    show(
      this.chips,
      [...by].map(([column, { where }]) =>
        button(
          [h("code", {}, where), h("i", { "aria-hidden": "true" }, "×")],
          () => this.brush(column, null),
          {
            class: "lnb-brush-chip",
            title: `${where}\nclear this condition`,
            "aria-label": `clear the condition ${where}`,
          },
        ),
      ),
    );
    this.crossed(this.box.value.trim() ? (this.crossedWords.textContent ?? "") : "");
  }

  /** @param {string} words */
  crossed(words) {
    this.crossedWords.textContent = words;
    this.cross.hidden = !this.brushes.by.size && !words;
  }

  toggle = () => {
    this.changed({ system: !this.criteria.system });
  };

  toggleReads = () => {
    const isShut = this.explain.getAttribute("aria-expanded") !== "true";
    this.explain.setAttribute("aria-expanded", String(isShut));
    this.paintReads();
  };

  paintReads() {
    this.explain.hidden = !this.reads;
    const isOpen = this.explain.getAttribute("aria-expanded") === "true";
    this.readLine.textContent = this.reads && isOpen ? readWords(this.reads) : "";
    this.readLine.hidden = !this.readLine.textContent;
  }

  /** The name that is being typed where the caret stands. */
  typing = () => {
    const before = this.box.value.slice(0, this.box.selectionStart ?? 0);
    if ((before.split("'").length - 1) % 2) return ""; // within a text
    return /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? "";
  };

  /** @param {Lnb.Json} line */
  complete = (line) => {
    const position = this.box.selectionStart ?? 0;
    const from = position - this.typing().length;
    this.box.setRangeText(`${line.sql} `, from, position, "end");
  };

  /**
   * Show a column; the box is empty again, it does not hold anything back.
   * @param {Lnb.Json} line
   */
  goTo = (line) => {
    this.find.value = "";
    this.hurried = null;
    this.showColumn(line.at, line.raw);
  };

  /** @param {Suggestions} list @param {Lnb.Json[]} columns */
  offer(list, columns) {
    if (list === this.finder && columns.length && this.hurried === this.find.value.trim())
      this.goTo(columns[0]);
    else list.offer(columns);
  }

  /** @param {HTMLInputElement} input @param {string} text @param {Suggestions} list */
  ask(input, text, list) {
    if (!text || this.ctx.kernel.state === "static") return list.offer([]);
    const now = () => (input === this.find ? this.find.value.trim() : this.typing());
    return this.request(
      "rows.columns",
      { ...this.ctx.place(), text, ...this.query() },
      ({ result }) => text === now() && this.offer(list, result.columns),
      () => list.offer([]),
    );
  }

  /** Offer a card that builds an index. @param {Lnb.Args} index */
  buildTools(index) {
    if (!this.ctx.has("stage")) return null;
    const card = { verb: "index", ...index };
    return button("Build an index…", () => this.ctx.go("stage", { card }), {
      class: "lnb-link",
      title: "stage the building of an index; its card says what it costs",
    });
  }

  /** @param {Lnb.Near} near */
  nearTools(near) {
    /** @returns {void} */
    const change = () =>
      this.changed({
        near: {
          ...near,
          k: Math.max(1, Math.min(1000, Math.round(Number(k.value)) || 10)),
          metric: metric.value,
          exact: method.value === "exact",
        },
      });
    const k = field("how many neighbours", {
      class: "lnb-input lnb-near-k",
      type: "number",
      min: "1",
      max: "1000",
      on: { change },
    });
    k.value = String(near.k);
    const metrics = ["l2", "cosine", "dot"];
    const metric = choice(
      "metric",
      near.metric,
      metrics.map((name) => [name, name]),
      change,
    );
    /** @type {[string, string][]} */
    const methods = [
      ["index", "by index, if there is one"],
      ["exact", "exact"],
    ];
    const exact = near.exact ? "exact" : "index";
    const method = choice("how neighbours are found", exact, methods, change);
    const recall = button("Recall", () => this.compareIndex(near), {
      class: "lnb-link",
      title: "compare what the index finds with an exact search",
    });
    const to = `to row ${near.row} by ${near.column}`;
    return h("span", { class: "lnb-near" }, to, k, metric, method, recall);
  }

  /** @param {Lnb.Near} near */
  async compareIndex(near) {
    setText(this.filterNote, "comparing…");
    try {
      const args = { ...this.ctx.place(), filter: this.criteria.filter, near };
      const { result } = await this.ctx.kernel.ask("rows.recall", args);
      setText(this.filterNote, result.words);
    } catch (error) {
      setText(this.filterNote, /** @type {Lnb.Failure} */ (error).message);
    }
  }

  /** What the filter shown is made of. */
  conditions() {
    if (this.criteria.filter === (this.written() || null)) return this.conditionsOf();
    return this.criteria.filter
      ? this.conditionsOf({ base: this.criteria.filter, by: new Map() })
      : [];
  }

  /** The bars of a column that were chosen. @param {string} column */
  barsOf = (column) => this.brushes.by.get(column)?.bars ?? null;

  /** Show the profiles of the filter once more, after a brush was given up. */
  settle() {
    this.isBrushed = false;
    this.estimated = "";
    this.filterNote.textContent = this.counted;
    this.brushed(this.conditionsOf(), this.written());
  }

  /**
   * Say about how many rows pass a filter, as long as they are not counted.
   * @param {import("./column_profiles.js").Passing} passing @param {string} text
   */
  estimate({ sampled, passing, num_rows: rows }, text) {
    if (this.stop.hidden && (this.query().filter ?? "") === text) return;
    const about = Math.round((rows * passing) / Math.max(1, sampled));
    const digits = 10 ** Math.max(0, String(about).length - 3);
    this.estimated = `about ${count(Math.round(about / digits) * digits)} pass, by a sample`;
    this.filterNote.textContent = this.estimated;
  }

  /** Put the keyboard in the filter. */
  focus = () => this.box.focus();

  /** Say what became of the rows that were selected. @param {string} words */
  note(words) {
    this.lost.textContent = words;
    this.lost.hidden = !words;
  }

  /**
   * Say that rows are looked for, and how far that is.
   * @param {number} done @param {number} total
   */
  busy(done, total) {
    const far = total ? `${Math.floor((100 * done) / total)} %` : "…";
    this.filterNote.textContent = this.estimated ? `${this.estimated} · ${far}` : far;
    this.stop.hidden = false;
  }

  /**
   * Say what is shown now: `{num_rows, num_columns, words, reads, search}`.
   * @param {{num_rows: number, num_columns: number, words: string, reads: Reads | null,
   *   index?: Lnb.Args | null, search: {columns: {raw: string, name: string}[]} | null}} result
   *   `index`: what a card needs to build the index that was missing
   */
  say({ num_rows: numRows, num_columns: numColumns, words, reads, search: searched, index }) {
    this.search.follow();
    this.stop.hidden = true;
    this.problem.hidden = true;
    if (!this.isBrushed) this.estimated = "";
    this.system.setAttribute("aria-pressed", String(this.criteria.system));
    setText(
      this.columns,
      this.criteria.choice?.shown ? `${plural(numColumns, "column")}` : "Columns",
    );
    this.columns.setAttribute("aria-pressed", String(Boolean(this.criteria.choice)));
    this.counted = this.criteria.filter && !this.criteria.near ? `${count(numRows)} pass` : "";
    this.filterNote.textContent = this.estimated || this.counted;
    const other = this.criteria.order || this.criteria.near || this.criteria.within;
    const back = other
      ? button(
          this.criteria.near || this.criteria.within ? "Back to all rows" : "Unsorted",
          () => this.changed({ order: null, near: null, within: null }),
          { class: "lnb-link" },
        )
      : null;
    show(
      this.plan,
      this.criteria.within ? h("span", {}, this.criteria.within.label) : null,
      words ? h("span", {}, words) : null,
      this.criteria.near && this.nearTools(this.criteria.near),
      searched && this.search.tools(searched.columns),
      index && this.buildTools(index),
      back,
    );
    this.plan.hidden = !this.plan.firstChild;
    this.reads = reads;
    this.paintReads();
  }

  /** Say what is wrong; what was shown stays. @param {Lnb.Failure} error */
  fail(error) {
    this.stop.hidden = true;
    this.problem.hidden = false;
    this.isBrushed = false;
    this.estimated = "";
    this.filterNote.textContent = "";
    const still =
      this.criteria.filter && this.criteria.filter !== this.box.value.trim()
        ? h("span", {}, "Still shown: ", h("code", {}, this.criteria.filter))
        : null;
    show(
      this.problem,
      h("b", {}, error.card?.title ?? "The filter cannot be used"),
      h("span", {}, error.message),
      still,
    );
  }
}

/**
 * Examples of filters by columns of the dataset, the longest first.
 * @param {Lnb.SchemaLine[]} lines
 */
export function filterExamples(lines) {
  const columns = lines.filter(({ depth, name }) => !depth && /^[a-z_]\w{0,20}$/i.test(name));
  const named = (/** @type {RegExp} */ type) => columns.find((column) => type.test(column.type));
  const [real, text, whole] = [/^(float|double|decimal)/, /string/, /^u?int/].map(named);
  const parts = [
    real ? `${real.name} > 0.5` : whole && `${whole.name} > 10`,
    text && `${text.name} LIKE '%a%'`,
  ].filter(Boolean);
  const examples = parts.length ? [parts.join(" AND "), ...parts] : [];
  return examples.map((example) => `filter: ${example}`);
}

/** @param {Reads} reads */
function readWords({ columns, rows, skipped, fragments }) {
  const where =
    `reads ${columns.join(", ")} of ${plural(rows, "row")} ` +
    `in ${plural(fragments, "fragment")}`;
  const pruned =
    skipped === null
      ? "these files have no page statistics: no row is skipped"
      : `${plural(skipped, "row")} skipped by page statistics`;
  return `${where} · ${pruned} · other columns only where rows pass`;
}
