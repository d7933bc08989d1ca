// The form that adds an expectation. What was typed is checked by the kernel while it is typed.

import { h, show } from "../js/dom.js";

/**
 * The kinds of expectations, and the boxes of each: name of the field, label, kind of box.
 * @type {Record<string, [label: string, ...fields: [string, string, string][]]>}
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
const DRIFT_DEFAULTS = { max: "0.25", against: "previous" };
let instances = 0;

export class ExpectationForm {
  columns = h("datalist", { id: `lnb-ex${(instances += 1)}-columns` });
  boxes = h("span.lnb-ex-boxes");
  note = h("p.lnb-ex-told", { "aria-live": "polite" });
  acts = h("span");
  /** @type {Map<string, HTMLInputElement>} */
  inputs = new Map();

  /**
   * @param {Lnb.Context} ctx
   * @param {ReturnType<typeof import("../js/write_guard.js").writeGuard>} guard
   * @param {(args: Lnb.Args) => Promise<boolean>} add adds one, resolves to whether it could
   */
  constructor(ctx, guard, add) {
    this.ctx = ctx;
    this.guard = guard;
    this.add = add;
    this.request = ctx.kernel.line();
    this.kind = h(
      "select.lnb-input",
      {
        "aria-label": "kind of expectation",
        on: { change: () => this.showBoxes(), keydown: (event) => event.stopPropagation() },
      },
      Object.entries(KINDS).map(([value, [label]]) => h("option", { value }, label)),
    );
    this.name = this.box("name", "name (optional)", "");
    this.element = h(
      "div.lnb-ex-form",
      { role: "group", "aria-label": "new expectation" },
      h("span", "Expect"),
      this.kind,
      this.boxes,
      this.name,
      this.acts,
      this.columns,
      this.note,
    );
    this.showBoxes();
  }

  /** Offer the columns of the dataset. @param {Lnb.Json[]} columns */
  offer(columns) {
    const options = columns.map(({ name, label, type }) =>
      h("option", { value: name }, `${label}: ${type}`),
    );
    show(this.columns, options);
  }

  fields() {
    const [, ...fields] = KINDS[this.kind.value];
    return fields;
  }

  /**
   * @param {string} field @param {string} label @param {string} value @param {string} [content]
   * @returns {HTMLInputElement}
   */
  box(field, label, value, content = "text") {
    return h("input", {
      class: `lnb-input lnb-ex-${field}`,
      "aria-label": label,
      placeholder: label,
      value,
      spellcheck: "false",
      autocomplete: "off",
      list: content.startsWith("column") ? this.columns.id : null,
      inputmode: content === "number" ? "decimal" : null,
      on: { input: () => this.check(), keydown: (event) => this.onKey(event) },
    });
  }

  showBoxes() {
    this.inputs.clear();
    const defaults = this.kind.value === "drift" ? DRIFT_DEFAULTS : {};
    for (const [field, label, content] of this.fields())
      this.inputs.set(field, this.box(field, label, defaults[field] ?? "", content));
    show(this.boxes, [...this.inputs.values()]);
    this.check();
  }

  /** What was typed, as the kernel reads it. A number that is none is sent as it is. */
  values() {
    /** @type {Record<string, string | number | string[]>} */
    const values = {};
    for (const [field, , content] of this.fields()) {
      const text = this.inputs.get(field)?.value.trim() ?? "";
      if (content === "columns") values[field] = text.split(",").map((name) => name.trim());
      else if (content !== "number") values[field] = text;
      else if (text) values[field] = Number.isFinite(Number(text)) ? Number(text) : text;
    }
    return { kind: this.kind.value, fields: values, name: this.name.value };
  }

  check() {
    const isEmpty = ![...this.inputs.values()].some((input) => input.value.trim());
    if (isEmpty) return this.offerAdd("", true);
    /** @type {Lnb.Done} */
    const done = ({ result: { problem, code } }) => {
      this.offerAdd(problem, Boolean(problem));
      if (code) this.ctx.code(code);
    };
    const args = { branch: this.ctx.screen().branch, ...this.values() };
    this.request("checks.form", args, done, (error) => show(this.note, this.ctx.problem(error)));
  }

  /** @param {string} note @param {boolean} refused */
  offerAdd(note, refused) {
    show(this.note, note);
    show(
      this.acts,
      this.guard.button("Add", () => this.submit(), { refused }),
    );
  }

  async submit() {
    if (!(await this.add(this.values()))) return;
    this.name.value = "";
    this.showBoxes();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.acts.querySelector("button")?.click();
  }
}
