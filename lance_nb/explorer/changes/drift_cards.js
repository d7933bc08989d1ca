// How each column drifted: two histograms over each other and the facts side by side, most moved
// first.

import { button, count, h, plural, show, svg } from "../js/dom.js";

const AT_ONCE = 12;
const AT_FIRST = 48; // columns looked at without being asked
/**
 * @typedef {{bars: number[], facts: [label: string, value: string][], nulls: number,
 *   sampled: number, rows: number}} Side
 * @typedef {{name: string, type: string, psi: number | null, before: Side, after: Side,
 *   labels: string[]}} Drift
 */

const MUCH = 0.25;
const SOME = 0.1;

/**
 * @param {Lnb.Context} ctx
 * @param {{pair: () => Lnb.Pair, names: () => [a: string, b: string],
 *   code: (python: string, magic: string) => void}} of `names`: labels of A and B
 */
export function driftCards(ctx, { pair, names, code }) {
  const cards = h("div.lnb-dr-cards");
  const status = h("span", { "aria-live": "polite" });
  const problem = h("div");
  const stop = link("Stop", () => running?.cancel());
  const more = link("Compare more columns", () => load());
  const exact = link("Use all rows", () => begin(true));
  const element = h(
    "div.lnb-ch-level",
    h(
      "div.lnb-dr",
      { tabindex: "0", role: "region", "aria-label": "drift of the columns" },
      problem,
      cards,
    ),
    h(
      "div.lnb-grid-foot.lnb-ch-foot",
      h("span.lnb-dr-legend", h("i.lnb-dr-a"), h("span"), h("i.lnb-dr-b"), h("span")),
      status,
      stop,
      more,
      exact,
    ),
  );
  /** @type {{found: Drift[], total: number | null, exact: boolean, turn: number, upto: number}} */
  let state = { found: [], total: null, exact: false, turn: 0, upto: AT_FIRST };
  /** @type {Lnb.Asked | null} */
  let running = null;
  ctx.onClose(() => running?.cancel());

  /** @param {string} words @param {() => unknown} act */
  function link(words, act) {
    return button(words, act, { class: "lnb-link", hidden: true });
  }

  function begin(all = false) {
    running?.cancel();
    state = { found: [], total: null, exact: all, turn: state.turn + 1, upto: AT_FIRST };
    const [a, b] = names();
    const legend = /** @type {Element} */ (element.querySelector(".lnb-dr-legend")).children;
    legend[1].textContent = a;
    legend[3].textContent = b;
    show(problem);
    show(cards);
    code(`.drift(${all ? "exact=True" : ""})`, "");
    load();
  }

  async function load() {
    const { turn } = state;
    more.hidden = exact.hidden = true;
    stop.hidden = false;
    if (state.total !== null) state.upto = Math.max(state.upto, state.found.length + AT_FIRST);
    while (
      turn === state.turn &&
      (state.total === null || state.found.length < Math.min(state.total, state.upto))
    ) {
      say();
      const mine = (running = ctx.kernel.ask(
        "changes.drift",
        { ...pair(), first: state.found.length, count: AT_ONCE, exact: state.exact },
        { progress() {} },
      ));
      try {
        const { result } = await mine;
        if (turn !== state.turn) return;
        state.total = result.num_columns;
        state.found.push(...result.columns);
        paint();
        if (!result.columns.length) break;
      } catch (caught) {
        const error = /** @type {Lnb.Failure} */ (caught);
        if (turn !== state.turn) return;
        if (error.card?.kind !== "CancelledError") show(problem, ctx.problem(error));
        break;
      } finally {
        if (running === mine) running = null;
      }
    }
    if (turn === state.turn) remaining();
  }

  function say() {
    status.textContent =
      state.total === null
        ? "Comparing column statistics…"
        : `${count(state.found.length)} of ${plural(state.total, "column")}…`;
  }

  function remaining() {
    stop.hidden = true;
    const left = (state.total ?? 0) - state.found.length;
    more.hidden = state.total !== null && left <= 0;
    const sampled = state.found.some(
      (drift) => drift.before.sampled < drift.before.rows || drift.after.sampled < drift.after.rows,
    );
    exact.hidden = state.exact || !sampled;
    const looked =
      left > 0
        ? `${count(state.found.length)} of ${plural(state.total ?? 0, "column")}`
        : plural(state.found.length, "column");
    const most = Math.max(...state.found.map((column) => column.after.sampled), 0);
    status.textContent = `${looked}, ${sampled ? `a sample of ${count(most)} rows` : "all rows"}`;
    if (state.total === 0)
      show(cards, h("p.lnb-empty", "The two versions have no column in common."));
  }

  function paint() {
    const order = [...state.found].sort((drift, other) => moved(other) - moved(drift));
    show(cards, order.map(card));
  }

  return { element, begin, stop: () => running?.cancel() };
}

