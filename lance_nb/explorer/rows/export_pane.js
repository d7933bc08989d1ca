// Rows as a file in the working folder of the kernel: which rows, under which name, how far it is.

import { button, bytes, choice, copyText, count, field, h, plural, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { placeLabel } from "../js/version_range.js";

/** @type {[value: string, words: string][]} */
const FORMATS = [
  ["parquet", "Parquet"],
  ["csv", "CSV"],
  ["arrow", "Arrow file"],
  ["lance", "Lance dataset"],
];

/**
 * Show the form in the pane beside.
 * @param {Lnb.Context} ctx
 */
export function exportPane(ctx) {
  const { criteria, query, selection, numRows } = ctx.rows;
  const { branch, version, card } = ctx.screen();
  const { a } = ctx.range.get();
  const isOther = a && (a.version !== version || a.branch !== branch);
  /** @type {[value: string, words: string][]} */
  const choices = [["shown", `all that the grid shows, ${plural(numRows, "row")}`]];
  if (selection.rows) choices.unshift(["selected", `${plural(selection.rows, "selected row")}`]);
  if (isOther) choices.push(["changes", `what changed from ${placeLabel(a)}`]);
  const subject = choice("rows to export", null, choices, rename);
  const format = choice("format", null, FORMATS, rename);
  const name = field("file name", {
    on: {
      input: () => {
        isNamed = true;
      },
      keydown: (event) => {
        event.stopPropagation();
        if (event.key === "Enter") run();
      },
    },
  });
  const go = button("Export", run);
  const place = h("div", { class: "lnb-export-place", "aria-live": "polite" });
  let isNamed = false;

  /** The ending follows the format; what a person wrote before it stays. */
  function rename() {
    const stem = isNamed ? name.value.replace(/\.(parquet|csv|arrow|lance)$/, "") : stemNow();
    name.value = `${stem}.${format.value}`;
  }

  function stemNow() {
    const own = (card?.name ?? "rows").replace(/\.lance$/, "").replace(/[^\w-]+/g, "-") || "rows";
    const stem = `${branch ? `${branch.replace(/[^\w-]+/g, "-")}-` : ""}${version}`;
    return `${own}-${stem}${{ selected: "-selected", changes: "-changes" }[subject.value] ?? ""}`;
  }

  async function run() {
    if (go.disabled) return;
    go.disabled = true;
    const result = await longAction(ctx, place, {
      type: "rows.export",
      args: {
        branch,
        version,
        ...query,
        order: criteria.order,
        what: subject.value,
        name: name.value.trim(),
        ...(subject.value === "selected" ? selection.wanted() : {}),
        ...(subject.value === "changes" ? { a } : {}),
      },
      words: "Writing…",
      noun: "row",
    });
    go.disabled = false;
    if (result) done(result);
  }

  /** @param {{path: string, rows: number, bytes: number, code: Lnb.CodeLines}} result */
  function done({ path, rows, bytes: size, code }) {
    const words = `${plural(rows, "row")}, ${bytes(size)}`;
    const copy = (/** @type {string} */ text) =>
      button(
        "Copy",
        async () => ctx.announce((await copyText(text)) ? "Copied" : "This page may not copy."),
        { class: "lnb-link" },
      );
    /** @param {string | undefined} line */
    const codeLine = (line) => (line ? h("p", {}, h("code", {}, line), " ", copy(line)) : null);
    show(
      place,
      h("p", {}, h("b", {}, "Written: "), words),
      h("p", {}, h("code", {}, path), " ", copy(path)),
      code.python ? h("p", { class: "lnb-soft" }, "The same as code:") : null,
      codeLine(code.python),
      codeLine(code.magic),
    );
    ctx.announce(`Written: ${count(rows)} rows to ${path}`);
  }

  rename();
  ctx.detail.show({
    title: "Export rows",
    content: h(
      "div",
      { class: "lnb-export" },
      h("label", {}, "Rows ", subject),
      h("label", {}, "Format ", format),
      h("label", {}, "File ", name),
      h(
        "p",
        { class: "lnb-soft" },
        "The columns that the grid shows, in the working folder of the kernel. " +
          "A file that exists is not replaced.",
      ),
      h("p", {}, go),
      place,
    ),
    focus: true,
  });
}
