// Merge, cherry-pick, revert: what it would do, then doing it.

import { conflictGrid } from "./conflict_grid.js";
import { count, h, plural, show } from "./dom.js";
import { longAction } from "./long_action.js";
import { refBox } from "./ref_form.js";

/** @type {Record<string, string>} */
const CHANGES = { new: "+", changed: "~", dropped: "−" };
/** @type {Record<string, string>} */
const KINDS = { merge: "Merge", "cherry-pick": "Cherry-pick", revert: "Revert" };
/** @type {Record<string, [first: string, second: string]>} */
const WORDS = {
  merge: ["merge", "into"],
  "cherry-pick": ["apply the change of", "to"],
  revert: ["revert the change of", "on"],
};

/**
 * @param {Lnb.Context} ctx
 * @param {import("./ref_form.js").RefTools} tools
 * @returns `element` and `open({kind, source, into})`
 */
export function mergePage(ctx, tools) {
  const state = { kind: "merge" };
  const source = refBox(ctx, { label: "source", changed: stale });
  const into = refBox(ctx, { label: "target branch", branches: true, changed: stale });
  /** @param {string} label @param {[value: string, words: string][]} options */
  const choose = (label, options) =>
    h(
      "select",
      { class: "lnb-input", "aria-label": label, on: { change: () => preview() } },
      options.map(([value, words]) => h("option", { value }, words)),
    );
  const conflicts = choose("conflict resolution", [
    ["fail", "conflicts: stop"],
    ["ours", "conflicts: keep the target's"],
    ["theirs", "conflicts: take the source's"],
  ]);
  const strategy = choose("strategy", [
    ["auto", "strategy: as needed"],
    ["fast-forward", "fast-forward only"],
    ["replay", "always a new version"],
  ]);
  const copy = h("input", { type: "checkbox", on: { change: () => preview() } });
  const copyLabel = h(
    "label",
    { title: "Otherwise the target reads the source's files in place, protected by a tag" },
    copy,
    " copy files",
  );
  const key = h("input", {
    class: "lnb-input",
    "aria-label": "key columns",
    placeholder: "key columns (id, …)",
    title: "Columns that identify rows when there are no stable row ids",
    spellcheck: "false",
    size: "19",
    on: { change: () => preview() },
  });
  const message = h("input", {
    class: "lnb-input lnb-rf-note",
    "aria-label": "commit message",
    placeholder: "commit message (optional)",
    maxlength: "2000",
  });
  const kinds = Object.entries(KINDS).map(([kind, words]) =>
    h("button", { class: "lnb-choice", type: "button", on: { click: () => setKind(kind) } }, words),
  );
  const [first, second] = [h("span", {}), h("span", {})];
  const out = h("div", { class: "lnb-mp-out" });
  const form = h(
    "form",
    {
      class: "lnb-mp-form",
      on: {
        submit: (event) => {
          event.preventDefault();
          preview();
        },
      },
    },
    h("div", { class: "lnb-choices", role: "group", "aria-label": "what to do" }, kinds),
    first,
    source.element,
    second,
    into.element,
    h("button", { class: "lnb-button", type: "submit" }, "Preview"),
  );
  const options = h("div", { class: "lnb-mp-form" }, conflicts, strategy, key, copyLabel);
  const element = h(
    "section",
    { class: "lnb-mp", "aria-label": "merge", tabindex: "-1", hidden: true },
    h(
      "p",
      { class: "lnb-mp-head" },
      h(
        "button",
        { class: "lnb-button", type: "button", on: { click: tools.close } },
        "← Branches and tags",
      ),
    ),
    form,
    options,
    out,
  );
  let asked = 0;

  /** @param {string} kind */
  function setKind(kind) {
    state.kind = kind;
    kinds.forEach((one, at) =>
      one.setAttribute("aria-pressed", String(Object.keys(KINDS)[at] === kind)),
    );
    [first.textContent, second.textContent] = WORDS[kind];
    strategy.hidden = kind !== "merge";
    copyLabel.hidden = kind === "revert";
    stale();
  }

  /** What is shown belongs to other words: it goes. */
  function stale() {
    asked += 1;
    show(out);
  }

  async function preview() {
    if (!source.input.value.trim()) return source.input.focus();
    stale();
    const mine = asked;
    const place = h("div", {});
    show(out, place);
    const args = {
      kind: state.kind,
      source: source.input.value,
      into: into.input.value.trim() || null,
      strategy: strategy.value,
      on_conflict: conflicts.value,
      key: key.value,
      copy: copy.checked,
    };
    const plan = await longAction(ctx, place, {
      type: "refs.plan",
      args,
      words: "Reading the changes of both sides…",
      again: preview,
    });
    if (!plan || mine !== asked) return undefined;
    ctx.code(plan.code);
    ctx.announce(plan.unresolved ? plural(plan.unresolved, "conflict") : plan.words);
    return show(out, ...outcome(plan));
  }

  /** @param {Lnb.Json} plan see models/ref_preview.py */
  function outcome(plan) {
    const names = { source: plan.source.label, target: plan.target.label };
    const nothing = plan.strategy === "up-to-date";
    const place = h("div", {});
    const words =
      plan.kind === "merge"
        ? `Merge into ${plan.target.branch ?? "main"}`
        : `Commit to ${plan.target.branch ?? "main"}`;
    const merge = async () => {
      const result = await longAction(ctx, place, {
        type: "refs.merge",
        args: { plan: plan.plan, message: message.value },
        words: "Committing…",
        again: preview,
        noun: "file",
      });
      if (!result) return;
      tools.close();
      tools.done(result, { travel: true });
    };
    return [
      h(
        "p",
        { class: "lnb-mp-title" },
        h("strong", {}, plan.title),
        h("span", { class: `lnb-badge lnb-mp-${plan.strategy}` }, plan.words),
        h("small", {}, `base ${plan.base.label}`),
      ),
      nothing ? null : figures(plan),
      plan.unresolved
        ? h("small", { class: "lnb-faint" }, "Rows in conflict are not counted.")
        : null,
      plan.conflicts.length
        ? h(
            "ul",
            { class: "lnb-cq" },
            plan.conflicts.map((/** @type {Lnb.Json} */ one) =>
              h(
                "li",
                { class: one.resolution ? "lnb-cq-warn" : "lnb-cq-stop" },
                h("i", { "aria-hidden": "true" }, one.resolution ? "!" : "✕"),
                h(
                  "span",
                  {},
                  h("b", {}, one.kind),
                  ` ${one.text}. `,
                  one.resolution
                    ? h(
                        "em",
                        {},
                        one.resolution === "ours"
                          ? "The target's is kept."
                          : "The source's is taken.",
                      )
                    : one.remedy,
                ),
              ),
            ),
            plan.hidden_conflicts ? h("li", {}, `and ${count(plan.hidden_conflicts)} more`) : null,
          )
        : null,
      conflictGrid(plan.grid, names),
      plan.sample.rows.length ? sample(plan.sample, names, plan.base.label) : null,
      plan.notes.length
        ? h(
            "ul",
            { class: "lnb-cq" },
            plan.notes.map((/** @type {string} */ note) => h("li", {}, note)),
          )
        : null,
      nothing
        ? null
        : h(
            "p",
            { class: "lnb-rf-acts lnb-mp-acts" },
            message,
            tools.guard.button(words, merge, { refused: plan.unresolved > 0 }),
            plan.unresolved
              ? h(
                  "small",
                  { class: "lnb-cq-stop" },
                  `${plural(plan.unresolved, "conflict")} to decide first`,
                )
              : null,
          ),
      place,
    ];
  }

  return {
    element,
    /** @param {{kind?: string, source?: string, into?: string}} target */
    open({ kind = "merge", source: from = "", into: to = "" }) {
      source.input.value = from;
      into.input.value = to || (ctx.screen().branch ?? "main");
      setKind(kind);
      element.hidden = false;
      ctx.detail.clear();
      if (from) preview();
      (from ? element : source.input).focus({ preventScroll: true });
    },
  };
}

