// The expectations of a dataset: what they found at the version shown, the version that broke one,
// a form for a new one, and the gate of staging.

import { count, h, plural, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { longAction } from "../js/long_action.js";
import { sampleTable } from "../js/sample_table.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";

/** @type {Record<string, string>} */
const SIGNS = { pass: "✓", fail: "✗", unknown: "?" };
/** @type {Record<string, string>} */
const WORDS = { pass: "passed", fail: "failed", unknown: "cannot be evaluated" };

/**
 * The kinds of expectations, and the boxes of each: name of the field, label, kind of box.
 * @type {Record<string, [words: string, ...fields: [string, string, string][]]>}
 */
const KINDS = {
  check: ["every row", ["sql", "condition", "text"]],
  not_null: ["no NULL in", ["column", "column", "column"]],
  unique: ["unique key", ["columns", "columns of the key, with commas", "columns"]],
  row_count: ["number of rows", ["min", "at least", "number"], ["max", "at most", "number"]],
  drift: [
    "drift of",
    ["column", "column", "column"],
    ["max", "largest index", "number"],
    ["against", "against", "text"],
  ],
  reference: [
    "values of another dataset",
    ["column", "column", "column"],
    ["uri", "the other dataset", "text"],
    ["to", "its column", "text"],
  ],
};
/** @type {Record<string, string>} */
const FIRST = { max: "0.25", against: "previous" };
const NOT_BOUND =
  "Other writers, such as pylance, Spark and ds.insert, do not know the gate and are not bound " +
  "by it.";
let instances = 0;

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountExpectations(el, ctx) {
  const uid = `lnb-ex${(instances += 1)}`;
  const guard = writeGuard(ctx);
  const head = h("div", { class: "lnb-ex-head" });
  const progress = h("div", { class: "lnb-ex-progress" });
  const status = h("p", { class: "lnb-ex-status", role: "status" });
  const list = h("ul", { class: "lnb-ex-list", "aria-label": "expectations" });
  const out = h("div", { class: "lnb-ex-out" });
  const form = addForm();
  el.append(
    h(
      "div",
      { class: "lnb-ex", tabindex: "0", role: "region", "aria-label": "checks" },
      ctx.writes ? null : h("p", {}, lockButton(ctx)),
      head,
      progress,
      status,
      list,
      form.element,
      out,
    ),
  );
  /** @type {Lnb.Json} */
  let state = null;
  /** @type {Lnb.Json} what was found at the version shown */
  let outcomesShown = null;
  let place = "";
  let turn = 0;
  /** @type {number | null} a version at which something fails, before the state is here */
  let outcomeAsked = null;

  /** @param {string} words @param {() => unknown} act @param {string | null} [title] */
  const button = (words, act, title = null) =>
    h("button", { class: "lnb-button", type: "button", title, on: { click: act } }, words);

  async function load() {
    if (ctx.kernel.state === "static") return;
    const { branch, version } = ctx.screen();
    const mine = (turn += 1);
    try {
      const { result } = await ctx.kernel.ask("checks.state", { branch }, { quiet: true });
      if (mine !== turn) return;
      const same = state?.key === result.key && place === `${branch}:${version}`;
      state = result;
      place = `${branch}:${version}`;
      form.offer(result.columns ?? []);
      if (!same) outcomesShown = null;
      paint();
      if (outcomeAsked !== null) {
        const bad = outcomeAsked;
        outcomeAsked = null;
        await run();
        firstBad(bad);
      } else if (!same && result.expectations.length) run();
    } catch (error) {
      show(progress, ctx.problem(/** @type {Lnb.Failure} */ (error), load));
    }
  }

  async function run() {
    const { branch, version } = ctx.screen();
    const result = await longAction(ctx, progress, {
      type: "checks.run",
      args: { branch, version },
      words: "Checking…",
      noun: "expectation",
    });
    if (!result || place !== `${branch}:${version}`) return;
    outcomesShown = result;
    ctx.code(result.code);
    paint();
  }

  function paint() {
    const total = state.expectations.length;
    const { branch } = ctx.screen();
    show(
      head,
      h(
        "strong",
        {},
        outcomesShown?.sentence ?? (total ? plural(total, "expectation") : "No expectations"),
      ),
      total ? button("Run now", run, "Evaluate the expectations at the version shown") : null,
      h(
        "span",
        { class: "lnb-ex-gate", title: NOT_BOUND },
        `gate of staging: ${state.gate ? "closed" : "open"} `,
        total || state.gate
          ? guard.button(state.gate ? "Open the gate" : "Close the gate", () =>
              write("checks.gate", { closed: !state.gate }, "Committing…"),
            )
          : null,
      ),
    );
    const lines = state.expectations.map((/** @type {Lnb.Json} */ expectation) =>
      line(expectation, branch),
    );
    const damaged = state.problems.map((/** @type {Lnb.Json} */ problem) =>
      h(
        "li",
        { class: "lnb-ex-one lnb-ex-unknown" },
        h("i", { "aria-hidden": "true" }, "?"),
        h("b", {}, problem.label),
        h("span", { class: "lnb-ex-detail" }, problem.problem),
        guard.button("Remove", () => write("checks.remove", { name: problem.name }, "Removing…")),
      ),
    );
    show(
      list,
      total + damaged.length
        ? [lines, damaged].flat()
        : h(
            "li",
            { class: "lnb-faint" },
            "Expect something of every version, such as score BETWEEN 0 AND 1: versions that " +
              "pass and fail are marked on the timeline.",
          ),
      state.gate
        ? h(
            "li",
            { class: "lnb-faint" },
            `The gate is closed: the Stage tab refuses a ` +
              `commit that breaks an expectation. ${NOT_BOUND}`,
          )
        : null,
    );
  }

  /** @param {Lnb.Json} expectation @param {string | null} branch */
  function line(expectation, branch) {
    const outcome = outcomesShown?.outcomes.find(
      (/** @type {Lnb.Json} */ outcome_) => outcome_.name === expectation.name,
    );
    const state = outcome?.status ?? "none";
    return h(
      "li",
      { class: `lnb-ex-one lnb-ex-${state}`, "data-name": expectation.name },
      h("i", { "aria-hidden": "true" }, SIGNS[state] ?? "·"),
      h("b", {}, expectation.name),
      h("code", {}, expectation.statement),
      h("span", { class: "lnb-offscreen" }, WORDS[state] ?? "not checked"),
      h("span", { class: "lnb-ex-detail" }, outcome?.detail ?? ""),
      state === "fail" && outcome.rows
        ? button(
            "Show rows",
            () => rows(expectation.name, ctx.screen().version),
            "The rows that fail here",
          )
        : null,
      state === "fail"
        ? button(
            "Find the first",
            () => bisect(expectation.name, branch, ctx.screen().version),
            "Find the first version at which it fails, by binary search",
          )
        : null,
      guard.button("Remove", () => write("checks.remove", { name: expectation.name }, "Removing…")),
    );
  }

  /** What failed first up to a version that fails. @param {number} bad */
  async function firstBad(bad) {
    const { branch } = ctx.screen();
    const outcomes = outcomesShown && ctx.screen().version === bad ? outcomesShown.outcomes : null;
    let failing = outcomes?.find((/** @type {Lnb.Json} */ outcome) => outcome.status === "fail");
    if (!failing) {
      const result = await longAction(ctx, out, {
        type: "checks.run",
        args: { branch, version: bad },
        words: "Checking…",
        noun: "expectation",
      });
      failing = result?.outcomes.find(
        (/** @type {Lnb.Json} */ outcome) => outcome.status === "fail",
      );
    }
    if (failing) bisect(failing.name, branch, bad);
  }

  /** @param {string} name @param {string | null} branch @param {number} bad */
  async function bisect(name, branch, bad) {
    const result = await longAction(ctx, out, {
      type: "checks.bisect",
      args: { branch, name, bad },
      words: `Searching the first version at which ${name} fails…`,
      again: () => bisect(name, branch, bad),
    });
    if (!result) return;
    ctx.code(result.code);
    ctx.announce(result.sentence);
    const first = result.first_bad;
    const go = { branch, version: first };
    show(
      out,
      h(
        "section",
        { class: "lnb-ex-bisect", "aria-label": `first version at which ${name} fails` },
        h("h4", {}, first === null ? "It does not fail" : `${name} fails first at ${result.label}`),
        h("p", {}, result.sentence),
        result.outcome?.detail ? h("p", { class: "lnb-ex-detail" }, result.outcome.detail) : null,
        first === null
          ? null
          : h(
              "p",
              { class: "lnb-ex-acts" },
              button(`Go to ${result.label}`, () => ctx.travel(go)),
              result.last_good !== null && ctx.has("changes")
                ? button("What changed there", () =>
                    ctx.go("changes", { a: { branch, version: result.last_good }, b: go }),
                  )
                : null,
              inGrid(result.outcome, go),
            ),
        sampleOf(result),
        h(
          "details",
          {},
          h("summary", {}, `${plural(result.tried.length, "version")} checked`),
          h(
            "ul",
            { class: "lnb-ex-tried" },
            result.tried.map((/** @type {Lnb.Json} */ trial) =>
              h(
                "li",
                {},
                `${trial.holds === null ? "?" : trial.holds ? "✓" : "✗"} version ${trial.version} `,
                h("small", {}, [trial.operation, trial.message].filter(Boolean).join(" · ")),
              ),
            ),
          ),
        ),
      ),
    );
    out.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} name @param {number} version */
  async function rows(name, version) {
    const { branch } = ctx.screen();
    const result = await longAction(ctx, out, {
      type: "checks.rows",
      args: { branch, version, name },
      words: "Reading…",
      noun: "expectation",
    });
    if (!result) return;
    show(
      out,
      h(
        "section",
        { class: "lnb-ex-bisect", "aria-label": `rows for which ${name} fails` },
        sampleOf(result) ?? h("p", {}, "No row fails."),
        h("p", { class: "lnb-ex-acts" }, inGrid(result.outcome, { branch, version })),
      ),
    );
    out.scrollIntoView({ block: "nearest" });
  }

  /** @param {Lnb.Json} result */
  function sampleOf({ sample, outcome }) {
    if (!sample) return null;
    const shown = sample.rows.length;
    const words =
      outcome.rows > shown
        ? `the first ${count(shown)} of ${plural(outcome.rows, "row")} that fail`
        : `${plural(shown, "row")} that fail${shown === 1 ? "s" : ""}`;
    return sampleTable({ label: words, sign: "✗", ...sample });
  }

  /** @param {Lnb.Json} outcome @param {Lnb.Place} place */
  function inGrid(outcome, place) {
    if (!outcome?.filter || !ctx.has("rows")) return null;
    return button("Filter the grid for them", () => {
      const { branch, version } = ctx.screen();
      if (place.version !== version || place.branch !== branch) ctx.travel(place);
      ctx.go("rows", { filter: outcome.filter });
    });
  }

  /** @param {string} type @param {Lnb.Args} args @param {string} words */
  async function write(type, args, words) {
    const { branch } = ctx.screen();
    const result = await longAction(ctx, progress, {
      type,
      args: { branch, ...args },
      words,
      again: load,
    });
    if (!result) return false;
    show(status, `✓ ${result.words}`);
    ctx.announce(result.words);
    ctx.code(result.code);
    ctx.travel({ branch: result.branch, version: result.version });
    return true;
  }

  function addForm() {
    const kind = h(
      "select",
      {
        class: "lnb-input",
        "aria-label": "kind of expectation",
        on: { change: () => fields(), keydown: (event) => event.stopPropagation() },
      },
      Object.entries(KINDS).map(([value, [words]]) => h("option", { value }, words)),
    );
    const boxes = h("span", { class: "lnb-ex-boxes" });
    const name = box("name", "name (optional)", "");
    const note = h("p", { class: "lnb-ex-told", "aria-live": "polite" });
    const acts = h("span", {});
    const names = h("datalist", { id: `${uid}-columns` });
    const request = ctx.kernel.line();
    /** @type {Map<string, HTMLInputElement>} */
    const inputs = new Map();

    /**
     * @param {string} field @param {string} label @param {string} value @param {string} [of]
     * @returns {HTMLInputElement}
     */
    function box(field, label, value, of = "text") {
      return h("input", {
        class: `lnb-input lnb-ex-${field}`,
        "aria-label": label,
        placeholder: label,
        value,
        spellcheck: "false",
        autocomplete: "off",
        list: of.startsWith("column") ? `${uid}-columns` : null,
        inputmode: of === "number" ? "decimal" : null,
        on: { input: check, keydown: onKey },
      });
    }

    function fields() {
      inputs.clear();
      const [, ...fields] = KINDS[kind.value];
      for (const [field, label, of] of fields)
        inputs.set(
          field,
          box(field, label, kind.value === "drift" ? (FIRST[field] ?? "") : "", of),
        );
      show(boxes, [...inputs.values()]);
      check();
    }

    /** What was typed, as the kernel reads it. A number that is none is sent as it is. */
    function values() {
      /** @type {Record<string, string | number | string[]>} */
      const settings = {};
      const [, ...fields] = KINDS[kind.value];
      for (const [field, , of] of fields) {
        const text = inputs.get(field)?.value.trim() ?? "";
        if (of === "columns") settings[field] = text.split(",").map((name) => name.trim());
        else if (of !== "number") settings[field] = text;
        else if (text) settings[field] = Number.isFinite(Number(text)) ? Number(text) : text;
      }
      return settings;
    }

    const filled = () => [...inputs.values()].some((input) => input.value.trim());

    function check() {
      if (!filled()) {
        offerAdd("", true);
        return;
      }
      request(
        "checks.form",
        { branch: ctx.screen().branch, kind: kind.value, fields: values(), name: name.value },
        ({ result }) => {
          offerAdd(result.problem, Boolean(result.problem));
          if (result.code) ctx.code(result.code);
        },
        (error) => show(note, ctx.problem(/** @type {Lnb.Failure} */ (error))),
      );
    }

    /** @param {string} words @param {boolean} refused */
    function offerAdd(words, refused) {
      show(note, words);
      show(acts, guard.button("Add", add, { refused }));
    }

    async function add() {
      const args = { kind: kind.value, fields: values(), name: name.value };
      if (!(await write("checks.add", args, "Adding…"))) return;
      name.value = "";
      fields();
    }

    /** @param {KeyboardEvent} event */
    function onKey(event) {
      event.stopPropagation();
      if (event.key !== "Enter") return;
      const ready = /** @type {HTMLButtonElement | null} */ (acts.querySelector("button"));
      ready?.click();
    }

    fields();
    return {
      element: h(
        "div",
        { class: "lnb-ex-form", role: "group", "aria-label": "new expectation" },
        h("span", {}, "Expect"),
        kind,
        boxes,
        name,
        acts,
        names,
        note,
      ),
      /** @param {Lnb.Json[]} columns */
      offer(columns) {
        show(
          names,
          columns.map((column) =>
            h("option", { value: column.name }, `${column.label}: ${column.type}`),
          ),
        );
      },
    };
  }

  ctx.onClose(
    ctx.kernel.onState((now) => {
      if (now === "static")
        show(status, "Expectations are evaluated by the kernel. Run the cell to see them.");
    }),
  );
  ctx.onScreen(
    (_screen, patched) => {
      if (!patched) load();
    },
    ["card", "news"],
  );
  return {
    /** @param {{bisect?: number}} target */
    open({ bisect: bad }) {
      if (bad === undefined) return;
      if (state) firstBad(bad);
      else outcomeAsked = bad;
    },
  };
}

export default widget(mountExpectations, "expectations");
