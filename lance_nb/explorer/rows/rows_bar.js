// Above the grid: a filter with completion, how the rows are ordered, a finder of columns.

import { count, h, plural, setText, show } from "../js/dom.js";
import { searchBox } from "../js/search_box.js";
import { suggestions } from "../js/suggestions.js";

/**
 * @typedef {ReturnType<typeof suggestions>} Suggestions
 * @typedef {{columns: string[], rows: number, skipped: number | null, fragments: number}} Reads see
 *   rows/row_query.py
 */

/**
 * @param {Lnb.Context} ctx
 * @param {{asked: Lnb.Look, lens: () => Lnb.Args, changed: (wanted: Partial<Lnb.Look>) => void,
 *   found: (at: number | null, raw: string) => void, choose: () => void, cancel: () => void,
 *   brushed: (conditions: import("./column_profiles.js").Conditions, filter: string) => void}} grid
 *   `found(null, raw)`: a column that is hidden; `brushed`: called before the rows are asked for
 */
export function rowsBar(ctx, { asked, lens, changed, found, choose, cancel, brushed }) {
  const filter = h("input", {
    class: "lnb-input lnb-filter",
    placeholder: "filter: id > 10 AND name LIKE 'a%'",
    "aria-label": "filter of rows, SQL",
    spellcheck: "false",
    autocomplete: "off",
  });
  const filterNote = h("span", { class: "lnb-filter-said", "aria-live": "polite" });
  const clear = h(
    "button",
    {
      class: "lnb-close",
      type: "button",
      "aria-label": "clear the filter",
      hidden: true,
      on: { click: () => set("") },
    },
    "×",
  );
  const problem = h("div", { class: "lnb-filter-problem", role: "alert", hidden: true });
  const lost = h("div", { class: "lnb-filter-lost", role: "status", hidden: true });
  const plan = h("div", { class: "lnb-filter-plan", hidden: true });
  const chips = h("span", { class: "lnb-brushes" });
  const crossed = h("span", { class: "lnb-soft" });
  const cross = h("div", { class: "lnb-filter-cross", hidden: true }, chips, crossed);
  const find = h("input", {
    class: "lnb-input lnb-find",
    placeholder: "find a column…",
    "aria-label": "find a column",
    spellcheck: "false",
    autocomplete: "off",
    size: "14",
  });
  const system = h(
    "button",
    {
      class: "lnb-button",
      type: "button",
      "aria-pressed": "false",
      title: "show row id, row address, and the versions that created and last updated each row",
      on: { click: toggle },
    },
    "Row ids",
  );
  const columns = h(
    "button",
    {
      class: "lnb-button",
      type: "button",
      title: "choose the columns that are shown (v)",
      on: { click: choose },
    },
    "Columns",
  );
  const stop = h(
    "button",
    { class: "lnb-link", type: "button", hidden: true, on: { click: cancel } },
    "Cancel",
  );
  const search = searchBox({ asked, changed });
  ctx.onScreen(({ offers }) => {
    search.element.hidden = !offers?.includes("search");
  });
  const request = ctx.kernel.line();
  const finder = suggestions(find, "columns", goTo);
  const completion = suggestions(filter, "columns for the filter", complete, typing);
  /** @typedef {{where: string, bars: [number, number] | null}} Brush */
  /** @type {{base: string, by: Map<string, Brush>}} by column, and what else is in the box */
  let brushes = { base: "", by: new Map() };
  let estimate = "";
  let counted = "";
  let isBrushed = false; // a brush moves, and what passes it is estimated
  /** @type {string | null} */
  let hurried = null; // what was in the finder when Enter came before its list did

  /** @param {string} text */
  function set(text) {
    filter.value = text;
    apply();
  }

  /** Apply what is written in the box; what brushes put there before is text from now on. */
  function apply() {
    brushes = { base: filter.value.trim(), by: new Map() };
    send();
  }

  function send() {
    const text = filter.value.trim();
    clear.hidden = !text;
    problem.hidden = true;
    isBrushed = false;
    paintBrushes();
    brushed(conditions(), text);
    changed({ filter: text || null });
  }

  /** What the filter is made of, by the column that a condition was chosen in. */
  function conditions({ base, by } = brushes) {
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
  function brush(column, where, { bars = null, moves = false } = {}) {
    if (filter.value.trim() !== written()) brushes = { base: filter.value.trim(), by: new Map() };
    const next = { base: brushes.base, by: new Map(brushes.by) };
    const before = next.by.get(column);
    isBrushed = moves;
    const again = !moves && before?.bars && bars && String(before.bars) === String(bars);
    if (where && !again) next.by.set(column, { where, bars });
    else next.by.delete(column);
    if (moves) return brushed(conditions(next), written(next));
    brushes = next;
    filter.value = written();
    return send();
  }

  function written({ base, by } = brushes) {
    const own = base && by.size && /\bor\b/i.test(base) ? `(${base})` : base;
    return [own, ...[...by.values()].map(({ where }) => where)].filter(Boolean).join(" AND ");
  }

  /** Each condition that was chosen in a histogram, with a button that takes it away. */
  function paintBrushes() {
    const { by } = brushes;
    show(
      chips,
      [...by].map(([column, { where }]) =>
        h(
          "button",
          {
            class: "lnb-brush-chip",
            type: "button",
            title: `${where}\nclear this condition`,
            "aria-label": `clear the condition ${where}`,
            on: { click: () => brush(column, null) },
          },
          h("code", {}, where),
          h("i", { "aria-hidden": "true" }, "×"),
        ),
      ),
    );
    paintCrossed(filter.value.trim() ? (crossed.textContent ?? "") : "");
  }

  /** @param {string} words */
  function paintCrossed(words) {
    crossed.textContent = words;
    cross.hidden = !brushes.by.size && !words;
  }

  function toggle() {
    changed({ system: !asked.system });
  }

  /** The name that is being typed where the caret stands. */
  function typing() {
    const before = filter.value.slice(0, filter.selectionStart ?? 0);
    if ((before.split("'").length - 1) % 2) return ""; // within a text
    return /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? "";
  }

  /** @param {Lnb.Json} line */
  function complete(line) {
    const position = filter.selectionStart ?? 0;
    const from = position - typing().length;
    filter.setRangeText(`${line.sql} `, from, position, "end");
  }

  /**
   * Show a column; the box is empty again, it does not hold anything back.
   * @param {Lnb.Json} line
   */
  function goTo(line) {
    find.value = "";
    hurried = null;
    found(line.at, line.raw);
  }

  /** @param {Suggestions} list @param {Lnb.Json[]} columns */
  function offer(list, columns) {
    if (list === finder && columns.length && hurried === find.value.trim()) goTo(columns[0]);
    else list.offer(columns);
  }

  /** @param {HTMLInputElement} input @param {string} text @param {Suggestions} list */
  function ask(input, text, list) {
    const { branch, version } = ctx.screen();
    if (!text || ctx.kernel.state === "static") return list.offer([]);
    const now = () => (input === find ? find.value.trim() : typing());
    return request(
      "rows.columns",
      { branch, version, text, ...lens() },
      ({ result }) => text === now() && offer(list, result.columns),
      () => list.offer([]),
    );
  }

  filter.addEventListener("input", () => ask(filter, typing(), completion));
  filter.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && !completion.list.hidden && !completion.moved())
      completion.offer([]); // Enter applies unless a line was chosen
    if (completion.key(event)) return;
    if (event.key === "Enter") apply();
    if (event.key === "Escape" && filter.value) {
      event.preventDefault();
      set("");
    }
  });
  find.addEventListener("input", () => {
    hurried = null;
    ask(find, find.value.trim(), finder);
  });
  find.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (finder.key(event) || event.key !== "Enter" || !find.value.trim()) return;
    hurried = find.value.trim();
    ask(find, hurried, finder);
  });

  return {
    element: h(
      "div",
      { class: "lnb-rows-bar" },
      h(
        "div",
        { class: "lnb-rows-tools" },
        search.element,
        h("span", { class: "lnb-filter-box" }, filter, completion.list, clear),
        filterNote,
        stop,
        h("span", { class: "lnb-find-box" }, find, finder.list),
        columns,
        system,
      ),
      problem,
      lost,
      cross,
      plan,
    ),
    filter: set,
    search,
    brush,
    /** What the filter shown is made of. */
    conditions() {
      if (asked.filter === (written() || null)) return conditions();
      return asked.filter ? conditions({ base: asked.filter, by: new Map() }) : [];
    },
    /** The bars of a column that were chosen. @param {string} column */
    barsOf: (column) => brushes.by.get(column)?.bars ?? null,
    /** Show the profiles of the filter once more, after a brush was given up. */
    settle() {
      isBrushed = false;
      estimate = "";
      filterNote.textContent = counted;
      brushed(conditions(), written());
    },
    /** Say what the histograms are of. @param {string} words */
    crossed: paintCrossed,
    /**
     * Say about how many rows pass a filter, as long as they are not counted.
     * @param {import("./column_profiles.js").Passing} passing @param {string} text
     */
    estimate({ sampled, passing, num_rows: rows }, text) {
      if (stop.hidden && (lens().filter ?? "") === text) return;
      const about = Math.round((rows * passing) / Math.max(1, sampled));
      const digits = 10 ** Math.max(0, String(about).length - 3);
      estimate = `about ${count(Math.round(about / digits) * digits)} pass, by a sample`;
      filterNote.textContent = estimate;
    },
    /** Put the keyboard in the filter. */
    focus: () => filter.focus(),
    /** Say what became of the rows that were selected. @param {string} words */
    note(words) {
      lost.textContent = words;
      lost.hidden = !words;
    },
    /**
     * Say that rows are looked for, and how far that is.
     * @param {number} done @param {number} total
     */
    busy(done, total) {
      const far = total ? `${Math.floor((100 * done) / total)} %` : "…";
      filterNote.textContent = estimate ? `${estimate} · ${far}` : far;
      stop.hidden = false;
    },
    /**
     * Say what is shown now: `{num_rows, num_columns, words, reads, search}`.
     * @param {{num_rows: number, num_columns: number, words: string, reads: Reads | null,
     *   index?: Lnb.Args | null, search: {columns: {raw: string, name: string}[]} | null}} result
     *   `index`: what a card needs to build the index that was missing
     */
    say({ num_rows: numRows, num_columns: numColumns, words, reads, search: searched, index }) {
      search.follow();
      stop.hidden = true;
      problem.hidden = true;
      if (!isBrushed) estimate = "";
      system.setAttribute("aria-pressed", String(asked.system));
      setText(columns, asked.choice?.shown ? `${plural(numColumns, "column")}` : "Columns");
      columns.setAttribute("aria-pressed", String(Boolean(asked.choice)));
      counted = asked.filter && !asked.near ? `${count(numRows)} pass` : "";
      filterNote.textContent = estimate || counted;
      const other = asked.order || asked.near || asked.within;
      const back = other
        ? h(
            "button",
            {
              class: "lnb-link",
              type: "button",
              on: { click: () => changed({ order: null, near: null, within: null }) },
            },
            asked.near || asked.within ? "Back to all rows" : "Unsorted",
          )
        : null;
      show(
        plan,
        asked.within ? h("span", {}, asked.within.label) : null,
        words ? h("span", {}, words) : null,
        asked.near && nearTools(asked.near),
        searched && search.tools(searched.columns),
        index && buildTools(index),
        back,
        reads ? h("span", {}, readWords(reads)) : null,
      );
      plan.hidden = !plan.firstChild;
    },
    /** Say what is wrong; what was shown stays. @param {Lnb.Failure} error */
    fail(error) {
      stop.hidden = true;
      problem.hidden = false;
      isBrushed = false;
      estimate = "";
      filterNote.textContent = "";
      const still =
        asked.filter && asked.filter !== filter.value.trim()
          ? h("span", {}, "Still shown: ", h("code", {}, asked.filter))
          : null;
      show(
        problem,
        h("b", {}, error.card?.title ?? "The filter cannot be used"),
        h("span", {}, error.message),
        still,
      );
    },
  };

  /** Offer a card that builds an index. @param {Lnb.Args} index */
  function buildTools(index) {
    if (!ctx.has("stage")) return null;
    const card = { verb: "index", ...index };
    return h(
      "button",
      {
        class: "lnb-link",
        type: "button",
        title: "stage the building of an index; its card says what it costs",
        on: { click: () => ctx.go("stage", { card }) },
      },
      "Build an index…",
    );
  }

  /** @param {Lnb.Near} near */
  function nearTools(near) {
    /** @returns {void} */
    const change = () =>
      changed({
        near: {
          ...near,
          k: Math.max(1, Math.min(1000, Math.round(Number(k.value)) || 10)),
          metric: metric.value,
          exact: method.value === "exact",
        },
      });
    /** @type {HTMLInputElement} */
    const k = h("input", {
      class: "lnb-input lnb-near-k",
      type: "number",
      min: "1",
      max: "1000",
      "aria-label": "how many neighbours",
      on: { change, keydown: (event) => event.stopPropagation() },
    });
    k.value = String(near.k);
    const metric = h(
      "select",
      {
        class: "lnb-input",
        "aria-label": "metric",
        on: { change, keydown: (event) => event.stopPropagation() },
      },
      ["l2", "cosine", "dot"].map((name) =>
        h("option", { value: name, selected: name === near.metric }, name),
      ),
    );
    const method = h(
      "select",
      {
        class: "lnb-input",
        "aria-label": "how neighbours are found",
        on: { change, keydown: (event) => event.stopPropagation() },
      },
      [
        h("option", { value: "index", selected: !near.exact }, "by index, if there is one"),
        h("option", { value: "exact", selected: Boolean(near.exact) }, "exact"),
      ],
    );
    const recall = h(
      "button",
      {
        class: "lnb-link",
        type: "button",
        title: "compare what the index finds with an exact search",
        on: { click: () => compareIndex(near) },
      },
      "Recall",
    );
    const to = `to row ${near.row} by ${near.column}`;
    return h("span", { class: "lnb-near" }, to, k, metric, method, recall);
  }

  /** @param {Lnb.Near} near */
  async function compareIndex(near) {
    const { branch, version } = ctx.screen();
    setText(filterNote, "comparing…");
    try {
      const { filter } = asked;
      const { result } = await ctx.kernel.ask("rows.recall", { branch, version, filter, near });
      setText(filterNote, result.words);
    } catch (error) {
      setText(filterNote, /** @type {Lnb.Failure} */ (error).message);
    }
  }
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
