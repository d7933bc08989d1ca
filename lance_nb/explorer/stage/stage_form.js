// The form of a staged change: a verb, its fields with completion, and what the kernel says of it
// while one types.

import { button, h, setText, show } from "../js/dom.js";
import { suggestions } from "../js/suggestions.js";

const TYPES = (
  "int8 int16 int32 int64 uint8 uint32 uint64 float16 float32 float64 bool string large_string " +
  "binary date32 timestamp[us] float16[128]"
).split(" ");
const MAX_SUGGESTIONS = 12;
const ENGINES = [
  ["auto", "automatic"],
  ["local", "here"],
  ["spark", "Spark"],
];
/**
 * @typedef {{verb: string, args: Lnb.Args, engine: string}} Edit
 * @typedef {{name?: string, kind: string, label: string, hint: string, choices?: string[],
 *   only_for?: [name: string, values: string[]] | null}} Field
 * @typedef {{element: HTMLElement, value: () => Lnb.Json}} Input
 * @typedef {{name: string, type: string, text: string}} Line a suggestion
 * @typedef {{name: string, label: string, group: string, fields: (Field & {name: string})[],
 *   is_heavy: boolean}} Verb
 * @typedef {{verbs: Verb[], columns: {name: string, type: string, value: string, sql: string}[],
 *   versions: string[], tags: string[], branches: string[], rows: {name: string, kind: string,
 *   text: string}[]}} Menu
 */

