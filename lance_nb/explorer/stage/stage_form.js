// The form of a staged change: a verb, its fields with completion, and what the kernel says of it
// while one types.

import { h, button as makeButton, setText, show } from "../js/dom.js";
import { suggestions } from "../js/suggestions.js";

const TYPES = [
  "int8",
  "int16",
  "int32",
  "int64",
  "uint8",
  "uint32",
  "uint64",
  "float16",
  "float32",
  "float64",
  "bool",
  "string",
  "large_string",
  "binary",
  "date32",
  "timestamp[us]",
  "float16[128]",
];
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

/**
 * @param {Lnb.Context} ctx
 * @param {{stage: (edit: Edit) => void, code: (lines: Lnb.CodeLines|null) => void}} act
 */
export function stageForm(ctx, { stage, code }) {
  const uid = `lnb-sg${(instances += 1)}`;
  const request = ctx.kernel.line();
  /** @type {HTMLSelectElement} */
  const verbs = h("select", {
    class: "lnb-input lnb-sg-verb",
    id: `${uid}-verb`,
    "aria-label": "change",
    on: { change: () => choose(verbs.value) },
  });
  const place = h("div", { class: "lnb-sg-fields" });
  const engine = h(
    "select",
    { class: "lnb-input", "aria-label": "where it runs", hidden: true, on: { change: ask } },
    ENGINES.map(([value, label]) => h("option", { value }, label)),
  );
  const note = h("p", { class: "lnb-sg-said", id: `${uid}-said`, "aria-live": "polite" });
  const button = h("button", { class: "lnb-button lnb-sg-go", type: "submit" }, "Stage");
  const element = h(
    "form",
    {
      class: "lnb-sg-form",
      "aria-label": "stage a change",
      on: { submit, keydown: (event) => event.key !== "Escape" && event.stopPropagation() },
    },
    h("div", { class: "lnb-sg-line" }, verbs, place, engine, button),
    note,
  );
  /** @type {Menu | null} */
  let menu = null;
  /** @type {{field: Field & {name: string}, input: Input, label: HTMLElement}[]} */
  let fields = [];
  /** @type {(() => unknown) | null} */
  let renew = null; // offers anew what could stand in the field of the keyboard

  /** Take what can be staged now; what is typed stays. @param {Menu} next */
  function offer(next) {
    const first = !menu;
    menu = next;
    const groups = groupsOf(menu.verbs);
    const chosen = verbs.value;
    show(
      verbs,
      [...groups].map(([group, list]) =>
        h(
          "optgroup",
          { label: group },
          list.map((verb) => h("option", { value: verb.name }, verb.label)),
        ),
      ),
    );
    if (first) choose(menu.verbs[0].name);
    else verbs.value = chosen;
    renew?.();
  }

  /** @param {string} name @param {Lnb.Args} [args] */
  function choose(name, args = {}, quietly = false) {
    const verb = menu?.verbs.find((verbOf) => verbOf.name === name);
    if (!verb) return;
    verbs.value = name;
    fields = verb.fields.map((field) => {
      const input = inputOf(field, args[field.name]);
      const look = `lnb-sg-field lnb-sg-${field.kind}`;
      const label = h("label", { class: look }, h("span", {}, field.label), input.element);
      return { field, input, label };
    });
    show(
      place,
      fields.map(({ label }) => label),
    );
    sift();
    engine.hidden = !verb.is_heavy;
    if (quietly) say("");
    else ask();
  }

  /** Hide the fields that other choices have no use for; the others are returned. */
  function sift() {
    return fields.filter(({ field: { only_for: needs }, label }) => {
      const other = fields.find(({ field }) => field.name === needs?.[0]);
      label.hidden = Boolean(needs && other && !needs[1].includes(other.input.value()));
      return !label.hidden;
    });
  }

  /** @param {Field} field @param {Lnb.Json} value @returns {Input} */
  function inputOf(field, value) {
    if (field.kind === "set") return setInput(field, value);
    if (field.kind === "choice") {
      const select = h(
        "select",
        { class: "lnb-input", "aria-label": field.label, on: { change: ask } },
        (field.choices ?? []).map((choice) =>
          h("option", { value: choice, selected: choice === value }, choice),
        ),
      );
      return { element: select, value: () => select.value };
    }
    const shown = Array.isArray(value) ? value.map(quoted).join(", ") : (value ?? "");
    const input = textInput(field, String(shown));
    return {
      ...input,
      value:
        field.kind === "columns"
          ? () =>
              (input.value().match(PART) ?? [])
                .map((/** @type {string} */ part) => plain(part))
                .filter(Boolean)
          : input.value,
    };
  }

  /** One text with a list of what could stand there. @param {Field} field @param {string} value */
  function textInput(field, value, name = field.label) {
    const input = h("input", {
      class: "lnb-input",
      "aria-label": name,
      placeholder: field.hint,
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": `${uid}-said`,
      inputmode: field.kind === "count" ? "numeric" : null,
    });
    input.value = value;
    const list = suggestions(
      input,
      `${name}: suggestions`,
      (line) => {
        const position = input.selectionStart ?? input.value.length;
        const from = position - typed(field, input).length;
        input.setRangeText(line.text, from, inside(field) ? position : input.value.length, "end");
        ask();
      },
      inside(field) ? () => typed(field, input) : null,
    );
    const look = () => list.offer(linesFor(field, typed(field, input)));
    input.addEventListener("input", () => {
      look();
      ask();
    });
    input.addEventListener("focus", () => {
      if (inside(field)) return;
      look();
      renew = () => !input.value && !list.moved() && look();
    });
    input.addEventListener("blur", () => (renew = null));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !list.list.hidden && !list.moved()) list.offer([]);
      else if (list.key(event)) event.stopPropagation();
    });
    return {
      element: h("span", { class: "lnb-sg-box" }, input, list.list),
      value: () => input.value.trim(),
      input,
    };
  }

  /** @param {Field} field @param {Lnb.Json} value @returns {Input} */
  function setInput(field, value) {
    const rows = h("span", { class: "lnb-sg-set" });
    /** @type {{left: Input, right: Input}[]} */
    const lines = [];
    /** @param {[column: string, sql: string]} pair */
    function add([column, sql]) {
      const left = textInput({ kind: "column", hint: "column", label: "column" }, column);
      const right = textInput({ kind: "sql", hint: field.hint, label: "new value" }, sql);
      lines.push({ left, right });
      rows.insertBefore(
        h("span", { class: "lnb-sg-pair" }, left.element, "=", right.element),
        more,
      );
    }
    const more = makeButton("Add column", () => add(["", ""]), { class: "lnb-link" });
    rows.append(more);
    for (const pair of Object.entries(value ?? { "": "" }))
      add(/** @type {[string, string]} */ (pair));
    return {
      element: rows,
      value: () =>
        Object.fromEntries(
          lines
            .map(({ left, right }) => [left.value(), right.value()])
            .filter(([column]) => column),
        ),
    };
  }

  /** @param {Field} field @param {string} text @returns {Line[]} */
  function linesFor(field, text) {
    if (!menu) return [];
    const query = text.replaceAll("`", "").toLowerCase();
    const columns = menu.columns.map((listed) => ({
      name: listed.name,
      type: listed.type,
      text:
        field.kind === "column"
          ? listed.value
          : field.kind === "columns"
            ? quoted(listed.value)
            : `${listed.sql} `,
    }));
    /** @param {string[]} texts @returns {Line[]} */
    const plainly = (texts) => texts.map((value) => ({ name: value, type: "", text: value }));
    /** @type {Record<string, Line[]>} */
    const byKind = {
      column: columns,
      columns,
      filter: columns,
      sql: columns,
      type: plainly(TYPES),
      version: plainly(menu.versions),
      tag: plainly(menu.tags),
      branch: plainly(menu.branches),
      rows: menu.rows.map((row) => ({
        name: row.name,
        type: `${row.kind}, ${row.text}`,
        text: row.name,
      })),
    };
    const lines = byKind[field.kind] ?? [];
    if (!query && inside(field) && field.kind !== "columns") return [];
    return lines
      .filter(
        (suggestion) => suggestion.name.toLowerCase().includes(query) && suggestion.text !== text,
      )
      .slice(0, 12);
  }

  /** @returns {Edit} */
  function edit() {
    const args = Object.fromEntries(sift().map(({ field, input }) => [field.name, input.value()]));
    return { verb: verbs.value, args, engine: engine.hidden ? "auto" : engine.value };
  }

  /** Ask what the kernel thinks of it; a field that is still empty is nothing to complain about. */
  function ask() {
    if (!menu || ctx.kernel.state === "static") return;
    const { branch, version } = ctx.screen();
    request(
      "stage.check",
      { branch, version, ...edit() },
      ({ result }) => {
        const where = result.where
          ? `runs ${result.where.name === "spark" ? "on Spark" : "here"}: ${result.where.reason}`
          : "";
        say([result.note, where].filter(Boolean).join(" · "));
        code(result.code);
      },
      (error) => {
        const empty = / is missing$/.test(error.message);
        say(empty ? "" : error.message, !empty);
        code(null);
      },
    );
  }

  /** @param {string} text */
  function say(text, wrong = false) {
    setText(note, text);
    note.classList.toggle("lnb-sg-wrong", wrong);
    for (const input of place.querySelectorAll("input")) {
      const culprit = wrong && input.value.trim() && text.includes(input.value.trim().slice(0, 60));
      if (culprit) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    if (menu) stage(edit());
  }

  return {
    element,
    offer,
    ask,
    get verb() {
      return verbs.value;
    },
    /**
     * Fill the form: `{verb, ...args}` of another view.
     * @param {Lnb.Args & {verb: string}} wanted
     */
    fill({ verb, ...args }) {
      const isMaterialize = verb === "materialize";
      const name = isMaterialize ? "compact" : verb;
      const meant = isMaterialize ? { materialize_deletions_threshold: 0 } : {};
      choose(name, { ...meant, ...args });
      button.focus();
    },
    clear: () => choose(verbs.value, {}, true),
    say,
    /** Nothing is staged while other work is under way, or the lock is shut. */
    enable(/** @type {boolean} */ on) {
      button.disabled = !on;
    },
  };
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
