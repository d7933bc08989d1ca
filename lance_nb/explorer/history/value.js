// One value as a card: a heading, its facts in short, and a tree that opens and is searched.

import { h, show } from "../js/dom.js";
import { lookOfOperation } from "../js/operations.js";
import { treeNode } from "../js/tree.js";
import { widget } from "../js/view.js";
import { entry, schemaTree } from "./version_facts.js";

const SEARCHED = 12;

/** @typedef {import("../js/tree.js").TreeNode} TreeNode */

/** @param {Partial<TreeNode>} node @param {string} text */
const holds = (node, text) =>
  [node.name, node.type, node.text].some((words) => words?.toLowerCase().includes(text));

/**
 * The nodes that hold a text, each with what it is in; all that is inside a name found.
 * @param {TreeNode[]} nodes @param {string} text @returns {TreeNode[]}
 */
function holding(nodes, text) {
  return nodes.flatMap((node) => {
    if (holds(node, text)) return [node];
    const children = holding(node.children ?? [], text);
    return children.length ? [{ ...node, children, more: 0 }] : [];
  });
}

/** @param {TreeNode[]} nodes @returns {number} */
const size = (nodes) => nodes.reduce((sum, node) => sum + 1 + size(node.children ?? []), 0);

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountValue(el, ctx) {
  const { value } = ctx.screen();
  const { heading, nodes, schema } = value;
  const { family, glyph } = lookOfOperation(value.operation);
  const place = h("div");
  const find = h("input.lnb-input.lnb-value-find", {
    type: "search",
    placeholder: "find",
    "aria-label": `find in ${heading}`,
    on: { input: paint, keydown: onKey },
  });

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    event.stopPropagation();
    if (event.key !== "Escape" || !find.value) return;
    event.preventDefault();
    find.value = "";
    paint();
  }

  function paint() {
    const text = find.value.trim().toLowerCase();
    if (schema)
      return show(
        place,
        schemaTree(
          schema.lines.filter((/** @type {Lnb.SchemaLine} */ line) => holds(line, text)),
          schema.hidden,
        ),
      );
    const matching = holding(nodes, text);
    const tree = h(
      "div.lnb-tree",
      { role: "tree", "aria-label": heading },
      matching.map((node) => treeNode(node)),
    );
    return show(place, matching.length ? tree : h("p.lnb-faint", "No value matches this text."));
  }

  if (schema || nodes.length) paint();
  el.append(
    h(
      "div.lnb-value",
      { tabindex: "0", role: "region", "aria-label": heading },
      h(
        "header",
        { class: `lnb-operation lnb-op-${family}` },
        value.operation ? h("i", { "aria-hidden": "true" }, glyph) : null,
        h("strong", heading),
        (schema?.lines.length ?? size(nodes)) > SEARCHED ? find : null,
      ),
      value.lines.map((/** @type {string} */ line) => h("p.lnb-description", line)),
      schema || !value.rows.length ? null : h("dl.lnb-counts", value.rows.map(entry)),
      place,
    ),
  );
}

export default widget(mountValue, "value");
