// Merge, cherry-pick, revert: what it would do, then doing it.

import { button, count, h, plural, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { conflictGrid } from "./conflict_grid.js";
import { ConflictTable } from "./conflict_table.js";
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
    placeholder: "no commit message",
    maxlength: "2000",
  });
  const kinds = Object.entries(KINDS).map(([kind, words]) =>
    button(words, () => setKind(kind), { class: "lnb-choice" }),
  );
  const [first, second] = [h("span", {}), h("span", {})];
  // Parts of the preview: while cells are chosen the table stays, and the others are shown anew.
  const [head, body, acts, checking] = ["", "", "", ""].map(() => h("div", {}));
  const table = new ConflictTable(ctx, (choices) => check(choices));
  const out = h("div", { class: "lnb-mp-out" });
  let proposed = "";
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
    h("p", { class: "lnb-mp-head" }, button("← Branches and tags", tools.close)),
    form,
    options,
    out,
  );
  let turnBefore = 0;

  /** @param {string} kind */
  function setKind(kind) {
    state.kind = kind;
    kinds.forEach((conflictKind, index) =>
      conflictKind.setAttribute("aria-pressed", String(Object.keys(KINDS)[index] === kind)),
    );
    [first.textContent, second.textContent] = WORDS[kind];
    strategy.hidden = kind !== "merge";
    copyLabel.hidden = kind === "revert";
    stale();
  }

  /** What is shown belongs to other words: it goes. */
  function stale() {
    turnBefore += 1;
    table.reset();
    show(out);
  }

  /** @param {import("./conflict_table.js").Choice[] | null} choices */
  const request = (choices) => ({
    kind: state.kind,
    source: source.input.value,
    into: into.input.value.trim() || null,
    strategy: strategy.value,
    on_conflict: conflicts.value,
    key: key.value,
    copy: copy.checked,
    choices,
  });

  async function preview() {
    if (!source.input.value.trim()) return source.input.focus();
    stale();
    const mine = turnBefore;
    const place = h("div", {});
    show(out, place);
    const plan = await longAction(ctx, place, {
      type: "refs.plan",
      args: request(null),
      words: "Reading the changes of both sides…",
      again: preview,
    });
    if (!plan || mine !== turnBefore) return undefined;
    ctx.announce(plan.unresolved ? plural(plan.unresolved, "conflict") : plan.words);
    show(out, head, plan.cells ? table.element : null, body, acts, checking);
    return outcome(plan);
  }

  /**
   * Plan again with what was chosen: the table stays as it is.
   * @param {import("./conflict_table.js").Choice[]} choices
   */
  async function check(choices) {
    turnBefore += 1;
    const mine = turnBefore;
    const plan = await longAction(ctx, checking, {
      type: "refs.plan",
      args: request(choices),
      words: "Checking the choices…",
      again: preview,
    });
    if (!plan || mine !== turnBefore) return;
    const open = plan.cells?.open ?? 0;
    ctx.announce(open ? `${plural(open, "row")} to choose` : "every conflict is decided");
    outcome(plan);
  }

  /** @param {Lnb.Json} plan see refs/merge_preview.py */
  function outcome(plan) {
    ctx.code(plan.code);
    const names = { source: plan.source.label, target: plan.target.label };
    const nothing = plan.strategy === "up-to-date";
    const left = plan.conflicts.filter(
      (/** @type {Lnb.Json} */ conflict) => !plan.cells || conflict.kind !== "rows",
    );
    if (plan.cells) table.put(plan);
    show(
      head,
      plan.refusal ? h("p", { class: "lnb-cq-stop" }, `${plan.refusal}.`) : null,
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
      plan.pin ? h("p", { class: "lnb-mp-pin" }, h("i", {}, "⊙"), ` ${plan.pin}.`) : null,
      left.length ? conflictList(plan, left) : null,
      plan.offers.length ? h("p", { class: "lnb-rf-acts" }, plan.offers.map(offerButton)) : null,
    );
    show(
      body,
      conflictGrid(plan.grid, names),
      plan.sample.rows.length ? sample(plan.sample, names, plan.base.label) : null,
      plan.notes.length
        ? h(
            "ul",
            { class: "lnb-cq" },
            plan.notes.map((/** @type {string} */ note) => h("li", {}, note)),
          )
        : null,
    );
    if (message.value === proposed) message.value = plan.message;
    proposed = plan.message;
    show(acts, nothing ? null : actions(plan));
  }

  /** A button that sets fields of the form, and previews again. @param {Lnb.Json} offer */
  function offerButton(offer) {
    /** @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
    const fields = { key, on_conflict: conflicts, strategy };
    const act = () => {
      for (const [name, value] of Object.entries(offer.set)) fields[name].value = value;
      preview();
    };
    return button(offer.label, act);
  }

  /** @param {Lnb.Json} plan */
  function actions(plan) {
    const words =
      plan.kind === "merge"
        ? `Merge into ${plan.target.branch ?? "main"}`
        : `Commit to ${plan.target.branch ?? "main"}`;
    const merge = async () => {
      const result = await longAction(ctx, checking, {
        type: "refs.merge",
        args: { plan: plan.plan, message: message.value },
        words: "Committing…",
        again: preview,
        noun: "file",
      });
      if (!result) return;
      proposed = message.value = "";
      tools.close();
      tools.done(result, { travel: true });
    };
    const open = plan.cells?.open ?? 0;
    const numOthers = plan.unresolved - (open ? 1 : 0);
    const missing = [
      open && `${plural(open, "row")} to choose first`,
      numOthers && `${plural(numOthers, "conflict")} to decide first`,
    ];
    return h(
      "p",
      { class: "lnb-rf-acts lnb-mp-acts" },
      message,
      tools.guard.button(words, merge, { refused: plan.unresolved > 0 }),
      plan.unresolved
        ? h("small", { class: "lnb-cq-stop" }, missing.filter(Boolean).join(", "))
        : null,
    );
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

/** @type {Record<string, string>} */
const DECIDED = { ours: "The target's is kept.", theirs: "The source's is taken." };

/** @param {Lnb.Json} plan @param {Lnb.Json[]} conflicts */
function conflictList(plan, conflicts) {
  return h(
    "ul",
    { class: "lnb-cq" },
    conflicts.map((conflict) =>
      h(
        "li",
        { class: conflict.resolution ? "lnb-cq-warn" : "lnb-cq-stop" },
        h("i", { "aria-hidden": "true" }, conflict.resolution ? "!" : "✕"),
        h(
          "span",
          {},
          h("b", {}, conflict.kind),
          ` ${conflict.text}. `,
          conflict.resolution
            ? h("em", {}, DECIDED[conflict.resolution] ?? "")
            : `${conflict.remedy}.`,
        ),
      ),
    ),
    plan.hidden_conflicts ? h("li", {}, `and ${count(plan.hidden_conflicts)} more`) : null,
  );
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
    fragments.lines.map((/** @type {Lnb.Json} */ line) =>
      h(
        "li",
        { class: `lnb-mp-${line.change}` },
        h("i", { "aria-hidden": "true" }, CHANGES[line.change]),
        `fragment ${line.id}: ${count(line.before)} → ${plural(line.after, "row")}`,
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
                  ? row[side].map(
                      (/** @type {string | null} */ value, /** @type {number} */ index) =>
                        h(
                          "td",
                          {
                            class:
                              row.base && side !== "base" && value !== row.base[index]
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
