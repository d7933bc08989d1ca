// The editor of the grid: the cell that is typed into, blocks of the clipboard, rows that are added
// and deleted, undo and redo. What is edited waits in the kernel for a commit from the Stage tab.

import { button, consume, count, h, plural, setText, show } from "../js/dom.js";
import { commands } from "../js/grid_keys.js";
import { lockButton } from "../js/lock_button.js";
import { widget } from "../js/view.js";
import { CellEditor, wordsOf } from "./cell_editor.js";
import { rowForm } from "./row_form.js";

const MOST_CHARS = 150_000; // of a block, see editing/cell_draft.py
const MOST_CELLS = 10_000;
const MOST_ADDED = 20;

/** Why a text cannot be taken. @param {string} text */
function refusalOf(text) {
  if (text.length <= MOST_CHARS) return null;
  return (
    `The block has ${count(text.length)} characters: at most ${count(MOST_CHARS)} characters and ` +
    `${count(MOST_CELLS)} cells can be taken at once. ` +
    "Use ds.edit, ds.merge_insert or the Stage tab."
  );
}

class RowEditor {
  /** @type {CellEditor | null} */
  cell = null;
  why = ""; // nothing can be edited
  words = h("b", { class: "lnb-edit-words" });
  problem = h("span", { class: "lnb-edit-problem", role: "alert" });
  added = h("div", { class: "lnb-edit-added", hidden: true });
  refusal = h("div", { class: "lnb-edit-refusal", hidden: true });
  undo = button("Undo", () => this.change("edit.undo"), { title: "Ctrl+Z" });
  redo = button("Redo", () => this.change("edit.redo"), { title: "Ctrl+Shift+Z" });
  add = button("Add rows…", () => rowForm(this.ctx, this.edits, refusalOf), {
    title: "a form, or lines from a spreadsheet",
  });
  remove = button("Delete rows", () => this.deleteRows(), {
    title: "the selected rows, or the row of the cursor",
  });
  review = button("Review and commit", () => this.ctx.go("stage"), {
    title: "the card in the Stage tab",
  });

  /**
   * @param {HTMLElement} el @param {Lnb.Context} ctx
   * @param {import("./grid_edits.js").GridEdits} edits
   */
  constructor(el, ctx, edits) {
    this.el = el;
    this.ctx = ctx;
    this.edits = edits;
    this.grid = edits.grid;
    const done = button("Done", () => edits.leave(), {
      title: "stop editing; the edits stay (Escape)",
    });
    const { undo, redo, add, remove, review } = this;
    const buttons = [undo, redo, add, remove, review, done];
    el.append(
      h(
        "div",
        { class: "lnb-edit-line" },
        this.words,
        this.problem,
        h("span", { class: "lnb-edit-buttons" }, buttons),
      ),
      this.refusal,
      this.added,
    );
    const page = el.ownerDocument;
    const paste = (/** @type {ClipboardEvent} */ event) => this.paste(event);
    page.addEventListener("paste", paste, true);
    ctx.onClose(() => page.removeEventListener("paste", paste, true));
    const labelDelete = () => this.labelDelete();
    ctx.onClose(ctx.rows.on({ selected: labelDelete, shown: labelDelete }));
    labelDelete();
    ctx.onScreen(() => {
      if (!el.hidden) this.enter();
    }, ["locked", "card"]);
    this.changed(null, []);
  }

