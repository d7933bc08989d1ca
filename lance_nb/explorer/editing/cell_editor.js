// The box over a cell in which a value is typed, or chosen where it is true or false.

import { button, h, setText, show } from "../js/dom.js";

/** @type {Record<string, string>} */
const HINTS = {
  timestamp: "2024-05-01 10:30:00",
  "timestamp zone": "2024-05-01 10:30 or 2024-05-01 10:30+02:00",
  date: "2024-05-01",
  time: "10:30:00",
  json: "JSON",
};

/** What to type for a type. @param {string} type */
function hintOf(type) {
  if (type.startsWith("timestamp"))
    return HINTS[type.includes("tz=") ? "timestamp zone" : "timestamp"];
  return HINTS[type.match(/^(date|time)/)?.[0] ?? ""] ?? type;
}

export class CellEditor {
  before = { text: "", null: false }; // the value that the cell has
  isNull = false;
  kind = "line"; // how the value is written: line, text, json or bool
  isSaving = false;
  choices = h("select", { class: "lnb-input lnb-edit-box", hidden: true });
  note = h("small", { class: "lnb-edit-said", role: "alert" });
  hint = h("small", { class: "lnb-faint" });

  /**
   * @param {Lnb.Context} ctx @param {import("./grid_edits.js").GridEdits} edits
   * @param {{row: number, column: number, typed: string | null}} cell `typed`: what its value
   *   begins with, null for the value that it has
   * @param {{failed: (error: unknown) => void, closed: () => void}} hooks
   */
  constructor(ctx, edits, { row, column, typed }, hooks) {
    this.ctx = ctx;
    this.edits = edits;
    this.grid = edits.grid;
    this.cell = { row, column };
    this.typed = typed;
    this.hooks = hooks;
    this.args = { ...edits.place(), row, column };
    this.label = `${edits.store.column(column)?.name ?? "column"}, row ${row}`;
    /** @type {HTMLTextAreaElement} */
    this.input = h("textarea", {
      class: "lnb-input lnb-edit-box",
      rows: 1,
      dir: "auto",
      spellcheck: "false",
      "aria-label": this.label,
      on: { input: () => this.changed() },
    });
    this.nothing = button("Null", () => this.save(() => null, 1, 0), {
      title: "set the cell to null",
    });
    this.element = h(
      "div",
      {
        class: "lnb-edit-cell",
        on: { keydown: (event) => this.onKey(event), paste: (event) => event.stopPropagation() },
      },
      this.input,
      this.choices,
      h("div", { class: "lnb-edit-help" }, this.hint, this.nothing, this.note),
    );
    // The grid is painted in the frame after it was scrolled.
    this.follow = () => requestAnimationFrame(() => requestAnimationFrame(() => this.place()));
    this.grid.element.addEventListener("scroll", this.follow, { passive: true });
    this.grid.element.parentElement?.append(this.element);
    this.place();
    if (typed !== null) this.input.value = typed;
    this.input.focus({ preventScroll: true });
    /** @type {Promise<boolean>} whether the value of the cell is known */
    this.loaded = this.load();
  }

  close() {
    this.element.remove();
    this.grid.element.removeEventListener("scroll", this.follow);
    this.hooks.closed();
  }

  backToTheGrid() {
    this.close();
    this.grid.element.focus({ preventScroll: true });
  }

  /** Over the cell, as soon as it is painted. */
  place() {
    const cell = this.grid.body.querySelector(".lnb-cell.lnb-here");
    const around = this.element.parentElement?.getBoundingClientRect();
    if (!cell || !around) return;
    const { left, top, width } = cell.getBoundingClientRect();
    const { style } = this.element;
    style.left = `${Math.max(0, Math.min(left - around.left, around.width - 240))}px`;
    style.top = `${Math.max(0, top - around.top)}px`;
    style.minWidth = `${Math.max(width, 180)}px`;
  }

