// One version in detail: operation, message, counts, schema, transaction.

import { h, age } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { lookOfOperation } from "../js/operations.js";
import { widget } from "../js/view.js";

/** @param {HTMLElement} el @param {import("../js/view.js").Context} ctx */
export function mountVersionDetail(el, ctx) {
  const pane = h("aside", { class: "lnb-detail", tabindex: "0", "aria-label": "this version" });
  const open = { schema: true, transaction: false, properties: true };
  el.append(pane);

  function section(key, title, count, content) {
    const details = h("details", { class: "lnb-section", open: open[key], on: { toggle: () => { open[key] = details.open; } } },
      h("summary", {}, title, h("small", {}, count)), content);
    return details;
  }

  ctx.onScreen(({ detail }) => {
    if (!detail) return;
    if (detail.error) {
      pane.replaceChildren(errorCard(detail.error));
      return;
    }
    const { family, glyph } = lookOfOperation(detail.operation);
    const { lines, hidden } = detail.schema;
    pane.replaceChildren(...[
      h("div", { class: `lnb-operation lnb-op-${family}` }, glyph ? h("i", { "aria-hidden": "true" }, glyph) : null, h("strong", {}, detail.operation), h("span", {}, detail.label)),
      detail.message ? h("blockquote", { class: "lnb-message" }, detail.message) : null,
      detail.description ? h("p", { class: "lnb-description" }, detail.description) : null,
      h("p", { class: "lnb-when" }, h("time", {}, detail.time), detail.time_ms ? h("span", {}, age(detail.time_ms)) : null),
      h("dl", { class: "lnb-counts" }, detail.counts.map(entry)),
      section("schema", "Schema", String(lines.filter((line) => !line.depth).length), schemaTree(lines, hidden)),
      detail.properties.length ? section("properties", "Properties", String(detail.properties.length), h("dl", { class: "lnb-entries" }, detail.properties.map(entry))) : null,
      detail.transaction.length ? section("transaction", "Transaction", "", h("dl", { class: "lnb-entries" }, detail.transaction.map(entry))) : null,
    ].filter(Boolean));
  }, ["detail"]);
}

function entry({ label, value }) {
  return h("div", {}, h("dt", {}, label), h("dd", {}, value));
}

function schemaTree(lines, hidden) {
  const items = lines.map((line) => {
    const item = h("li", { class: "lnb-field", title: line.note || null, "aria-level": line.depth + 1, role: "treeitem" },
      h("b", {}, line.name), h("code", {}, line.type), line.nullable ? null : h("small", { title: "never null" }, "required"));
    item.style.paddingInlineStart = `${line.depth * 14}px`;
    return item;
  });
  if (hidden) items.push(h("li", { class: "lnb-faint" }, `and ${hidden} more`));
  return h("ul", { class: "lnb-schema", role: "tree", "aria-label": "schema" }, items);
}

export default widget(mountVersionDetail, "version");
