// The life of one row in the detail pane: its steps, newest first, as they are found.

import { ageOf, count, h, plural, show } from "./dom.js";
import { keyPicker } from "./key_picker.js";
import { lookOfOperation } from "./operations.js";

const AT_ONCE = 12;
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
const WORDS = {
  created: "created",
  updated: "updated",
  moved: "moved by compaction",
  deleted: "deleted",
  restored: "restored",
  extended: "got a new column",
  written: "written: new, or updated from elsewhere",
  gone: "gone: deleted, or updated elsewhere",
  found: "already there in the oldest version that is left",
};

/**
 * A button that opens the life of a row. `row`: branch, version, fragment, offset, key; or, of the
 * grid of rows, `find`: what the kernel finds its place by.
 * @param {import("./view.js").Context} ctx
 */
export function biographyButton(ctx, row) {
  return h(
    "button",
    {
      class: "lnb-button",
      type: "button",
      title: "what happened to this row, version by version",
      on: { click: () => openBiography(ctx, row) },
    },
    "biography",
  );
}

/** @param {import("./view.js").Context} ctx */
export async function openBiography(ctx, { find = null, ...given }) {
  const title = "Biography of a row";
  let row = given;
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

function biography(ctx, row) {
  const label = h("b", {}, "…");
  const reason = h("small", {});
  const steps = h("ol", { class: "lnb-bio-steps" });
  const problem = h("div", {});
  const status = h("p", { class: "lnb-bio-status", "aria-live": "polite" });
  let known = 0;
  let running = null;
  const picker = keyPicker(ctx, {
    choose(key) {
      row.key = key;
      known = 0;
      show(steps);
      load(1);
    },
    of: () => ({ branch: row.branch, version: row.version }),
  });

  async function load(upto) {
    show(problem);
    say(upto);
    running = ctx.kernel.ask(
      "biography.steps",
      {
        branch: row.branch,
        version: row.version,
        fragment: row.fragment,
        offset: row.offset,
        key: row.key ?? null,
        upto,
      },
      { progress() {} },
    );
    try {
      const { result } = await running;
      running = null;
      label.textContent = result.label;
      reason.textContent = result.followed;
      steps.append(...result.steps.slice(known).map(stepView));
      known = result.steps.length;
      if (result.whole) say();
      else if (known < AT_ONCE) load(Math.min(AT_ONCE, known * 2 + 1));
      else
        show(
          status,
          plural(known, "step"),
          " so far ",
          button("older steps", () => load(known + AT_ONCE)),
        );
    } catch (error) {
      running = null;
      if (error.card?.kind === "CancelledError")
        show(
          status,
          `stopped after ${plural(known, "step")} `,
          button("go on", () => load(known + AT_ONCE)),
        );
      else {
        show(status);
        show(problem, ctx.problem(error));
      }
    }
  }

  function say(upto = null) {
    if (upto === null) show(status, `${plural(known, "step")}, the whole life that is known`);
    else
      show(
        status,
        known ? `${plural(known, "step")}, looking for older ones… ` : "looking… ",
        button("stop", () => running?.cancel()),
      );
  }

  function button(words, act) {
    return h("button", { class: "lnb-link", type: "button", on: { click: act } }, words);
  }

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
          h(
            "button",
            {
              class: "lnb-link lnb-bio-go",
              type: "button",
              title: "go to this version",
              on: { click: () => ctx.travel({ branch: step.branch, version: step.version }) },
            },
            step.label,
          ),
        ),
        h(
          "p",
          { class: "lnb-bio-facts" },
          `${operation.glyph} ${step.operation} · `,
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

/** What changed with both values; of a row that begins or ends the values it had. */
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
          ? [h("del", {}, old), " → ", h("ins", {}, now)]
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
