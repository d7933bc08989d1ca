// The life of one row in the detail pane: its steps, newest first, as they are found.

import { ageOf, button, count, h, plural, show } from "../js/dom.js";
import { lookOfOperation, titleOfOperation } from "../js/operations.js";
import { keyPicker } from "./key_picker.js";

const AT_ONCE = 12;
const LINK = { class: "lnb-link" };
/**
 * @typedef {{branch: string | null, version: number, fragment: number, offset: number,
 *   key: string[] | null}} Row
 * @typedef {{event: string, operation: string, branch: string | null, version: number,
 *   label: string, time: string, time_ms: number | null, fragment: number, offset: number,
 *   message: string, hidden: number, changes: boolean, cells: [name: string, old: string | null,
 *   now: string | null][]}} Step see rows/row_history.py
 */

/** @type {Record<string, [sign: string, family: string]>} */
const EVENTS = {
  created: ["+", "add"],
  updated: ["~", "change"],
  moved: ["⇢", "upkeep"],
  deleted: ["−", "remove"],
  restored: ["↶", "replace"],
  extended: ["▦", "schema"],
  written: ["+", "add"],
  gone: ["−", "remove"],
  found: ["·", "unknown"],
};
/** @type {Record<string, string>} */
const WORDS = {
  created: "created",
  updated: "updated",
  moved: "moved by compaction",
  deleted: "deleted",
  restored: "restored",
  extended: "got a new column",
  written: "written: inserted, or moved here by an update",
  gone: "deleted, or moved away by an update",
  found: "present in the oldest version that is kept",
};

/**
 * A button that opens the life of a row. `row`: branch, version, fragment, offset, key; or, of the
 * grid of rows, `find`: what the kernel finds its place by.
 * @param {Lnb.Context} ctx
 * @param {Row | {find: Lnb.Args}} row
 */
export function biographyButton(ctx, row) {
  return button("Row history", () => openBiography(ctx, row), {
    title: "Show what happened to this row, version by version",
  });
}

/** @param {Lnb.Context} ctx @param {Partial<Row> & {find?: Lnb.Args | null}} row */
export async function openBiography(ctx, { find = null, ...options }) {
  const title = "Biography of a row";
  let row = /** @type {Row} */ (options);
  try {
    if (find)
      row = {
        branch: find.branch ?? null,
        version: find.version,
        key: null,
        ...(await ctx.kernel.ask("biography.find", find)).result,
      };
  } catch (error) {
    ctx.detail.show({ title, content: ctx.problem(error) });
    return;
  }
  ctx.detail.show({ title, content: biography(ctx, row), focus: true });
}

/** @param {Lnb.Context} ctx @param {Row} row */
function biography(ctx, row) {
  const label = h("b", {}, "…");
  const reason = h("small", {});
  const steps = h("ol", { class: "lnb-bio-steps" });
  const problem = h("div", {});
  const status = h("p", { class: "lnb-bio-status", "aria-live": "polite" });
  let numLines = 0;
  /** @type {Lnb.Asked | null} */
  let running = null;
  const picker = keyPicker(ctx, {
    choose(/** @type {string[] | null} */ key) {
      row.key = key;
      numLines = 0;
      show(steps);
      load(1);
    },
    of: () => ({ branch: row.branch, version: row.version }),
  });

  /** @param {number} upto */
  async function load(upto) {
    show(problem);
    say(upto);
    const { branch, version, fragment, offset, key = null } = row;
    const args = { branch, version, fragment, offset, key, upto };
    running = ctx.kernel.ask("biography.steps", args, { progress() {} });
    try {
      const { result } = await running;
      running = null;
      label.textContent = result.label;
      reason.textContent = result.followed;
      steps.append(...result.steps.slice(numLines).map(stepView));
      numLines = result.steps.length;
      if (result.whole) say();
      else if (numLines < AT_ONCE) load(Math.min(AT_ONCE, numLines * 2 + 1));
      else
        show(
          status,
          plural(numLines, "step"),
          " so far ",
          button("Older steps", () => load(numLines + AT_ONCE), LINK),
        );
    } catch (caught) {
      const error = /** @type {Lnb.Failure} */ (caught);
      running = null;
      if (error.card?.kind === "CancelledError")
        show(
          status,
          `Stopped after ${plural(numLines, "step")} `,
          button("Continue", () => load(numLines + AT_ONCE), LINK),
        );
      else {
        show(status);
        show(problem, ctx.problem(error));
      }
    }
  }

  /** @param {number | null} upto */
  function say(upto = null) {
    if (upto === null) show(status, `${plural(numLines, "step")}, the complete history`);
    else
      show(
        status,
        numLines ? `${plural(numLines, "step")}, reading older steps… ` : "Reading… ",
        button("Stop", () => running?.cancel(), LINK),
      );
  }

  /** @param {Step} step */
  function stepView(step) {
    const [sign, family] = EVENTS[step.event] ?? ["•", "unknown"];
    const operation = lookOfOperation(step.operation);
    return h(
      "li",
      { class: `lnb-bio-step lnb-op-${family}` },
      h("i", { "aria-hidden": "true" }, sign),
      h(
        "div",
        { class: "lnb-bio-body" },
        h(
          "p",
          { class: "lnb-bio-head" },
          h("b", {}, WORDS[step.event] ?? step.event),
          button(step.label, () => ctx.travel({ branch: step.branch, version: step.version }), {
            class: "lnb-link lnb-bio-go",
            title: "go to this version",
          }),
        ),
        h(
          "p",
          { class: "lnb-bio-facts" },
          `${operation.glyph} ${titleOfOperation(step.operation)} · `,
          step.time_ms ? ageOf(step.time_ms) : step.time,
          ` · fragment ${step.fragment}, offset ${count(step.offset)}`,
        ),
        step.message ? h("p", { class: "lnb-bio-message" }, step.message) : null,
        step.cells.length ? cellsView(step) : null,
      ),
    );
  }

  load(1);
  return h(
    "div",
    { class: "lnb-bio" },
    h(
      "div",
      { class: "lnb-bio-by" },
      h("p", {}, "followed by ", label, " ", picker.toggle),
      reason,
      picker.element,
    ),
    problem,
    steps,
    status,
  );
}

/**
 * What changed with both values; of a row that begins or ends the values it had.
 * @param {Step} step
 */
function cellsView(step) {
  const lines = step.cells.map(([name, old, now]) =>
    h(
      "div",
      {},
      h("dt", {}, name),
      h(
        "dd",
        {},
        step.changes && old !== null && now !== null
          ? [h("del", { dir: "auto" }, old), " → ", h("ins", { dir: "auto" }, now)]
          : (now ?? old),
      ),
    ),
  );
  if (step.hidden)
    lines.push(h("div", { class: "lnb-faint" }, `and ${plural(step.hidden, "more column")}`));
  const list = h("dl", { class: "lnb-bio-cells" }, lines);
  return step.changes
    ? list
    : h("details", { class: "lnb-bio-values" }, h("summary", {}, "its values"), list);
}