/** @param {Lnb.Json} plan */
function figures(plan) {
  const { fragments, rows } = plan;
  const kinds = ["new", "changed", "dropped"]
    .filter((kind) => fragments[kind])
    .map((kind) => `${count(fragments[kind])} ${kind}`);
  const change = rows[1] - rows[0];
  const list = h(
    "ul",
    { class: "lnb-mp-fragments" },
    fragments.lines.map((/** @type {Lnb.Json} */ one) =>
      h(
        "li",
        { class: `lnb-mp-${one.change}` },
        h("i", { "aria-hidden": "true" }, CHANGES[one.change]),
        `fragment ${one.id}: ${count(one.before)} → ${plural(one.after, "row")}`,
      ),
    ),
    fragments.hidden ? h("li", {}, `and ${count(fragments.hidden)} more`) : null,
  );
  return h(
    "div",
    {},
    h(
      "p",
      { class: "lnb-mp-figures" },
      [
        `rows ${count(rows[0])} → ${count(rows[1])} ` +
          `(${change < 0 ? "−" : "+"}${count(Math.abs(change))})`,
        `fragments: ${kinds.join(", ") || "none touched"}`,
        plan.operation && `recorded as ${plan.operation}`,
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    plan.columns.length ? h("p", {}, `columns: ${plan.columns.join(", ")}`) : null,
    fragments.lines.length ? h("details", {}, h("summary", {}, "resulting fragments"), list) : null,
  );
}

/**
 * Some rows that both sides changed: as the base, the source and the target have them.
 * @param {{columns: string[], rows: Lnb.Json[]}} sample
 * @param {{source: string, target: string}} names @param {string} base
 */
function sample({ columns, rows }, names, base) {
  const sides = [
    ["base", base],
    ["source", names.source],
    ["target", names.target],
  ];
  return h(
    "details",
    { open: true },
    h("summary", {}, "rows that both sides changed"),
    h(
      "div",
      {
        class: "lnb-cg-scroll",
        tabindex: "0",
        role: "region",
        "aria-label": "rows that both sides changed",
      },
      h(
        "table",
        { class: "lnb-table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["", ...columns].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        rows.map((/** @type {Lnb.Json} */ row) =>
          h(
            "tbody",
            { class: "lnb-mp-row" },
            sides.map(([side, label]) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, label),
                row[side]
                  ? row[side].map((/** @type {string | null} */ value, /** @type {number} */ at) =>
                      h(
                        "td",
                        {
                          class:
                            row.base && side !== "base" && value !== row.base[at]
                              ? "lnb-mp-cell"
                              : null,
                        },
                        value ?? "null",
                      ),
                    )
                  : h(
                      "td",
                      { colspan: columns.length, class: "lnb-faint" },
                      side === "base" ? "absent" : "deleted",
                    ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
