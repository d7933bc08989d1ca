// One change in the detail pane: a row with all old and new values, a transaction, a fragment's
// files.

import { versionFacts } from "../history/version_facts.js";
import { button, h, plural } from "../js/dom.js";
import { treeNode } from "../js/tree.js";
import { placeLabel } from "../js/version_range.js";
import { biographyButton } from "../rows/biography.js";
import { picturePair } from "./picture_pair.js";
import { wordDiff, wordParts } from "./word_diff.js";

/**
 * @typedef {{kind: string, columns: string, size: string, format: string, path: string}}
 *   ChangedFile
 */

/**
 * @typedef {Object} Change
 * @property {string} level
 * @property {Lnb.Pair} pair
 * @property {string[] | null} kinds of rows that are shown
 * @property {number} row
 * @property {Lnb.Json} place of the row: a version or a fragment
 * @property {Lnb.Cell[]} cells of the row
 */

/** @type {Record<string, [words: string, sign: string]>} */
const SIGNS = { "+": ["added", "+"], "-": ["removed", "−"], "~": ["changed", "~"] };

/** @param {Lnb.Context} ctx @param {Change} change */
export async function changeDetail(ctx, { level, pair, kinds, row, place, cells }) {
  /** @type {Record<string, [title: string, load: () => Promise<HTMLElement>]>} */
  const loaders = {
    rows: [
      "Row",
      async () =>
        rowView(ctx, pair, (await ctx.kernel.ask("changes.row", { ...pair, kinds, row })).result, {
          ...pair,
          kinds,
          row,
        }),
    ],
    transactions: [
      "Transaction",
      async () => transactionView(ctx, place, (await ctx.kernel.ask("detail", place)).result),
    ],
    fragments: [
      `Fragment ${place?.fragment}`,
      async () =>
        fragmentView(
          ctx,
          place,
          cells,
          (await ctx.kernel.ask("changes.files", { ...pair, kinds, row })).result.files,
        ),
    ],
    deletions: [`Fragment ${place?.fragment}`, async () => fragmentView(ctx, place, cells, [])],
  };
  const [title, load] = loaders[level] ?? [cells[0].text, async () => facts(cells)];
  try {
    ctx.detail.show({ title, content: await load() });
  } catch (error) {
    ctx.detail.show({ title, content: ctx.problem(error) });
  }
}

/** @param {...Lnb.Child} buttons */
function acts(...buttons) {
  return h("p.lnb-cd-acts", buttons);
}

/** @param {string} words @param {() => unknown} act */
function link(words, act) {
  return button(words, act);
}

/**
 * The columns of a level, one under the other; what changed with both values.
 * @param {Lnb.Cell[]} cells
 */
function facts(cells) {
  return h(
    "dl.lnb-counts.lnb-cd-facts",
    cells
      .filter((cell) => cell.text && cell.look !== "null" && cell.look !== "empty")
      .map((cell) =>
        h(
          "div",
          h("dt", cell.name),
          h(
            "dd",
            cell.old
              ? [
                  h("del", { dir: "auto" }, cell.old.text),
                  " → ",
                  h("ins", { dir: "auto" }, cell.text),
                ]
              : cell.text,
          ),
        ),
      ),
  );
}

/** @param {HTMLElement[]} nodes */
function tree(nodes) {
  return h("div.lnb-tree", { role: "tree", "aria-label": "values" }, nodes);
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Pair} pair @param {Lnb.Json} row see changes/change_page.py
 * @param {Lnb.Args} place what the row is asked for by
 */
