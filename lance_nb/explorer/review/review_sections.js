// The sections of a review: the differences of a branch as tables, old and new side by side with
// pictures and marked words.

import { h, plural, table } from "../js/dom.js";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/; // only these are ever shown
/** @type {Record<string, string>} */
const SIGNS = { pass: "✓", fail: "✗", unknown: "?" };
/** @type {[section: string, title: string][]} */
export const SECTIONS = [
  ["schema", "Schema"],
  ["cells", "Changed cells"],
  ["rows", "Rows"],
  ["drift", "Drift"],
  ["checks", "Checks"],
];

/** @param {Lnb.Child[]} head @param {Lnb.Child[][]} rows */
const scrolledTable = (head, rows) =>
  h(
    "div.lnb-rv-scroll",
    { tabindex: "0", role: "region", "aria-label": "table" },
    table(head, rows, { class: "lnb-table lnb-rv-table" }),
  );

/** @param {string} text */
const note = (text) => h("p.lnb-faint", text);

/** @param {string | null} text */
const plain = (text) => h("td", text ?? "");

/** Paints the answers of one review; it holds the addresses of their pictures. */
export class SectionPainter {
  /** @type {string[]} */
  #addresses = [];

  /**
   * @param {string} section @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers
   * @returns {Lnb.Child[]}
   */
  paint(section, result, buffers) {
    if (section === "schema") return schemaOf(result);
    if (section === "cells") return this.#cellsOf(result, buffers);
    if (section === "rows") return this.#rowsOf(result, buffers);
    return section === "drift" ? driftOf(result) : checksOf(result);
  }

  /** Release the pictures. */
  clear() {
    for (const address of this.#addresses.splice(0)) URL.revokeObjectURL(address);
  }

  /** @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers */
  #cellsOf({ rows, is_more: isMore }, buffers) {
    if (!rows.length) return [note("No row has changed values.")];
    const cells = rows.map((/** @type {Lnb.Json} */ row) => [
      plain(row.place),
      plain(row.column),
      this.#cell(row.before, buffers, "old"),
      this.#cell(row.after, buffers, "new"),
    ]);
    return [
      scrolledTable(["row", "column", "before", "after"], cells),
      isMore && note("Only the first rows are shown: open all changes for the others."),
    ];
  }

  /** @param {Lnb.Json} result @param {Lnb.Buffer[]} buffers */
  #rowsOf({ kinds }, buffers) {
    const shown = kinds.filter((/** @type {Lnb.Json} */ kind) => kind.rows.length);
    if (!shown.length) return [note("No row was added or removed.")];
    return shown.flatMap((/** @type {Lnb.Json} */ kind) => {
      const age = kind.kind === "added" ? "new" : "old";
      const cells = kind.rows.map((/** @type {Lnb.Json[]} */ row) =>
        row.map((value) => this.#cell(value, buffers, age)),
      );
      const first = kind.is_more ? "the first " : "";
      return [
        h("p", `${first}${plural(kind.num_rows, "row")} ${kind.kind}`),
        scrolledTable(kind.columns, cells),
      ];
    });
  }

  /** @param {Lnb.Json} value @param {Lnb.Buffer[]} buffers @param {"old" | "new"} age */
  #cell(value, buffers, age) {
    return h("td", { class: `lnb-rv-value lnb-rv-${age}` }, this.#content(value, buffers, age));
  }

  /** @param {Lnb.Json} value @param {Lnb.Buffer[]} buffers @param {"old" | "new"} age */
  #content(value, buffers, age) {
    if (value.image !== undefined && PICTURE.test(value.mime)) {
      const bytes = /** @type {BlobPart} */ (buffers[value.image]);
      const src = URL.createObjectURL(new Blob([bytes], { type: value.mime }));
      this.#addresses.push(src);
      return [h("img", { src, alt: value.label }), h("small", value.label)];
    }
    const mark = age === "old" ? "del" : "ins";
    if (value.parts)
      return value.parts.map((/** @type {[boolean, string]} */ [isChanged, text]) =>
        isChanged ? h(mark, {}, text) : text,
      );
    return value.text === null ? h("span.lnb-faint", "NULL") : value.text;
  }
}

/** @param {Lnb.Json} result */
function schemaOf({ columns, rows }) {
  if (!rows.length) return [note("The columns are the same.")];
  const cells = rows.map((/** @type {(string | null)[]} */ row) => row.map(plain));
  return [scrolledTable(columns, cells)];
}

/** @param {Lnb.Json} result */
function driftOf({ columns }) {
  if (!columns.length) return [note("The versions have no column in common.")];
  const cells = columns.map((/** @type {Lnb.Json} */ column) =>
    [column.name, column.psi?.toFixed(3), column.before, column.after].map(plain),
  );
  return [scrolledTable(["column", "stability index", "before", "after"], cells)];
}

/** @param {Lnb.Json} result */
function checksOf({ sentence, outcomes }) {
  if (!outcomes.length) return [note("The target has no expectations.")];
  const items = outcomes.map((/** @type {Lnb.Json} */ outcome) =>
    h(
      "li",
      { class: `lnb-rv-check-${outcome.status}` },
      h("i", { "aria-hidden": "true" }, SIGNS[outcome.status]),
      h("span.lnb-offscreen", outcome.status),
      h("code", outcome.statement || outcome.name),
      h("small", outcome.detail),
    ),
  );
  return [h("p", sentence), h("ul.lnb-rv-checks", items)];
}
