// The editor of the grid: a box over a cell, blocks of the clipboard, rows that are added and
// deleted, undo and redo. What is edited waits in the kernel for a commit from the Stage tab.

import { consume, count, h, plural, setText, show } from "../js/dom.js";
import { commands } from "../js/grid_keys.js";
import { lockButton } from "../js/lock_button.js";
import { widget } from "../js/view.js";

const MOST_CHARS = 150_000; // of a block, see editing/cell_draft.py
const MOST_CELLS = 10_000;
const MOST_FIELDS = 100;
const MOST_ADDED = 20;

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

/** @param {string} text */
const tooLong = (text) =>
  `The block has ${count(text.length)} characters: at most ${count(MOST_CHARS)} characters and ` +
  `${count(MOST_CELLS)} cells can be taken at once. Use ds.edit, ds.merge_insert or the Stage tab.`;

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./grid_edits.js").EditLink} [link]
 */
export function mountRowEditor(el, ctx, link) {
  if (!link) return;
  const grid = link;
  const words = h("b", { class: "lnb-edit-words" });
  const problem = h("span", { class: "lnb-edit-problem", role: "alert" });
  const added = h("div", { class: "lnb-edit-added", hidden: true });
  /** @param {string} label @param {() => unknown} click @param {string} title */
  const button = (label, click, title) =>
    h("button", { class: "lnb-button", type: "button", title, on: { click } }, label);
  const undo = button("Undo", () => change("edit.undo"), "Ctrl+Z");
  const redo = button("Redo", () => change("edit.redo"), "Ctrl+Shift+Z");
  const add = button("Add rows…", addForm, "a form, or lines from a spreadsheet");
  const remove = button("Delete rows", deleteRows, "the selected rows, or the row of the cursor");
  const review = button("Review and commit", () => ctx.go("stage"), "the card in the Stage tab");
  const done = button("Done", () => grid.left(), "stop editing; the edits stay (Escape)");
  const buttons = h("span", { class: "lnb-edit-buttons" }, undo, redo, add, remove, review, done);
  const refusal = h("div", { class: "lnb-edit-refusal", hidden: true });
  el.append(h("div", { class: "lnb-edit-line" }, words, problem, buttons), refusal, added);

  /** @type {{element: HTMLElement, close: () => void} | null} */
  let box = null;
  let why = "";

  // --- what can be edited -----------------------------------------------------------------------

  /** Ask whether this version can be edited, before anybody types. */
  async function begin() {
    try {
      const { result } = await ctx.kernel.ask("edit.begin", grid.place(), { quiet: true });
      why = result.why;
      const { branch, version } = ctx.screen();
      const newest = result.newest;
      show(
        refusal,
        why ? h("p", {}, why) : null,
        why && ctx.screen().locked === true ? lockButton(ctx) : null,
        why && newest !== null && newest !== version
          ? [
              button(
                `Edit version ${count(newest)}`,
                () => ctx.travel({ branch, version: newest }),
                "go to the newest version of the branch",
              ),
              ctx.has("refs")
                ? button(
                    "Branch from here…",
                    () => ctx.go("stage", { card: { verb: "branch", args: { action: "create" } } }),
                    "a branch that begins at this version can be edited",
                  )
                : null,
            ]
          : null,
      );
      refusal.hidden = !why;
      for (const button of [add, remove]) button.disabled = Boolean(why);
    } catch (error) {
      fail(error);
    }
  }

  /** @param {unknown} error */
  function fail(error) {
    const { card, message } = /** @type {Lnb.Failure} */ (error);
    setText(problem, card?.message ?? message);
    ctx.announce(card?.message ?? message);
  }

  /**
   * Change the edits; returns whether it was done.
   * @param {string} type @param {Lnb.Args} [args]
   */
  async function change(type, args = {}) {
    setText(problem, "");
    try {
      const { result } = await ctx.kernel.ask(type, { ...grid.place(), ...args });
      ctx.code(result.code ?? null);
      await grid.refresh();
      ctx.announce(result.summary?.title ?? "No edits");
    } catch (error) {
      fail(error);
      return false;
    }
    return true;
  }

  // --- the box over a cell ----------------------------------------------------------------------

  /** @param {number} row @param {number} column @param {string | null} [typed] */
  async function open(row, column, typed = null) {
    box?.close();
    setText(problem, "");
    if (why) {
      await begin(); // it may have changed
      if (why) return ctx.announce(why);
      box?.close(); // another cell may have been opened meanwhile
    }
    const name = grid.column(column)?.name ?? "column";
    const input = /** @type {HTMLTextAreaElement} */ (
      h("textarea", {
        class: "lnb-input lnb-edit-box",
        rows: 1,
        dir: "auto",
        spellcheck: "false",
        "aria-label": `${name}, row ${row}`,
      })
    );
    const choices = h("select", { class: "lnb-input lnb-edit-box", hidden: true });
    const note = h("small", { class: "lnb-edit-said", role: "alert" });
    const hint = h("small", { class: "lnb-faint" });
    const nothing = button("Null", () => save(() => null, 1, 0), "set the cell to null");
    const element = h(
      "div",
      { class: "lnb-edit-cell" },
      input,
      choices,
      h("div", { class: "lnb-edit-help" }, hint, nothing, note),
    );
    let isNull = false;
    let was = { text: "", null: false };
    let kind = "line";
    let saving = false;
    /** @type {{element: HTMLElement, close: () => void}} */
    const mine = {
      element,
      close() {
        element.remove();
        grid.scroller.removeEventListener("scroll", follow);
        if (box === mine) box = null;
      },
    };
    // The grid is painted in the frame after it was scrolled.
    const follow = () => requestAnimationFrame(() => requestAnimationFrame(put));
    grid.scroller.addEventListener("scroll", follow, { passive: true });
    box = mine;
    grid.scroller.parentElement?.append(element);
    put();
    if (typed !== null) input.value = typed;
    input.focus({ preventScroll: true });

    /** Over the cell, as soon as it is painted. */
    function put() {
      const cell = grid.body.querySelector(".lnb-cell.lnb-here");
      const around = element.parentElement?.getBoundingClientRect();
      if (!cell || !around) return;
      const rectangle = cell.getBoundingClientRect();
      const left = Math.min(rectangle.left - around.left, around.width - 240);
      element.style.left = `${Math.max(0, left)}px`;
      element.style.top = `${Math.max(0, rectangle.top - around.top)}px`;
      element.style.minWidth = `${Math.max(rectangle.width, 180)}px`;
    }

    const args = { ...grid.place(), row, column };
    input.addEventListener("input", () => {
      isNull = false;
      input.placeholder = kind === "text" ? "empty text" : "";
    });

    const written = () => {
      if (kind === "bool") return choices.value === "null" ? null : choices.value;
      if (isNull && !input.value) return null;
      return kind !== "text" && !input.value.trim() ? null : input.value;
    };

    /** @param {() => string | null} value @param {number} down @param {number} right */
    async function save(value, down, right) {
      if (saving) return;
      saving = true;
      if (!(await loaded)) return;
      const text = value();
      const same = was.null ? text === null : text === was.text;
      try {
        if (!same) {
          const { result } = await ctx.kernel.ask("edit.set", { ...args, text });
          ctx.code(result.code ?? null);
        }
        const { numRows, numColumns } = grid.state;
        mine.close();
        grid.scroller.focus({ preventScroll: true });
        grid.moveTo(
          Math.min(numRows - 1, row + down),
          Math.max(0, Math.min(numColumns - 1, column + right)),
        );
        if (!same) await grid.refresh();
      } catch (error) {
        const { card, message } = /** @type {Lnb.Failure} */ (error);
        setText(note, card?.message ?? message);
        input.setAttribute("aria-invalid", "true");
        saving = false;
        (kind === "bool" ? choices : input).focus({ preventScroll: true });
      }
    }

    element.addEventListener("keydown", (event) => {
      event.stopPropagation();
      const breaks = (event.shiftKey || event.altKey) && (kind === "text" || kind === "json");
      if (event.key === "Escape") {
        mine.close();
        grid.scroller.focus({ preventScroll: true });
      } else if (event.target === nothing && ["Enter", " "].includes(event.key)) return;
      else if (event.key === "Enter" && !breaks) save(written, event.shiftKey ? -1 : 1, 0);
      else if (event.key === "Tab") save(written, 0, event.shiftKey ? -1 : 1);
      else return;
      event.preventDefault();
    });
    element.addEventListener("paste", (event) => event.stopPropagation());

    async function load() {
      try {
        const { result } = await ctx.kernel.ask("edit.cell", args, { quiet: true });
        if (box !== mine) return false;
        put();
        kind = result.editor;
        was = { text: result.text, null: result.null };
        isNull = result.null && typed === null;
        nothing.hidden = !result.nullable;
        setText(hint, kind === "json" ? "JSON" : kind === "text" ? "" : hintOf(result.type));
        if (typed === null) input.value = result.text;
        input.placeholder = result.null ? "null" : kind === "text" ? "empty text" : "";
        if (kind === "bool") {
          show(
            choices,
            ["true", "false", ...(result.nullable ? ["null"] : [])].map((value) =>
              h("option", { value }, value),
            ),
          );
          const start = { t: "true", f: "false", n: "null" }[typed?.toLowerCase() ?? ""];
          choices.value = start ?? (result.null ? "null" : result.text);
          choices.setAttribute("aria-label", `${name}, row ${row}`);
          choices.hidden = false;
          input.hidden = true;
          choices.focus({ preventScroll: true });
        } else if (kind === "json" || (kind === "text" && /[\n\r]|.{41}/.test(result.text))) {
          const lines = Math.max(result.text.split("\n").length, result.text.length / 40);
          input.rows = Math.min(8, Math.max(3, Math.ceil(lines)));
        }
        if (typed === null) input.select();
      } catch (error) {
        mine.close();
        fail(error);
        grid.scroller.focus({ preventScroll: true });
        return false;
      }
      return true;
    }

    const loaded = load();
    await loaded;
    return undefined;
  }

  // --- keys and the clipboard -------------------------------------------------------------------

  /** @param {KeyboardEvent} event @returns {(() => void) | null | undefined} */
  function key(event) {
    const { row, column, numRows, numColumns } = grid.state;
    const letter = event.key.toLowerCase();
    if (commands(event) && !event.altKey) {
      if (letter === "z") return () => change(event.shiftKey ? "edit.redo" : "edit.undo");
      if (letter === "y") return () => change("edit.redo");
      if (letter === "d") return () => change("edit.fill", grid.block());
      if (letter === "v") event.stopPropagation(); // the page must not act on it: it is pasted here
      return undefined;
    }
    if (event.altKey) return undefined;
    const by = event.shiftKey ? -1 : 1;
    if (event.key === "Enter")
      return () => grid.moveTo(Math.max(0, Math.min(numRows - 1, row + by)), column);
    if (event.key === "Tab")
      return () => grid.moveTo(row, Math.max(0, Math.min(numColumns - 1, column + by)));
    if (event.key === "Delete" || event.key === "Backspace")
      return () => change("edit.clear", grid.block());
    if (event.key === "Escape") return () => grid.left();
    if (event.key === " " && event.shiftKey) return undefined; // selects rows
    if (event.key.length === 1) return () => open(row, column, event.key);
    return undefined;
  }

  /**
   * The browser sends `paste` to the selected text or to the page, not to the focused element.
   * @param {ClipboardEvent} event
   */
  function paste(event) {
    const root = /** @type {Document | ShadowRoot} */ (grid.scroller.getRootNode());
    if (el.hidden || root.activeElement !== grid.scroller) return;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    consume(event);
    if (why) return ctx.announce(why);
    if (text.length > MOST_CHARS) return fail(new Error(tooLong(text)));
    const { row, rows, column, columns } = grid.block();
    const single = !/[\t\r\n"]/.test(text.replace(/\r?\n$/, ""));
    if (single && rows * columns > 1) {
      const line = Array(columns)
        .fill(text.replace(/\r?\n$/, ""))
        .join("\t");
      return change("edit.paste", { row, column, text: Array(rows).fill(line).join("\n") });
    }
    return change("edit.paste", { row, column, text });
  }
  const page = grid.scroller.ownerDocument;
  page.addEventListener("paste", paste, true);
  ctx.onClose(() => page.removeEventListener("paste", paste, true));

  // --- rows -------------------------------------------------------------------------------------

  function deleteRows() {
    const { ranges } = ctx.rows.selection.wanted();
    const { row, rows } = grid.block();
    return change("edit.delete", { ranges: ranges.length ? ranges : [[row, row + rows]] });
  }

  /** Say on the button how many rows are selected: those out of sight are deleted, too. */
  function labelDelete() {
    const { rows } = ctx.rows.selection;
    setText(remove, rows ? `Delete ${plural(rows, "selected row")}` : "Delete rows");
  }
  ctx.onClose(ctx.rows.on({ selected: labelDelete, shown: labelDelete }));
  labelDelete();

  function addForm() {
    const names = [];
    for (let index = 0; index < grid.state.numColumns && names.length < MOST_FIELDS; index += 1) {
      const column = grid.column(index);
      if (!column || column.raw.startsWith("_row")) continue;
      if (!["vector", "binary"].includes(column.look)) names.push(column);
    }
    const note = h("p", { class: "lnb-edit-said", role: "alert" });
    const inputs = names.map((column) => {
      const input = /** @type {HTMLInputElement} */ (
        h("input", {
          class: "lnb-input",
          "aria-label": column.name,
          placeholder: "null",
          spellcheck: "false",
        })
      );
      return { column, input };
    });
    const lines = /** @type {HTMLTextAreaElement} */ (
      h("textarea", {
        class: "lnb-input",
        rows: 4,
        "aria-label": "lines from a spreadsheet",
        placeholder: "or paste lines here; the first may name the columns",
        spellcheck: "false",
      })
    );
    async function submit() {
      const values = inputs.filter(({ input }) => input.value !== "");
      const pasted = lines.value.trim() !== "";
      if (lines.value.length > MOST_CHARS) return setText(note, tooLong(lines.value));
      const row = Object.fromEntries(values.map(({ column, input }) => [column.raw, input.value]));
      try {
        const args = pasted ? { text: lines.value } : { rows: [row] };
        const { result } = await ctx.kernel.ask("edit.add", { ...grid.place(), ...args });
        ctx.code(result.code ?? null);
        for (const { input } of inputs) input.value = "";
        lines.value = "";
        setText(note, "");
        await grid.refresh();
        inputs[0]?.input.focus();
      } catch (error) {
        const { card, message } = /** @type {Lnb.Failure} */ (error);
        setText(note, card?.message ?? message);
      }
      return undefined;
    }
    const form = h(
      "form",
      {
        class: "lnb-edit-form",
        on: {
          submit: (event) => {
            event.preventDefault();
            submit();
          },
          keydown: (event) => {
            if (event.key !== "Escape") event.stopPropagation();
          },
        },
      },
      inputs.map(({ column, input }) =>
        h("label", {}, h("span", {}, column.name, " ", h("small", {}, column.type)), input),
      ),
      lines,
      note,
      h("button", { class: "lnb-button lnb-sg-go", type: "submit" }, "Add"),
    );
    ctx.detail.show({ title: "Add rows", content: form, focus: true });
    inputs[0]?.input.focus();
  }

  /** @param {Lnb.Json[]} rows */
  function paintAdded(rows) {
    added.hidden = !rows.length;
    show(
      added,
      rows.slice(-MOST_ADDED).map((addedRow) =>
        h(
          "p",
          { class: "lnb-edit-new" },
          h("i", { "aria-hidden": "true" }, "+ "),
          Object.entries(addedRow.cells)
            .map(([name, text]) => `${name}: ${text ?? "null"}`)
            .join(", ") || "a row of nulls",
          h(
            "button",
            {
              class: "lnb-close",
              type: "button",
              "aria-label": "do not add this row",
              on: { click: () => change("edit.drop", { kind: "added", row: addedRow.row }) },
            },
            "×",
          ),
        ),
      ),
      rows.length > MOST_ADDED
        ? h("p", { class: "lnb-faint" }, `and ${plural(rows.length - MOST_ADDED, "more row")}`)
        : null,
    );
  }

  ctx.onScreen(() => {
    if (!el.hidden) begin();
  }, ["locked", "card"]);
  link.editor = {
    open,
    key,
    enter: begin,
    leave: () => box?.close(),
    changed(summary, rows) {
      const conflicts = summary?.conflicts ? ` · ${plural(summary.conflicts, "conflict")}` : "";
      setText(
        words,
        summary ? `${summary.title} · on ${summary.on}${conflicts}` : "Type into a cell, or paste",
      );
      undo.disabled = !summary?.undo;
      redo.disabled = !summary?.redo;
      review.hidden = !summary;
      paintAdded(rows);
    },
  };
  link.editor.changed(null, []);
}

export default widget(mountRowEditor, "editor of rows");