function rowView(ctx, pair, row, place) {
  const [words, sign] = SIGNS[row.kind];
  /** @type {HTMLElement[]} */
  const unchanged = [];
  /** @type {HTMLElement[]} */
  const changed = [];
  row.nodes.forEach(
    (/** @type {import("../js/tree.js").TreeNode} */ node, /** @type {number} */ index) => {
      const old = row.old[index];
      const isPicture = node.look === "bytes" || old?.look === "bytes";
      const pictures = isPicture
        ? picturePair(ctx, { ...place, column: row.columns[index] }, Boolean(old))
        : null;
      const words = old?.look === "value" && node.look === "value" && wordDiff(old.text, node.text);
      if (words) {
        const cell = treeNode(node);
        cell.querySelector("pre")?.replaceChildren(...wordParts(words));
        changed.push(h("div.lnb-cd-cell.lnb-cd-words", cell));
      } else if (old)
        changed.push(
          h(
            "div.lnb-cd-cell",
            h("div.lnb-cd-old", { title: "was" }, treeNode(old)),
            h("div.lnb-cd-new", { title: "is" }, treeNode({ ...node, name: "", type: "" })),
            pictures,
          ),
        );
      else unchanged.push(treeNode(node), ...(pictures ? [pictures] : []));
    },
  );
  const remaining = changed.length
    ? h(
        "details.lnb-section",
        h("summary", "unchanged", h("small", String(row.nodes.length - changed.length))),
        tree(unchanged),
      )
    : tree(unchanged);
  const version = { branch: row.branch, version: row.version };
  return h(
    "div.lnb-cd",
    h(
      "p",
      { class: `lnb-cd-kind lnb-cd-${words}` },
      h("i", { "aria-hidden": "true" }, sign),
      h("b", words),
      h(
        "span",
        `${row.label}${row.row_id === null ? "" : ` · row id ${row.row_id}`}` +
          ` · fragment ${row.fragment}, offset ${row.offset}`,
      ),
    ),
    acts(
      biographyButton(ctx, {
        ...version,
        fragment: row.fragment,
        offset: row.offset,
        key: pair.key,
      }),
      ctx.has("rows") && row.position !== null
        ? link("Open in Rows", () => openInRows(ctx, version, row))
        : null,
    ),
    changed.length
      ? h("div.lnb-cd-cells", { role: "tree", "aria-label": "values that changed" }, changed)
      : null,
    remaining,
    row.hidden ? h("p.lnb-faint", `and ${plural(row.hidden, "more column")}`) : null,
  );
}

/**
 * Go to the row; a row that was removed is shown where it still is.
 * @param {Lnb.Context} ctx @param {Lnb.Place} place @param {Lnb.Json} row
 */
function openInRows(ctx, place, row) {
  if (row.kind !== "-") return ctx.go("rows", { row: row.position });
  ctx.go("rows", {
    filter: `_rowaddr = ${BigInt(row.fragment) * 4294967296n + BigInt(row.offset)}`,
  });
  return ctx.travel(place);
}

/** @param {Lnb.Context} ctx @param {Lnb.Place} place @param {Lnb.VersionDetail} detail */
function transactionView(ctx, place, detail) {
  const go = acts(link(`Go to ${placeLabel(place)}`, () => ctx.travel(place)));
  return h(
    "div.lnb-cd",
    versionFacts(detail, { schema: false, transaction: true, properties: true }, go),
  );
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Json} place @param {Lnb.Cell[]} cells
 * @param {ChangedFile[]} files
 */
function fragmentView(ctx, place, cells, files) {
  return h(
    "div.lnb-cd",
    facts(cells.slice(1)),
    acts(
      ctx.has("storage")
        ? link("Open in Storage", () => ctx.go("storage", { fragment: place.fragment }))
        : null,
    ),
    files.length
      ? h(
          "section.lnb-cd-files",
          h("h4", "Files", h("small", String(files.length))),
          files.map(fileLine),
        )
      : null,
  );
}

/** @param {ChangedFile} file */
function fileLine(file) {
  const [words, sign] = SIGNS[file.kind];
  return h(
    "div",
    { class: `lnb-cd-file lnb-cd-${words}` },
    h("p", h("i.lnb-cd-sign", { title: words }, sign), h("b", file.columns || "no columns left")),
    h("small", `${file.size} · format ${file.format}`),
    h("code", file.path),
  );
}
