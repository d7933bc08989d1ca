// A few rows as a table with a sign: rows that come, go, change, or fail.

import { h, plural, table } from "./dom.js";
import { inlinePicture } from "./inline_picture.js";

/**
 * A few rows as a table: what comes, what goes, what changes.
 * @param {{label: string, sign: string, columns: {name: string, type: string}[],
 *   rows: (string|null)[][], cut: number, signs?: string[], images?: Lnb.Json[]}} sample
 */
export function sampleTable({ label, sign, columns, rows, cut, signs = [], images = [] }) {
  const kind = { "+": "add", "−": "remove", "✗": "remove" }[sign] ?? "change";
  const head = [
    h("span.lnb-offscreen", "sign"),
    ...columns.map(({ name, type }) => h("th", { scope: "col", title: type }, name)),
  ];
  const lines = rows.map((cells, index) => [
    h("td.lnb-sample-sign", signs[index] ?? sign),
    ...cells.map((cell, column) => {
      const image = images.find((picture) => picture.row === index && picture.column === column);
      const shown = image && cell ? inlinePicture(image, cell) : (cell ?? "null");
      return h("td", { class: cell === null ? "lnb-faint" : null }, shown);
    }),
  ]);
  const place = { tabindex: "0", role: "region", "aria-label": `rows: ${label}` };
  return h(
    "figure",
    { class: `lnb-sample lnb-sample-${kind}` },
    h("figcaption", label, cut ? h("small", ` · ${plural(cut, "more column")}`) : null),
    h("div.lnb-sample-scroll", place, table(head, lines)),
  );
}
