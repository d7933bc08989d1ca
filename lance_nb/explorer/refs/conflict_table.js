// The cells that both sides of a merge changed: base, ours, theirs, and which of them counts. It is
// chosen by cell, row, column or for all, or written by hand. The page holds one window of cells.

import { button, consume, count, h, plural, show } from "../js/dom.js";
import { inlinePicture } from "../js/inline_picture.js";

const PAGE = 60;
const RECHECK_MS = 250;

/** @typedef {"base" | "ours" | "theirs"} Side */
/** @type {Side[]} */
const SIDES = ["base", "ours", "theirs"];
/** @type {Record<string, Side | undefined>} */
const KEYS = { b: "base", o: "ours", t: "theirs" };

/**
 * @typedef {{text: string | null, image?: Lnb.Json}} Value
 * What a person chose: for a cell, a row, a column or all; null stands for every one.
 * @typedef {{row: string | null, column: string | null, take: string, value?: string | null,
 *   shown?: string | null}} Choice
 * @typedef {{row: string, label: string, column: string | null, name: string | null,
 *   base: Value | null, ours: Value | null, theirs: Value | null, sides?: Side[] | null}} Line see
 *   refs/merge_preview.py; `sides` are those that can be applied, where not all can
 */

/** @param {string | null} row @param {string | null} column */
const keyOf = (row, column) => JSON.stringify([row, column]);

/** Whether a choice can be applied to a line, or to any. @param {Line | Lnb.Json} line
 * @param {string} take */
const applies = ({ sides }, take) => !sides || sides.includes(/** @type {Side} */ (take));

export class ConflictTable {
  /** @type {Map<string, Choice>} */
  choices = new Map();
  /** @type {Lnb.Json} the preview whose conflicts are shown */
  plan = null;
  /** @type {Line[]} */
  lines = [];
  first = 0;
  /** @type {Map<string, HTMLElement>} what is in the result of a cell that is being written */
  editors = new Map();
  /** @type {{line: number, spot: number}} the button that the tab key leads to */
  cursor = { line: 0, spot: 1 };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting = undefined;
  intro = h("p");
  wide = h("div.lnb-ct-wide");
  body = h("div");
  pager = h("p.lnb-ct-pager");

  /**
   * @param {Lnb.Context} ctx
   * @param {(choices: Choice[]) => void} changed called a moment after the choices have changed
   * @param {{cells: string, value: string, more?: Lnb.Args}} [requests] that read cells and check
   *   values, and what goes with them
   */
  constructor(ctx, changed, requests = { cells: "refs.cells", value: "refs.value" }) {
    this.ctx = ctx;
    this.changed = changed;
    this.requests = requests;
    this.line = ctx.kernel.line();
    this.element = h(
      "section.lnb-ct",
      { "aria-label": "conflicts", on: { keydown: (event) => this.onKey(event) } },
      h("h4.lnb-ct-title", "Conflicts"),
      this.intro,
      this.wide,
      this.body,
      this.pager,
    );
  }

  /** Show the conflicts of a preview; the choices stay if it is of the same two versions.
   * @param {Lnb.Json} plan */
  put(plan) {
    const before = this.plan;
    this.plan = plan;
    if (before?.source.label === plan.source.label && before.target.label === plan.target.label)
      return;
    this.choices.clear();
    this.lines = [];
    this.load(0);
  }

  /** Forget the choices: the form asks for something else. */
  reset() {
    clearTimeout(this.waiting);
    this.plan = null;
    this.choices.clear();
    this.editors.clear();
  }

