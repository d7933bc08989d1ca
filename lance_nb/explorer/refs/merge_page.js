// Merge, cherry-pick, revert: what it would do, then doing it.

import { button, count, h, plural, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { titleOfOperation } from "../js/operations.js";
import { conflictGrid } from "./conflict_grid.js";
import { ConflictTable } from "./conflict_table.js";
import { refBox } from "./ref_form.js";

/** @type {Record<string, string>} */
const CHANGES = { new: "+", changed: "~", dropped: "−" };
/** @type {Record<string, string>} */
const KINDS = { merge: "Merge", "cherry-pick": "Cherry-pick", revert: "Revert" };
/** @type {Record<string, [first: string, second: string]>} */
const PREPOSITIONS = {
  merge: ["merge", "into"],
  "cherry-pick": ["apply the change of", "to"],
  revert: ["revert the change of", "on"],
};

export class MergePage {
  kind = "merge";
  proposedMessage = "";
  requests = 0;
  // Parts of the preview: while cells are chosen the table stays, and the others are shown anew.
  head = h("div");
  body = h("div");
  acts = h("div");
  checking = h("div");
  out = h("div.lnb-mp-out");
  first = h("span");
  second = h("span");
  conflicts = this.choice("conflict resolution", [
    ["fail", "conflicts: stop"],
    ["ours", "conflicts: keep the target's"],
    ["theirs", "conflicts: take the source's"],
  ]);
  strategy = this.choice("strategy", [
    ["auto", "strategy: as needed"],
    ["fast-forward", "fast-forward only"],
    ["replay", "always a new version"],
  ]);
  copy = h("input", { type: "checkbox", on: { change: () => this.preview() } });
  copyLabel = h(
    "label",
    { title: "Otherwise the target reads the source's files in place, protected by a tag" },
    this.copy,
    " copy files",
  );
  key = h("input.lnb-input", {
    "aria-label": "key columns",
    placeholder: "key columns (id, …)",
    title: "Columns that identify rows when there are no stable row ids",
    spellcheck: "false",
    size: "19",
    on: { change: () => this.preview() },
  });
  message = h("input.lnb-input.lnb-rf-note", {
    "aria-label": "commit message",
    placeholder: "no commit message",
    maxlength: "2000",
  });
  kinds = Object.entries(KINDS).map(([kind, label]) =>
    button(label, () => this.setKind(kind), { class: "lnb-choice" }),
  );

  /** @param {Lnb.Context} ctx @param {import("./ref_form.js").RefTools} tools */
  constructor(ctx, tools) {
    this.ctx = ctx;
    this.tools = tools;
    const changed = () => this.clear();
    this.source = refBox(ctx, { label: "source", changed });
    this.into = refBox(ctx, { label: "target branch", branches: true, changed });
    this.table = new ConflictTable(ctx, (choices) => this.check(choices));
    /** @param {Event} event */
    const submit = (event) => {
      event.preventDefault();
      this.preview();
    };
    this.element = h(
      "section.lnb-mp",
      { "aria-label": "merge", tabindex: "-1", hidden: true },
      h("p.lnb-mp-head", button("← Branches and tags", tools.close)),
      h(
        "form.lnb-mp-form",
        { on: { submit } },
        h("div.lnb-choices", { role: "group", "aria-label": "what to do" }, this.kinds),
        this.first,
        this.source.element,
        this.second,
        this.into.element,
        h("button.lnb-button", { type: "submit" }, "Preview"),
      ),
      h("div.lnb-mp-form", this.conflicts, this.strategy, this.key, this.copyLabel),
      this.out,
    );
  }

  /** @param {{kind?: string, source?: string, into?: string}} target */
  open({ kind = "merge", source = "", into = "" }) {
    this.source.input.value = source;
    this.into.input.value = into || (this.ctx.screen().branch ?? "main");
    this.setKind(kind);
    this.element.hidden = false;
    this.ctx.detail.clear();
    if (source) this.preview();
    (source ? this.element : this.source.input).focus({ preventScroll: true });
  }

  /** @param {string} label @param {[value: string, label: string][]} options */
  choice(label, options) {
    return h(
      "select.lnb-input",
      { "aria-label": label, on: { change: () => this.preview() } },
      options.map(([value, text]) => h("option", { value }, text)),
    );
  }

  /** @param {string} kind */
  setKind(kind) {
    this.kind = kind;
    this.kinds.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String(Object.keys(KINDS)[index] === kind)),
    );
    [this.first.textContent, this.second.textContent] = PREPOSITIONS[kind];
    this.strategy.hidden = kind !== "merge";
    this.copyLabel.hidden = kind === "revert";
    this.clear();
  }

  /** Take away a preview that belongs to other words than those in the form. */
  clear() {
    this.requests += 1;
    this.table.reset();
    show(this.out);
  }

  /**
   * Plan what the form says; null when it failed or another request was made meanwhile.
   * @param {HTMLElement} place @param {string} words
   * @param {import("./conflict_table.js").Choice[] | null} choices
   */
  async plan(place, words, choices) {
    const request = (this.requests += 1);
    const args = {
      kind: this.kind,
      source: this.source.input.value,
      into: this.into.input.value.trim() || null,
      strategy: this.strategy.value,
      on_conflict: this.conflicts.value,
      key: this.key.value,
      copy: this.copy.checked,
      choices,
    };
    const again = () => this.preview();
    const plan = await longAction(this.ctx, place, { type: "refs.plan", args, words, again });
    return request === this.requests ? plan : null;
  }

  async preview() {
    if (!this.source.input.value.trim()) return this.source.input.focus();
    this.clear();
    const place = h("div");
    show(this.out, place);
    const plan = await this.plan(place, "Reading the changes of both sides…", null);
    if (!plan) return;
    this.ctx.announce(plan.unresolved ? plural(plan.unresolved, "conflict") : plan.words);
    show(
      this.out,
      this.head,
      plan.cells && this.table.element,
      this.body,
      this.acts,
      this.checking,
    );
    this.showPlan(plan);
  }

  /**
   * Plan again with what was chosen: the table stays as it is.
   * @param {import("./conflict_table.js").Choice[]} choices
   */
  async check(choices) {
    const plan = await this.plan(this.checking, "Checking the choices…", choices);
    if (!plan) return;
    const open = plan.cells?.open ?? 0;
    this.ctx.announce(open ? `${plural(open, "row")} to choose` : "every conflict is decided");
    this.showPlan(plan);
  }

  /** @param {Lnb.Json} plan see refs/merge_preview.py */
  showPlan(plan) {
    this.ctx.code(plan.code);
    const names = { source: plan.source.label, target: plan.target.label };
    const isNothing = plan.strategy === "up-to-date";
    const listed = plan.conflicts.filter(
      (/** @type {Lnb.Json} */ conflict) => !plan.cells || conflict.kind !== "rows",
    );
    if (plan.cells) this.table.put(plan);
    show(
      this.head,
      plan.refusal && h("p.lnb-cq-stop", `${plan.refusal}.`),
      h(
        "p.lnb-mp-title",
        h("strong", plan.title),
        h("span", { class: `lnb-badge lnb-mp-${plan.strategy}` }, plan.words),
        h("small", `base ${plan.base.label}`),
      ),
      !isNothing && figures(plan),
      plan.unresolved > 0 && h("small.lnb-faint", "Rows in conflict are not counted."),
      plan.pin && h("p.lnb-mp-pin", h("i", "⊙"), ` ${plan.pin}.`),
      listed.length > 0 && conflictList(plan, listed),
      plan.offers.length > 0 &&
        h(
          "p.lnb-rf-acts",
          plan.offers.map((/** @type {Lnb.Json} */ offer) => this.offerButton(offer)),
        ),
    );
    const notes = plan.notes.map((/** @type {string} */ note) => h("li", note));
    show(
      this.body,
      conflictGrid(plan.grid, names),
      plan.sample.rows.length > 0 && sample(plan.sample, names, plan.base.label),
      notes.length > 0 && h("ul.lnb-cq", notes),
    );
    if (this.message.value === this.proposedMessage) this.message.value = plan.message;
    this.proposedMessage = plan.message;
    show(this.acts, !isNothing && this.commitLine(plan));
  }

  /** A button that sets fields of the form, and previews again. @param {Lnb.Json} offer */
  offerButton({ label, set }) {
    /** @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
    const fields = { key: this.key, on_conflict: this.conflicts, strategy: this.strategy };
    return button(label, () => {
      for (const [name, value] of Object.entries(set)) fields[name].value = value;
      this.preview();
    });
  }

  /** @param {Lnb.Json} plan */
  commitLine(plan) {
    const { unresolved } = plan;
    const target = plan.target.branch ?? "main";
    const label = plan.kind === "merge" ? `Merge into ${target}` : `Commit to ${target}`;
    const open = plan.cells?.open ?? 0;
    const numOthers = unresolved - (open ? 1 : 0);
    const missing = [
      open && `${plural(open, "row")} to choose first`,
      numOthers && `${plural(numOthers, "conflict")} to decide first`,
    ];
    return h(
      "p.lnb-rf-acts.lnb-mp-acts",
      this.message,
      this.tools.guard.button(label, () => this.commit(plan), { refused: unresolved > 0 }),
      unresolved > 0 && h("small.lnb-cq-stop", missing.filter(Boolean).join(", ")),
    );
  }

  /** @param {Lnb.Json} plan */
  async commit(plan) {
    const result = await longAction(this.ctx, this.checking, {
      type: "refs.merge",
      args: { plan: plan.plan, message: this.message.value },
      words: "Committing…",
      again: () => this.preview(),
      noun: "file",
    });
    if (!result) return;
    this.proposedMessage = this.message.value = "";
    this.tools.close();
    this.tools.done(result, { travel: true });
  }
}

