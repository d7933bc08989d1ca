// One whole row in the detail pane: every column, nested values as a tree that opens.

import { h, count } from "./dom.js";
import { biographyButton } from "./biography.js";

/** @param {import("./view.js").Context} ctx @param {Object} place version and lens @param {number} row */
export async function rowDetail(ctx, place, row) {
  const title = `Row ${count(row)}`;
  try {
    const { result } = await ctx.kernel.ask("rows.row", { ...place, row });
    const tree = h("div", { class: "lnb-tree", role: "tree", "aria-label": title }, result.nodes.map((node) => treeNode(node)));
    ctx.detail.show({ title, content: h("div", {}, h("p", { class: "lnb-cd-acts" }, biographyButton(ctx, { find: { ...place, row } })), tree), focus: true });
  } catch (error) {
    ctx.detail.show({ title, content: ctx.problem(error), focus: true });
  }
}

/** One value with its name, open as far as is shown. */
export function treeNode(node, level = 1) {
  const name = [h("b", {}, node.name), h("small", {}, node.type)];
  if (!node.children) {
    return h("div", { class: "lnb-tree-leaf", role: "treeitem", "aria-level": level }, h("span", { class: "lnb-tree-name" }, name), h("pre", { class: node.look === "null" ? "lnb-look-null" : "" }, node.text || "empty text"));
  }
  const more = node.more ? h("p", { class: "lnb-faint" }, `and ${count(node.more)} more`) : null;
  return h("details", { class: "lnb-tree-branch", role: "treeitem", "aria-level": level, open: level < 3 }, h("summary", {}, name, h("small", {}, `${count(node.children.length + node.more)} inside`)), h("div", { role: "group" }, node.children.map((child) => treeNode(child, level + 1)), more));
}