  /** @param {number} first cell of the window */
  load(first) {
    this.first = first;
    this.cursor = { line: 0, spot: 1 };
    this.editors.clear();
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      this.lines = result.lines;
      this.paint();
    };
    const args = { ...this.requests.more, plan: this.plan.plan, first, count: PAGE };
    this.line(this.requests.cells, args, done, (error) => show(this.body, this.ctx.problem(error)));
  }

  titles() {
    const { base, source, target } = this.plan;
    return { base: `as before (${base.label})`, ours: target.label, theirs: source.label };
  }

  /** The choice that counts for a line: the narrowest. @param {Line} line */
  chosen(line) {
    const { row, column } = line;
    const cell = column === null ? undefined : this.choices.get(keyOf(row, column));
    const byColumn = column === null ? undefined : this.choices.get(keyOf(null, column));
    const choice =
      cell ?? this.choices.get(keyOf(row, null)) ?? byColumn ?? this.choices.get(keyOf(null, null));
    return choice && applies(line, choice.take) ? choice : undefined;
  }

  /** A wider choice replaces the narrower ones that it covers. @param {Choice} choice */
  choose(choice) {
    const { row, column } = choice;
    for (const [key, other] of this.choices) {
      const isCovered =
        (row === null || other.row === row) && (column === null || other.column === column);
      if (isCovered) this.choices.delete(key);
    }
    this.choices.set(keyOf(row, column), choice);
    this.editors.delete(keyOf(row, column));
    this.paint();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.changed([...this.choices.values()]), RECHECK_MS);
  }

  /** @param {string} label @param {string | null} row @param {string | null} column */
  sideButtons(label, row, column) {
    const chosen = this.choices.get(keyOf(row, column));
    const titles = this.titles();
    const [ours, theirs] = [titles.ours, titles.theirs].map((title) => title.replace(/:\d+$/, ""));
    const names = { ...(ours === theirs ? titles : { ours, theirs }), base: "base" };
    return h(
      "span.lnb-choices",
      { role: "group", "aria-label": label },
      SIDES.filter((side) => row !== null || applies(this.plan, side)).map((side) =>
        button(names[side], () => this.choose({ row, column, take: side }), {
          class: "lnb-choice",
          "aria-pressed": String(chosen?.take === side),
          title: `${label}: ${titles[side]}`,
          tabindex: row === null ? "0" : "-1",
        }),
      ),
    );
  }

  paint() {
    if (!this.plan) return;
    const { cells, note, sides } = this.plan;
    show(this.intro, !sides && this.advice(), note && h("span.lnb-ct-note", note));
    /** @param {string} label @param {string | null} column */
    const group = (label, column) => h("div", h("b", label), this.sideButtons(label, null, column));
    show(
      this.wide,
      group("all conflicts", null),
      (cells.columns.length > 1 || cells.deleted_rows) &&
        cells.columns.map((/** @type {Lnb.Json} */ column) =>
          group(`${column.label} (${count(column.count)})`, column.name),
        ),
      cells.hidden && h("small", `and ${plural(cells.hidden, "more column")}`),
    );
    this.paintLines();
    const last = Math.min(this.first + PAGE, cells.total);
    const previous = () => this.load(Math.max(0, this.first - PAGE));
    const next = () => this.load(this.first + PAGE);
    show(
      this.pager,
      cells.total > PAGE && [
        button("Previous", previous, { disabled: this.first === 0 }),
        h("span", `cells ${count(this.first + 1)} to ${count(last)} of ${count(cells.total)}`),
        button("Next", next, { disabled: last >= cells.total }),
      ],
    );
  }

  advice() {
    const { cells, source, target } = this.plan;
    const deleted = cells.deleted_rows
      ? `, ${plural(cells.deleted_rows, "row")} of them deleted on one side`
      : "";
    const changed = `${plural(cells.total, "cell")} in ${plural(cells.rows, "row")}${deleted}`;
    return (
      `Both sides changed ${changed}. ` +
      `Choose what counts: ${target.label} is kept, ${source.label} is taken, or the value stays ` +
      "as before. Narrower choices count before wider ones. "
    );
  }

  paintLines() {
    const titles = this.titles();
    const active = /** @type {HTMLElement | null} */ (this.body.ownerDocument.activeElement);
    const focused = this.body.contains(active);
    const head = [this.plan.cells.key, "column", titles.base, titles.ours, titles.theirs, "result"];
    const title = (/** @type {string} */ text) =>
      h("th", { scope: "col", role: "columnheader" }, text);
    const table = h(
      "table.lnb-table.lnb-ct-table",
      { role: "grid", "aria-label": "cells in conflict" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head.map(title))),
      h(
        "tbody",
        { role: "rowgroup" },
        this.lines.map((line, index) => this.lineRow(line, index)),
      ),
    );
    show(this.body, h("div.lnb-ct-scroll", table));
    if (!focused) return;
    // The same box stands in the new table while its value is being typed.
    if (active && this.body.contains(active)) active.focus({ preventScroll: true });
    else this.focusSpot();
  }

  /** @param {Line} line @param {number} index */
  lineRow(line, index) {
    const choice = this.chosen(line);
    const isFirst = !index || this.lines[index - 1].row !== line.row;
    const isMany = line.column !== null && (this.lines[index + 1]?.row === line.row || !isFirst);
    return h(
      "tr",
      { role: "row", class: isFirst ? "lnb-ct-first" : null },
      h(
        "th",
        { scope: "row", role: "rowheader" },
        isFirst ? line.label : "",
        isFirst && isMany ? this.sideButtons(`row ${line.label}`, line.row, null) : null,
      ),
      h("td", { role: "gridcell" }, line.name ?? "whole row"),
      SIDES.map((side, spot) => this.sideCell(line, side, choice, { line: index, spot })),
      h("td", { role: "gridcell" }, this.result(line, index, choice)),
    );
  }

  /**
   * @param {Line} line @param {Side} side @param {Choice | undefined} choice
   * @param {{line: number, spot: number}} place
   */
  sideCell(line, side, choice, place) {
    const value = line[side];
    const isTaken = choice?.take === side;
    const canTake = applies(line, side);
    const text = value ? (value.text ?? "null") : side === "base" ? "absent" : "deleted";
    const take = () => canTake && this.choose({ row: line.row, column: line.column, take: side });
    const look = {
      class: `lnb-ct-side${value && value.text !== null ? "" : " lnb-faint"}`,
      type: "button",
      "aria-pressed": String(isTaken),
      tabindex: this.tabOf(place.line, place.spot),
      title: canTake ? text : `${text}: cannot be applied to this row`,
      "aria-disabled": canTake ? null : "true",
      on: { click: take, focus: () => this.rove(place.line, place.spot) },
    };
    return h(
      "td",
      { role: "gridcell", class: isTaken ? "lnb-ct-taken" : null },
      h(
        "button",
        look,
        isTaken && h("i", { "aria-hidden": "true" }, "✓ "),
        value?.image ? inlinePicture(value.image, text) : text,
      ),
    );
  }

  /** @param {Line} line @param {number} index @param {Choice | undefined} choice */
  result(line, index, choice) {
    const editor = this.editors.get(keyOf(line.row, line.column));
    if (editor) return editor;
    const place = h("span.lnb-ct-result");
    let shown = h("em.lnb-ct-open", "to choose");
    if (choice?.take === "value") shown = h("b", `✎ ${choice.shown ?? "null"}`);
    else if (choice) shown = this.titles()[/** @type {Side} */ (choice.take)];
    const look = {
      class: "lnb-link",
      tabindex: this.tabOf(index, 3),
      "aria-label": `write a value for ${line.name} of row ${line.label}`,
      on: { click: () => this.edit(line, place), focus: () => this.rove(index, 3) },
    };
    show(place, shown, line.column !== null && h("button", { type: "button", ...look }, "Write…"));
    return place;
  }

  /** @param {Line} line @param {HTMLElement} place */
  edit(line, place) {
    this.editors.set(keyOf(line.row, line.column), place);
    const close = () => {
      this.editors.delete(keyOf(line.row, line.column));
      this.paint();
    };
    const choice = this.chosen(line);
    const side =
      choice && choice.take !== "value" ? line[/** @type {Side} */ (choice.take)] : line.ours;
    const start = choice?.take === "value" ? choice.value : side?.text;
    const problem = h("small.lnb-cq-stop", { role: "alert" });
    /** @type {HTMLInputElement} */
    const box = h("input.lnb-input", {
      "aria-label": `value of ${line.name} for row ${line.label}`,
      value: start ?? "",
      spellcheck: "false",
    });
    /** @param {string | null} text */
    const set = async (text) => {
      const { row, column } = line;
      const args = { ...this.requests.more, plan: this.plan.plan, column, text };
      try {
        const { result } = await this.ctx.kernel.ask(this.requests.value, args);
        if (!result.problem)
          return this.choose({ row, column, take: "value", value: text, shown: result.shown });
        problem.textContent = result.problem;
        box.setAttribute("aria-invalid", "true");
        box.focus();
      } catch (error) {
        show(place, this.ctx.problem(error));
      }
    };
    box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") close();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      if (event.key === "Enter") set(box.value);
    });
    show(
      place,
      box,
      button("Set", () => set(box.value)),
      button("Null", () => set(null)),
      button("Cancel", close),
      problem,
    );
    box.focus();
    box.select();
  }

  /** @param {number} line @param {number} spot */
  tabOf(line, spot) {
    return line === this.cursor.line && spot === this.cursor.spot ? "0" : "-1";
  }

  /** @param {number} line @param {number} spot */
  spotAt(line, spot) {
    const row = this.body.querySelectorAll("tbody tr")[line];
    const buttons = row?.querySelectorAll(".lnb-ct-side, .lnb-link") ?? [];
    return /** @type {HTMLElement | undefined} */ (buttons[Math.min(spot, buttons.length - 1)]);
  }

  /** @param {number} line @param {number} spot */
  rove(line, spot) {
    this.spotAt(this.cursor.line, this.cursor.spot)?.setAttribute("tabindex", "-1");
    this.cursor = { line, spot };
    this.spotAt(line, spot)?.setAttribute("tabindex", "0");
  }

  focusSpot() {
    this.spotAt(this.cursor.line, this.cursor.spot)?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const target = /** @type {Element} */ (event.target);
    if (!target.closest(".lnb-ct-table") || !this.lines[this.cursor.line]) return;
    /** @type {Record<string, [number, number] | undefined>} */
    const moves = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [10, 0],
      PageUp: [-10, 0],
    };
    const move = moves[event.key];
    const side = KEYS[event.key];
    const line = this.lines[this.cursor.line];
    if (move) {
      const next = Math.max(0, Math.min(this.lines.length - 1, this.cursor.line + move[0]));
      this.rove(next, Math.max(0, Math.min(3, this.cursor.spot + move[1])));
      this.spotAt(this.cursor.line, this.cursor.spot)?.focus();
    } else if (side && applies(line, side)) {
      this.choose({ row: line.row, column: line.column, take: side });
    } else if (event.key === "e" && line.column !== null) {
      /** @type {HTMLElement | undefined} */ (this.spotAt(this.cursor.line, 3))?.click();
    } else return;
    consume(event);
  }
}