/** @param {Drift} column */
const moved = (column) => column.psi ?? Math.abs(column.after.nulls - column.before.nulls);

/** @param {Drift} column */
function card(column) {
  const method =
    column.psi === null
      ? ["", ""]
      : column.psi >= MUCH
        ? ["much", "moved much"]
        : column.psi >= SOME
          ? ["some", "moved"]
          : ["still", "steady"];
  const facts = column.after.facts.map(([label, value], index) => {
    const before = column.before.facts[index]?.[1] ?? "–";
    return h(
      "tr",
      { class: before === value ? "" : "lnb-dr-differs" },
      h("th", { scope: "row" }, label),
      h("td", { title: before }, before),
      h("td", { title: value }, value),
    );
  });
  return h(
    "article.lnb-dr-card",
    h(
      "header",
      h("b", { title: column.name }, column.name),
      h("small", column.type),
      method[1]
        ? h(
            "span",
            {
              class: `lnb-dr-how lnb-dr-${method[0]}`,
              title:
                "Population stability index: below 0.1 is stable, above 0.25 is a large change",
            },
            `${method[1]} ${(column.psi ?? 0).toFixed(2)}`,
          )
        : null,
    ),
    column.before.bars.length || column.after.bars.length
      ? histograms(column)
      : h("p.lnb-dr-none", "No histogram for this type"),
    h("table.lnb-dr-facts", h("tbody", facts)),
  );
}

/** A in outline behind B in colour; texts are bars by name. @param {Drift} column */
function histograms(column) {
  const { before, after, labels } = column;
  if (labels.length) {
    /** @param {string} name @param {number} index */
    const line = (name, index) =>
      h(
        "div.lnb-dr-text",
        h("span", { title: name }, name),
        h("span.lnb-dr-bars", bar("a", before.bars[index]), bar("b", after.bars[index])),
      );
    const shown = labels.slice(0, 4).map(line);
    return h(
      "div.lnb-dr-texts",
      { role: "img", "aria-label": `commonest values of ${column.name}` },
      shown,
    );
  }
  const each = 200 / Math.max(before.bars.length, after.bars.length, 8);
  /** @param {number} thousandths */
  const tall = (thousandths) => (thousandths * 46) / 1000;
  const solid = after.bars.map((height, index) =>
    svg("rect", {
      x: (index * each + 0.5).toFixed(2),
      y: (48 - tall(height)).toFixed(2),
      width: Math.max(1, each - 1).toFixed(2),
      height: tall(height).toFixed(2),
    }),
  );
  const steps = before.bars
    .map(
      (height, index) =>
        `${index ? "L" : "M"}${(index * each).toFixed(2)} ${(48 - tall(height)).toFixed(2)}` +
        `H${((index + 1) * each).toFixed(2)}`,
    )
    .join("");
  return svg(
    "svg.lnb-dr-picture",
    {
      viewBox: "0 0 200 49",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `histograms of ${column.name} before and after`,
    },
    solid,
    svg("path", {
      d: before.bars.length
        ? `M0 48V${(48 - tall(before.bars[0])).toFixed(2)}${steps.replace(/^M/, "L")}V48`
        : "",
    }),
  );
}

/** @param {string} side @param {number} [thousandths] */
function bar(side, thousandths = 0) {
  const element = h("i", { class: `lnb-dr-${side}` });
  element.style.width = `${thousandths / 10}%`;
  return element;
}
