// A few rows as a table with a sign: rows that come, go, change, or fail.

import { h, plural } from "./dom.js";

/**
 * A few rows as a table: what comes, what goes, what changes.
 * @param {{label: string, sign: string, columns: {name: string, type: string}[],
 *   rows: (string|null)[][], cut: number, signs?: string[]}} sample
 */
export function sampleTable({ label, sign, columns, rows, cut, signs = [] }) {
  const kind = { "+": "add", "−": "remove", "✗": "remove" }[sign] ?? "change";
  return h(
    "figure",
    { class: `lnb-sample lnb-sample-${kind}` },
    h("figcaption", {}, label, cut ? h("small", {}, ` · ${plural(cut, "more column")}`) : null),
    h(
      "div",
      { class: "lnb-sample-scroll", tabindex: "0", role: "region", "aria-label": `rows: ${label}` },
      h(
        "table",
        { class: "lnb-table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, h("span", { class: "lnb-offscreen" }, "sign")),
            columns.map((column) => h("th", { scope: "col", title: column.type }, column.name)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row, index) =>
            h(
              "tr",
              {},
              h("td", { class: "lnb-sample-sign" }, signs[index] ?? sign),
              row.map((cell) =>
                h("td", { class: cell === null ? "lnb-faint" : null }, cell ?? "null"),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
