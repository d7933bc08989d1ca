// One whole row in the detail pane: every column, nested values as a tree that opens.

import { h, count } from "./dom.js";
import { biographyButton } from "./biography.js";
import { treeNode } from "./tree.js";

/** @param {import("./view.js").Context} ctx @param {Object} place version and lens @param {number} row */
export async function rowDetail(ctx, place, row) {
  const title = `Row ${count(row)}`;
  try {
    const { result } = await ctx.kernel.ask("rows.row", { ...place, row });
    const tree = h("div", { class: "lnb-tree", role: "tree", "aria-label": title }, result.nodes.map((node) => treeNode(node)));
    ctx.detail.show({ title, content: h("div", { class: "lnb-row-detail" }, h("p", { class: "lnb-cd-acts" }, biographyButton(ctx, { find: { ...place, row } })), tree), focus: true });
  } catch (error) {
    ctx.detail.show({ title, content: ctx.problem(error), focus: true });
  }
}