const NAME = /`(?:[^`]|``)*$|[A-Za-z_][\w.]*$/;
const PART = /\s*`(?:[^`]|``)*`|[^,]+/g;
let instances = 0;

export class StageForm {
  uid = `lnb-sg${(instances += 1)}`;
  /** @type {Menu | null} */
  menu = null;
  /** @type {{field: Field & {name: string}, input: Input, label: HTMLElement}[]} */
  fields = [];
  /** @type {(() => unknown) | null} */
  renew = null; // offers anew what could stand in the field of the keyboard
  /** @type {HTMLSelectElement} */
  verbs = h("select.lnb-input.lnb-sg-verb", {
    id: `${this.uid}-verb`,
    "aria-label": "change",
    on: { change: () => this.choose(this.verbs.value) },
  });
  place = h("div.lnb-sg-fields");
  engine = h(
    "select.lnb-input",
    {
      "aria-label": "where it runs",
      hidden: true,
      on: { change: () => this.ask() },
    },
    ENGINES.map(([value, label]) => h("option", { value }, label)),
  );
  note = h("p.lnb-sg-said", { id: `${this.uid}-said`, "aria-live": "polite" });
  submitButton = h("button.lnb-button.lnb-sg-go", { type: "submit" }, "Stage");
  element = h(
    "form.lnb-sg-form",
    {
      "aria-label": "stage a change",
      on: {
        submit: (event) => this.submit(event),
        keydown: (event) => event.key !== "Escape" && event.stopPropagation(),
      },
    },
    h("div.lnb-sg-line", this.verbs, this.place, this.engine, this.submitButton),
    this.note,
  );

  /**
   * @param {Lnb.Context} ctx
   * @param {{stage: (edit: Edit) => void, code: (lines: Lnb.CodeLines|null) => void}} act
   */
  constructor(ctx, { stage, code }) {
    this.ctx = ctx;
    this.stage = stage;
    this.code = code;
    this.request = ctx.kernel.line();
  }

  /** Take what can be staged now; what is typed stays. @param {Menu} next */
  offer(next) {
    const isFirst = !this.menu;
    this.menu = next;
    const chosen = this.verbs.value;
    const groups = [...groupsOf(next.verbs)].map(([label, verbs]) => {
      const options = verbs.map((verb) => h("option", { value: verb.name }, verb.label));
      return h("optgroup", { label }, options);
    });
    show(this.verbs, groups);
    if (isFirst) this.choose(next.verbs[0].name);
    else this.verbs.value = chosen;
    this.renew?.();
  }

  /** @param {string} name @param {Lnb.Args} [args] */
  choose(name, args = {}, quietly = false) {
    const verb = this.menu?.verbs.find((candidate) => candidate.name === name);
    if (!verb) return;
    this.verbs.value = name;
    this.fields = verb.fields.map((field) => {
      const input = this.inputOf(field, args[field.name]);
      const look = `lnb-sg-field lnb-sg-${field.kind}`;
      const label = h("label", { class: look }, h("span", field.label), input.element);
      return { field, input, label };
    });
    const labels = this.fields.map(({ label }) => label);
    show(this.place, labels);
    this.sift();
    this.engine.hidden = !verb.is_heavy;
    if (quietly) this.say("");
    else this.ask();
  }

  /** Hide the fields that other choices have no use for; the others are returned. */
  sift() {
    return this.fields.filter(({ field: { only_for: needs }, label }) => {
      const other = this.fields.find(({ field }) => field.name === needs?.[0]);
      label.hidden = Boolean(needs && other && !needs[1].includes(other.input.value()));
      return !label.hidden;
    });
  }

  /** @param {Field} field @param {Lnb.Json} value @returns {Input} */
  inputOf(field, value) {
    if (field.kind === "set") return this.setInput(field, value);
    if (field.kind === "choice") {
      const select = h(
        "select.lnb-input",
        { "aria-label": field.label, on: { change: () => this.ask() } },
        (field.choices ?? []).map((choice) =>
          h("option", { value: choice, selected: choice === value }, choice),
        ),
      );
      return { element: select, value: () => select.value };
    }
    const text = Array.isArray(value) ? value.map(quoted).join(", ") : (value ?? "");
    const input = this.textInput(field, String(text));
    if (field.kind !== "columns") return input;
    const columns = () => (input.value().match(PART) ?? []).map(plain).filter(Boolean);
    return { ...input, value: columns };
  }

  /** One text with a list of what could stand there. @param {Field} field @param {string} value */
  textInput(field, value, name = field.label) {
    const input = h("input.lnb-input", {
      "aria-label": name,
      placeholder: field.hint,
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": `${this.uid}-said`,
      inputmode: field.kind === "count" ? "numeric" : null,
    });
    input.value = value;
    /** @param {Line} line */
    const take = (line) => {
      const position = input.selectionStart ?? input.value.length;
      const start = position - typed(field, input).length;
      input.setRangeText(line.text, start, inside(field) ? position : input.value.length, "end");
      this.ask();
    };
    const anchor = inside(field) ? () => typed(field, input) : null;
    const list = suggestions(input, `${name}: suggestions`, take, anchor);
    const offer = () => list.offer(this.linesFor(field, typed(field, input)));
    input.addEventListener("input", () => {
      offer();
      this.ask();
    });
    input.addEventListener("focus", () => {
      if (inside(field)) return;
      offer();
      this.renew = () => !input.value && !list.moved() && offer();
    });
    input.addEventListener("blur", () => (this.renew = null));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !list.list.hidden && !list.moved()) list.offer([]);
      else if (list.key(event)) event.stopPropagation();
    });
    return {
      element: h("span.lnb-sg-box", input, list.list),
      value: () => input.value.trim(),
      input,
    };
  }

  /** @param {Field} field @param {Lnb.Json} value @returns {Input} */
  setInput(field, value) {
    /** @type {{left: Input, right: Input}[]} */
    const lines = [];
    const more = button("Add column", () => add("", ""), { class: "lnb-link" });
    /** @param {string} column @param {string} sql */
    const add = (column, sql) => {
      const left = this.textInput({ kind: "column", hint: "column", label: "column" }, column);
      const right = this.textInput({ kind: "sql", hint: field.hint, label: "new value" }, sql);
      lines.push({ left, right });
      more.before(h("span.lnb-sg-pair", left.element, "=", right.element));
    };
    const element = h("span.lnb-sg-set", more);
    for (const [column, sql] of Object.entries(value ?? { "": "" }))
      add(column, /** @type {string} */ (sql));
    const pairs = () => lines.map(({ left, right }) => [left.value(), right.value()]);
    return { element, value: () => Object.fromEntries(pairs().filter(([column]) => column)) };
  }

  /** What could stand in a field. @param {Field} field @returns {Line[]} */
  choicesFor({ kind }) {
    const { menu } = this;
    if (!menu) return [];
    const plainly = (/** @type {string[]} */ texts) =>
      texts.map((text) => ({ name: text, type: "", text }));
    if (kind === "type") return plainly(TYPES);
    if (kind === "version") return plainly(menu.versions);
    if (kind === "tag") return plainly(menu.tags);
    if (kind === "branch") return plainly(menu.branches);
    if (kind === "rows")
      return menu.rows.map(({ name, kind, text }) => ({
        name,
        type: `${kind}, ${text}`,
        text: name,
      }));
    if (!["column", "columns", "filter", "sql"].includes(kind)) return [];
    return menu.columns.map(({ name, type, value, sql }) => {
      const text = kind === "columns" ? quoted(value) : `${sql} `;
      return { name, type, text: kind === "column" ? value : text };
    });
  }

  /** @param {Field} field @param {string} text what is typed @returns {Line[]} */
  linesFor(field, text) {
    const query = text.replaceAll("`", "").toLowerCase();
    if (!query && inside(field) && field.kind !== "columns") return [];
    return this.choicesFor(field)
      .filter((line) => line.name.toLowerCase().includes(query) && line.text !== text)
      .slice(0, MAX_SUGGESTIONS);
  }

  /** @returns {Edit} */
  edit() {
    const args = this.sift().map(({ field, input }) => [field.name, input.value()]);
    const engine = this.engine.hidden ? "auto" : this.engine.value;
    return { verb: this.verbs.value, args: Object.fromEntries(args), engine };
  }

  /** Ask what the kernel thinks of it; a field that is still empty is nothing to complain about. */
  ask() {
    if (!this.menu || this.ctx.kernel.state === "static") return;
    const { branch, version } = this.ctx.screen();
    /** @type {Lnb.Done} */
    const done = ({ result: { note, where, code } }) => {
      const engine = where?.name === "spark" ? "on Spark" : "here";
      const place = where && `runs ${engine}: ${where.reason}`;
      this.say([note, place].filter(Boolean).join(" · "));
      this.code(code);
    };
    /** @type {Lnb.Failed} */
    const failed = ({ message }) => {
      const isEmpty = message.endsWith(" is missing");
      this.say(isEmpty ? "" : message, !isEmpty);
      this.code(null);
    };
    this.request("stage.check", { branch, version, ...this.edit() }, done, failed);
  }

  /** @param {string} text */
  say(text, wrong = false) {
    setText(this.note, text);
    this.note.classList.toggle("lnb-sg-wrong", wrong);
    for (const input of this.place.querySelectorAll("input")) {
      const culprit = wrong && input.value.trim() && text.includes(input.value.trim().slice(0, 60));
      if (culprit) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  /** @param {Event} event */
  submit(event) {
    event.preventDefault();
    if (this.menu) this.stage(this.edit());
  }

  get verb() {
    return this.verbs.value;
  }

  /**
   * Fill the form: `{verb, ...args}` of another view.
   * @param {Lnb.Args & {verb: string}} card
   */
  fill({ verb, ...args }) {
    const isMaterialize = verb === "materialize";
    const name = isMaterialize ? "compact" : verb;
    const defaults = isMaterialize ? { materialize_deletions_threshold: 0 } : {};
    this.choose(name, { ...defaults, ...args });
    this.submitButton.focus();
  }

  clear() {
    return this.choose(this.verbs.value, {}, true);
  }

  /** Nothing is staged while other work is under way, or the lock is shut. @param {boolean} on */
  enable(on) {
    this.submitButton.disabled = !on;
  }
}

/** @param {Field} field */
const inside = (field) => ["filter", "sql", "columns"].includes(field.kind);

/**
 * What is being typed: the name at the caret of an expression, else all of it.
 * @param {Field} field @param {HTMLInputElement} input
 */
function typed(field, input) {
  const before = input.value.slice(0, input.selectionStart ?? input.value.length);
  if (field.kind === "columns") return before.slice(before.lastIndexOf(",") + 1).trimStart();
  if (!inside(field)) return input.value;
  if ((before.split("'").length - 1) % 2) return ""; // within a text
  return NAME.exec(before)?.[0] ?? "";
}

/** @param {string} name */
const quoted = (name) => (/^[^,`]+$/.test(name) ? name : `\`${name.replace(/`/g, "``")}\``);
/** @param {string} part */
const plain = (part) =>
  part.trim().startsWith("`") ? part.trim().slice(1, -1).replace(/``/g, "`") : part.trim();

/** @param {Verb[]} verbs */
function groupsOf(verbs) {
  /** @type {Map<string, Verb[]>} */
  const groups = new Map();
  for (const verb of verbs) groups.set(verb.group, [...(groups.get(verb.group) ?? []), verb]);
  return groups;
}