  async load() {
    try {
      const { result } = await this.ctx.kernel.ask("edit.cell", this.args, { quiet: true });
      if (!this.element.isConnected) return false;
      this.take(result);
      return true;
    } catch (error) {
      this.close();
      this.hooks.failed(error);
      this.grid.element.focus({ preventScroll: true });
      return false;
    }
  }

  /** @param {Lnb.Json} value see editing/widget.py */
  take(value) {
    const { editor, text, nullable, type } = value;
    const { input, typed } = this;
    this.place();
    this.kind = editor;
    this.before = { text, null: value.null };
    this.isNull = value.null && typed === null;
    this.nothing.hidden = !nullable;
    const hint = { json: "JSON", text: "" }[this.kind] ?? hintOf(type);
    setText(this.hint, hint);
    if (typed === null) input.value = text;
    input.placeholder = value.null ? "null" : this.emptyWords();
    if (editor === "bool") this.offerChoices(value);
    else if (editor === "json" || (editor === "text" && /[\n\r]|.{41}/.test(text))) {
      const lines = Math.max(text.split("\n").length, text.length / 40);
      input.rows = Math.min(8, Math.max(3, Math.ceil(lines)));
    }
    if (typed === null) input.select();
  }

  /** @param {Lnb.Json} value */
  offerChoices(value) {
    const { choices } = this;
    const names = ["true", "false", ...(value.nullable ? ["null"] : [])];
    show(
      choices,
      names.map((name) => h("option", { value: name }, name)),
    );
    const start = { t: "true", f: "false", n: "null" }[this.typed?.toLowerCase() ?? ""];
    choices.value = start ?? (value.null ? "null" : value.text);
    choices.setAttribute("aria-label", this.label);
    choices.hidden = false;
    this.input.hidden = true;
    choices.focus({ preventScroll: true });
  }

  emptyWords() {
    return this.kind === "text" ? "empty text" : "";
  }

  changed() {
    this.isNull = false;
    this.input.placeholder = this.emptyWords();
  }

  /** What is written, null for null. */
  written() {
    const { value } = this.input;
    if (this.kind === "bool") return this.choices.value === "null" ? null : this.choices.value;
    if (this.isNull && !value) return null;
    return this.kind !== "text" && !value.trim() ? null : value;
  }

  /**
   * Set the cell, and go on to another one.
   * @param {() => string | null} value @param {number} down @param {number} right
   */
  async save(value, down, right) {
    if (this.isSaving) return;
    this.isSaving = true;
    if (!(await this.loaded)) return;
    const text = value();
    const stays = this.before.null ? text === null : text === this.before.text;
    try {
      if (!stays) {
        const { result } = await this.ctx.kernel.ask("edit.set", { ...this.args, text });
        this.ctx.code(result.code ?? null);
      }
      const { numRows, numColumns } = this.grid.state;
      this.backToTheGrid();
      this.edits.moveTo(
        Math.min(numRows - 1, this.cell.row + down),
        Math.max(0, Math.min(numColumns - 1, this.cell.column + right)),
      );
      if (!stays) await this.edits.refresh();
    } catch (error) {
      setText(this.note, wordsOf(error));
      this.input.setAttribute("aria-invalid", "true");
      this.isSaving = false;
      (this.kind === "bool" ? this.choices : this.input).focus({ preventScroll: true });
    }
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    event.stopPropagation();
    const hasLines = this.kind === "text" || this.kind === "json";
    const breaks = (event.shiftKey || event.altKey) && hasLines;
    if (event.key === "Escape") this.backToTheGrid();
    else if (event.target === this.nothing && ["Enter", " "].includes(event.key)) return;
    else if (event.key === "Enter" && !breaks)
      this.save(() => this.written(), event.shiftKey ? -1 : 1, 0);
    else if (event.key === "Tab") this.save(() => this.written(), 0, event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }
}

/** What an error says. @param {unknown} error */
export function wordsOf(error) {
  const { card, message } = /** @type {Lnb.Failure} */ (error);
  return card?.message ?? message;
}
