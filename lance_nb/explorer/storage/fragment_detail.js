// One fragment in the detail pane: deletions, files by column, indices; and the pages of a file.

import { percent } from "../js/canvas.js";
import { bytes, count, h, button as makeButton, plural, show, table } from "../js/dom.js";
import { deletionMap } from "./deletion_map.js";

/**
 * @param {Lnb.Context} ctx @param {Lnb.Place} place of the version
 * @param {Lnb.Json} model see storage/fragments.py
 */
export function fragmentDetail(ctx, place, model) {
  const facts = [
    ["rows", `${count(model.rows - model.deleted)} of ${count(model.rows)} stored`],
    [
      "deleted",
      model.deleted ? `${count(model.deleted)} · ${percent(model.deleted, model.rows)}` : "none",
    ],
    ["size", model.bytes === null ? "unknown" : bytes(model.bytes)],
    ["bytes per row", model.rows && model.bytes !== null ? bytes(model.bytes / model.rows) : "–"],
  ];
  return h(
    "div.lnb-fd",
    h(
      "dl.lnb-counts",
      facts.map(([label, value]) => h("div", h("dt", label), h("dd", value))),
    ),
    model.deletion_file
      ? section(
          "Deleted rows",
          `${model.deletion_file.kind} file, based on version ${model.deletion_file.version}`,
          deletionMap(ctx, place, model.id, model.rows),
        )
      : null,
    section(
      "Files",
      String(model.files.length + model.hidden_files),
      h(
        "div.lnb-fd-files",
        model.files.map((/** @type {Lnb.Json} */ file) => fileLine(ctx, place, file)),
        model.hidden_files
          ? h("p.lnb-faint", `and ${plural(model.hidden_files, "more file")}`)
          : null,
      ),
    ),
    model.indices.length
      ? section(
          "Indices",
          "",
          h(
            "ul.lnb-fd-indices",
            model.indices.map((/** @type {Lnb.Json} */ index) =>
              h(
                "li",
                { class: index.covered ? "" : "lnb-fd-missing" },
                `${index.covered ? "✓" : "–"} ${index.name}`,
                h("small", index.covered ? "covered" : "not covered"),
              ),
            ),
          ),
        )
      : null,
  );
}

/** @param {string} title @param {string} note @param {HTMLElement} content */
function section(title, note, content) {
  return h("section.lnb-fd-section", h("h4.lnb-fd-title", title, h("small", note)), content);
}

/** @param {Lnb.Context} ctx @param {Lnb.Place} place @param {Lnb.Json} file */
function fileLine(ctx, place, file) {
  const pages = h("div.lnb-fd-pages", { hidden: true });
  const lost = [
    file.tombstoned && `${plural(file.tombstoned, "column")} replaced since`,
    file.dropped && `${plural(file.dropped, "field")} dropped`,
  ]
    .filter(Boolean)
    .join(", ");
  const more =
    file.num_columns > file.columns.length
      ? `, and ${file.num_columns - file.columns.length} more`
      : "";
  const button = makeButton("Pages", toggle, { "aria-expanded": "false" });

  async function toggle() {
    const opening = pages.hidden;
    button.setAttribute("aria-expanded", String(opening));
    pages.hidden = !opening;
    if (!opening || pages.firstChild) return;
    show(pages, h("p.lnb-faint", "Reading the file's metadata…"));
    try {
      const { result } = await ctx.kernel.ask("storage.pages", { ...place, path: file.path });
      show(pages, pageTable(result));
    } catch (error) {
      show(pages, ctx.problem(error));
    }
  }

  return h(
    "div.lnb-fd-file",
    h("p.lnb-fd-columns", h("b", file.columns.join(", ") || "no columns left", more), button),
    h(
      "p.lnb-fd-facts",
      { title: file.name },
      [
        file.bytes === null ? "size unknown" : bytes(file.bytes),
        `written by ${file.written}`,
        `format ${file.file_version}`,
      ].join(" · "),
    ),
    lost ? h("p.lnb-fd-lost", `† ${lost}: these bytes are no longer read`) : null,
    pages,
  );
}

/** The pages of a file by column. @param {Lnb.Json} model see storage/fragments.py */
export function pageTable({ columns, hidden }) {
  const head = ["column", "pages", "bytes", "ratio", "layout and codecs"];
  const rows = columns.map((/** @type {Lnb.Json} */ column) => {
    const { name, pages, bytes: stored, plain, encodings } = column;
    const title = plain
      ? `${bytes(plain)} without compression`
      : "The ratio is not known for this type";
    const isMixed = encodings.length > 1;
    return [
      h("th", { scope: "row" }, name),
      h("td.lnb-right", count(pages)),
      h("td.lnb-right", bytes(stored)),
      h("td.lnb-right", { title }, plain && stored ? `${(plain / stored).toFixed(1)}×` : "–"),
      h(
        "td",
        encodings.map((/** @type {{pages: number, encoding: string}} */ used) =>
          h("code", isMixed ? `${used.pages}× ${used.encoding}` : used.encoding),
        ),
      ),
    ];
  });
  return h(
    "div.lnb-fd-scroll",
    { tabindex: "0", role: "region", "aria-label": "pages of the file" },
    table(head, rows),
    hidden ? h("p.lnb-faint", `and ${plural(hidden, "more column")}`) : null,
  );
}