  /** Ask whether this version can be edited, before anybody types. */
  async enter() {
    try {
      const args = this.edits.place();
      const { result } = await this.ctx.kernel.ask("edit.begin", args, { quiet: true });
      this.why = result.why;
      show(this.refusal, result.why ? this.waysToEdit(result) : null);
      this.refusal.hidden = !result.why;
      for (const tool of [this.add, this.remove]) tool.disabled = Boolean(result.why);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Why nothing can be edited here, and where it can be. @param {Lnb.Json} refusal */
  waysToEdit({ why, newest }) {
    const { ctx } = this;
    const { branch, version } = ctx.place();
    const isOld = newest !== null && newest !== version;
    const card = { verb: "branch", args: { action: "create" } };
    return [
      h("p", {}, why),
      ctx.screen().locked === true && lockButton(ctx),
      isOld &&
        button(`Edit version ${count(newest)}`, () => ctx.travel({ branch, version: newest }), {
          title: "go to the newest version of the branch",
        }),
      isOld &&
        ctx.has("refs") &&
        button("Branch from here…", () => ctx.go("stage", { card }), {
          title: "a branch that begins at this version can be edited",
        }),
    ];
  }

  leave() {
    this.cell?.close();
  }

  /** @param {unknown} error */
  fail(error) {
    setText(this.problem, wordsOf(error));
    this.ctx.announce(wordsOf(error));
  }

  /**
   * Change the edits; returns whether it was done.
   * @param {string} type @param {Lnb.Args} [args]
   */
  async change(type, args = {}) {
    setText(this.problem, "");
    try {
      const { result } = await this.ctx.kernel.ask(type, { ...this.edits.place(), ...args });
      this.ctx.code(result.code ?? null);
      await this.edits.refresh();
      this.ctx.announce(result.summary?.title ?? "No edits");
    } catch (error) {
      this.fail(error);
      return false;
    }
    return true;
  }

  /** @param {number} row @param {number} column @param {string | null} [typed] */
  async open(row, column, typed = null) {
    this.cell?.close();
    setText(this.problem, "");
    if (this.why) {
      await this.enter(); // it may have changed
      if (this.why) return this.ctx.announce(this.why);
      this.cell?.close(); // another cell may have been opened meanwhile
    }
    /** @type {CellEditor} */
    const cell = new CellEditor(
      this.ctx,
      this.edits,
      { row, column, typed },
      {
        failed: (error) => this.fail(error),
        closed: () => {
          if (this.cell === cell) this.cell = null;
        },
      },
    );
    this.cell = cell;
    await cell.loaded;
  }

  /** @param {KeyboardEvent} event @returns {(() => void) | null | undefined} */
  key(event) {
    const { row, column, numRows, numColumns } = this.grid.state;
    const letter = event.key.toLowerCase();
    if (commands(event) && !event.altKey) {
      if (letter === "z") return () => this.change(event.shiftKey ? "edit.redo" : "edit.undo");
      if (letter === "y") return () => this.change("edit.redo");
      if (letter === "d") return () => this.change("edit.fill", this.edits.block());
      if (letter === "v") event.stopPropagation(); // the page must not act on it: it is pasted here
      return undefined;
    }
    if (event.altKey) return undefined;
    const by = event.shiftKey ? -1 : 1;
    /** @param {number} index @param {number} count */
    const within = (index, count) => Math.max(0, Math.min(count - 1, index));
    if (event.key === "Enter") return () => this.edits.moveTo(within(row + by, numRows), column);
    if (event.key === "Tab") return () => this.edits.moveTo(row, within(column + by, numColumns));
    if (event.key === "Delete" || event.key === "Backspace")
      return () => this.change("edit.clear", this.edits.block());
    if (event.key === "Escape") return () => this.edits.leave();
    if (event.key === " " && event.shiftKey) return undefined; // selects rows
    if (event.key.length === 1) return () => this.open(row, column, event.key);
    return undefined;
  }

  /**
   * The browser sends `paste` to the selected text or to the page, not to the focused element.
   * @param {ClipboardEvent} event
   */
  paste(event) {
    const { element } = this.grid;
    const root = /** @type {Document | ShadowRoot} */ (element.getRootNode());
    if (this.el.hidden || root.activeElement !== element) return;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    consume(event);
    if (this.why) return this.ctx.announce(this.why);
    const refusal = refusalOf(text);
    if (refusal) return this.fail(new Error(refusal));
    const { row, rows, column, columns } = this.edits.block();
    const value = text.replace(/\r?\n$/, "");
    const fills = !/[\t\r\n"]/.test(value) && rows * columns > 1;
    const line = Array(columns).fill(value).join("\t");
    const block = fills ? Array(rows).fill(line).join("\n") : text;
    return this.change("edit.paste", { row, column, text: block });
  }

  deleteRows() {
    const { ranges } = this.ctx.rows.selection.wanted();
    const { row, rows } = this.edits.block();
    return this.change("edit.delete", { ranges: ranges.length ? ranges : [[row, row + rows]] });
  }

  /** Say on the button how many rows are selected: those out of sight are deleted, too. */
  labelDelete() {
    const { rows } = this.ctx.rows.selection;
    setText(this.remove, rows ? `Delete ${plural(rows, "selected row")}` : "Delete rows");
  }

  /** Other cells are edited. @param {Lnb.Json} summary @param {Lnb.Json[]} added rows */
  changed(summary, added) {
    const conflicts = summary?.conflicts ? ` · ${plural(summary.conflicts, "conflict")}` : "";
    setText(
      this.words,
      summary ? `${summary.title} · on ${summary.on}${conflicts}` : "Type into a cell, or paste",
    );
    this.undo.disabled = !summary?.undo;
    this.redo.disabled = !summary?.redo;
    this.review.hidden = !summary;
    this.added.hidden = !added.length;
    const more = added.length - MOST_ADDED;
    show(
      this.added,
      added.slice(-MOST_ADDED).map((row) => this.addedLine(row)),
      more > 0 && h("p", { class: "lnb-faint" }, `and ${plural(more, "more row")}`),
    );
  }

  /** @param {{row: number, cells: Record<string, string | null>}} added */
  addedLine({ row, cells }) {
    const values = Object.entries(cells).map(([name, text]) => `${name}: ${text ?? "null"}`);
    const drop = () => this.change("edit.drop", { kind: "added", row });
    return h(
      "p",
      { class: "lnb-edit-new" },
      h("i", { "aria-hidden": "true" }, "+ "),
      values.join(", ") || "a row of nulls",
      button("×", drop, { class: "lnb-close", "aria-label": "do not add this row" }),
    );
  }
}

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./grid_edits.js").GridEdits} [edits]
 */
export function mountRowEditor(el, ctx, edits) {
  return edits && new RowEditor(el, ctx, edits);
}

export default widget(mountRowEditor, "editor of rows");
