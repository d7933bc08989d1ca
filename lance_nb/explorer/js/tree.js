// A value as a tree: what is inside opens.

import { count, h } from "./dom.js";

/** One value with its name, open as far as is shown. */
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
  const more = node.more ? h("p", { class: "lnb-faint" }, `and ${count(node.more)} more`) : null;
  return h(
    "details",
    { class: "lnb-tree-branch", role: "treeitem", "aria-level": level, open: level < 3 },
    h("summary", {}, name, h("small", {}, `${count(node.children.length + node.more)} inside`)),
    h(
      "div",
      { role: "group" },
      node.children.map((child) => treeNode(child, level + 1)),
      more,
    ),
  );
}
