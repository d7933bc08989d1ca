// A value as a tree: what is inside opens.

import { count, h } from "./dom.js";

/**
 * @typedef {{name: string, type: string, text: string, look?: string, more?: number,
 *   children?: TreeNode[]}} TreeNode
 */

/**
 * One value with its name, open as far as is shown.
 * @param {TreeNode} node @returns {HTMLElement}
 */
export function treeNode(node, level = 1) {
  const name = [h("b", {}, node.name), h("small", {}, node.type)];
  if (!node.children) {
    return h(
      "div",
      { class: "lnb-tree-leaf", role: "treeitem", "aria-level": level },
      h("span", { class: "lnb-tree-name" }, name),
      h("pre", { class: node.look === "null" ? "lnb-look-null" : "" }, node.text || "empty text"),
    );
  }
  const hidden = node.more ?? 0;
  const more = hidden ? h("p", { class: "lnb-faint" }, `and ${count(hidden)} more`) : null;
  return h(
    "details",
    { class: "lnb-tree-branch", role: "treeitem", "aria-level": level, open: level < 3 },
    h("summary", {}, name, h("small", {}, `${count(node.children.length + hidden)} inside`)),
    h(
      "div",
      { role: "group" },
      node.children.map((child) => treeNode(child, level + 1)),
      more,
    ),
  );
}
