// A form for rows to add: a field for each column, or lines from a spreadsheet.

import { h, setText } from "../js/dom.js";
import { wordsOf } from "./cell_editor.js";

const MOST_FIELDS = 100;

/**
 * @param {Lnb.Context} ctx @param {import("./grid_edits.js").GridEdits} edits
 * @param {(text: string) => string | null} refusal why a text cannot be taken
 */
export function rowForm(ctx, edits, refusal) {
  const note = h("p", { class: "lnb-edit-said", role: "alert" });
  const fields = writableColumns(edits).map((column) => {
    /** @type {HTMLInputElement} */
    const input = h("input", {
      class: "lnb-input",
      "aria-label": column.name,
      placeholder: "null",
      spellcheck: "false",
    });
    return { column, input };
  });
  /** @type {HTMLTextAreaElement} */
  const lines = h("textarea", {
    class: "lnb-input",
    rows: 4,
    "aria-label": "lines from a spreadsheet",
    placeholder: "or paste lines here; the first may name the columns",
    spellcheck: "false",
  });

  async function submit() {
    const why = refusal(lines.value);
    if (why) return setText(note, why);
    const values = fields.filter(({ input }) => input.value !== "");
    const row = Object.fromEntries(values.map(({ column, input }) => [column.raw, input.value]));
    const args = lines.value.trim() ? { text: lines.value } : { rows: [row] };
    try {
      const { result } = await ctx.kernel.ask("edit.add", { ...edits.place(), ...args });
      ctx.code(result.code ?? null);
      for (const { input } of fields) input.value = "";
      lines.value = "";
      setText(note, "");
      await edits.refresh();
      fields[0]?.input.focus();
    } catch (error) {
      setText(note, wordsOf(error));
    }
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
    fields.map(({ column, input }) =>
      h("label", {}, h("span", {}, column.name, " ", h("small", {}, column.type)), input),
    ),
    lines,
    note,
    h("button", { class: "lnb-button lnb-sg-go", type: "submit" }, "Add"),
  );
  ctx.detail.show({ title: "Add rows", content: form, focus: true });
  fields[0]?.input.focus();
}

/** @param {import("./grid_edits.js").GridEdits} edits */
function writableColumns(edits) {
  /** @type {Lnb.Column[]} */
  const columns = [];
  for (
    let index = 0;
    index < edits.grid.state.numColumns && columns.length < MOST_FIELDS;
    index += 1
  ) {
    const column = edits.store.column(index);
    if (!column || column.raw.startsWith("_row")) continue;
    if (!["vector", "binary"].includes(column.look)) columns.push(column);
  }
  return columns;
}