/** @type {Record<string, string>} */
const DECIDED = { ours: "The target's is kept.", theirs: "The source's is taken." };

/** @param {Lnb.Json} plan @param {Lnb.Json[]} conflicts */
function conflictList(plan, conflicts) {
  return h(
    "ul.lnb-cq",
    conflicts.map((conflict) =>
      h(
        "li",
        { class: conflict.resolution ? "lnb-cq-warn" : "lnb-cq-stop" },
        h("i", { "aria-hidden": "true" }, conflict.resolution ? "!" : "✕"),
        h(
          "span",
          h("b", conflict.kind),
          ` ${conflict.text}. `,
          conflict.resolution ? h("em", DECIDED[conflict.resolution] ?? "") : `${conflict.remedy}.`,
        ),
      ),
    ),
    plan.hidden_conflicts ? h("li", `and ${count(plan.hidden_conflicts)} more`) : null,
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
    "ul.lnb-mp-fragments",
    fragments.lines.map((/** @type {Lnb.Json} */ line) =>
      h(
        "li",
        { class: `lnb-mp-${line.change}` },
        h("i", { "aria-hidden": "true" }, CHANGES[line.change]),
        `fragment ${line.id}: ${count(line.before)} → ${plural(line.after, "row")}`,
      ),
    ),
    fragments.hidden ? h("li", `and ${count(fragments.hidden)} more`) : null,
  );
  return h(
    "div",
    h(
      "p.lnb-mp-figures",
      [
        `rows ${count(rows[0])} → ${count(rows[1])} ` +
          `(${change < 0 ? "−" : "+"}${count(Math.abs(change))})`,
        `fragments: ${kinds.join(", ") || "none touched"}`,
        plan.operation && `recorded as ${titleOfOperation(plan.operation)}`,
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    plan.columns.length ? h("p", `columns: ${plan.columns.join(", ")}`) : null,
    fragments.lines.length ? h("details", h("summary", "resulting fragments"), list) : null,
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
    h("summary", "rows that both sides changed"),
    h(
      "div.lnb-cg-scroll",
      {
        tabindex: "0",
        role: "region",
        "aria-label": "rows that both sides changed",
      },
      h(
        "table.lnb-table",
        h(
          "thead",
          h(
            "tr",
            ["", ...columns].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        rows.map((/** @type {Lnb.Json} */ row) =>
          h(
            "tbody.lnb-mp-row",
            sides.map(([side, label]) =>
              h(
                "tr",
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
                      "td.lnb-faint",
                      { colspan: columns.length },
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
