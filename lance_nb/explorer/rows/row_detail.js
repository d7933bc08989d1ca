// One whole row in the detail pane: every column, nested values as a tree that opens, pictures,
// sounds.

import { count, h } from "../js/dom.js";
import { mediaOf } from "../js/media.js";
import { treeNode } from "../js/tree.js";
import { biographyButton } from "./biography.js";

const MAX_MEDIA = 8; // values of bytes that are looked into
/** @typedef {import("../js/media.js").MediaElement} MediaElement */

/** @type {WeakMap<Lnb.Context, MediaElement[]>} */
const open = new WeakMap(); // what is shown of the row before, by its view

/**
 * @param {Lnb.Context} ctx @param {Lnb.Args} place version and query @param {number} row
 * @param {boolean} [focus] whether the keyboard goes there
 */
export async function rowDetail(ctx, place, row, focus = true) {
  const title = `Row ${count(row)}`;
  try {
    const { result } = await ctx.kernel.ask("rows.row", { ...place, row });
    const nodes = result.nodes.map((/** @type {import("../js/tree.js").TreeNode} */ node) =>
      treeNode(node),
    );
    const tree = h("div", { class: "lnb-tree", role: "tree", "aria-label": title }, nodes);
    ctx.detail.show({
      title,
      content: h(
        "div",
        { class: "lnb-row-detail" },
        h("p", { class: "lnb-cd-acts" }, biographyButton(ctx, { find: { ...place, row } })),
        tree,
      ),
      focus,
    });
    await showMedia(ctx, { ...place, row }, result.nodes, nodes);
  } catch (error) {
    ctx.detail.show({
      title,
      content: ctx.problem(error),
      focus,
    });
  }
}

/**
 * Put pictures and sounds under the columns that hold them, one after the other.
 * @param {Lnb.Context} ctx @param {Lnb.Args} spot @param {import("../js/tree.js").TreeNode[]} nodes
 * @param {HTMLElement[]} elements
 */
async function showMedia(ctx, spot, nodes, elements) {
  for (const media of open.get(ctx) ?? []) media.close();
  if (!open.has(ctx)) ctx.onClose(() => open.get(ctx)?.forEach((media) => media.close()));
  /** @type {MediaElement[]} */
  const mine = [];
  open.set(ctx, mine);
  const columns = nodes
    .map((node, column) => (node.look === "bytes" ? column : -1))
    .filter((column) => column >= 0);
  for (const column of columns.slice(0, MAX_MEDIA)) {
    // When it fails, the first bytes stay in sight.
    const media = await mediaOf(ctx, { ...spot, column }).catch(() => null);
    if (!media?.shows) continue;
    if (open.get(ctx) !== mine || !elements[column].isConnected) return media.close();
    mine.push(media);
    if (elements[column].matches("details")) elements[column].append(media);
    else elements[column].lastElementChild?.replaceWith(media);
  }
}
