// One version in full: operation, message, counts, schema, properties, the decoded transaction.

import { ageOf, count, h } from "../js/dom.js";
import { lookOfOperation, OPERATIONS } from "../js/operations.js";

/**
 * @param {Lnb.VersionDetail} detail
 * @param {Record<string, boolean>} open which sections are; kept when a person opens or shuts one
 * @param {...HTMLElement} acts what can be done with the version
 * @returns {HTMLElement[]}
 */
export function versionFacts(detail, open, ...acts) {
  const { family, glyph } = lookOfOperation(detail.operation);
  const title = OPERATIONS[detail.operation]?.[2];
  const { lines, hidden, columns } = detail.schema;

  /**
   * @param {string} key @param {string} title @param {string} count @param {HTMLElement} content
   */
  function section(key, title, count, content) {
    /** @type {HTMLDetailsElement} */
    const details = h(
      "details.lnb-section",
      {
        open: open[key],
        on: {
          toggle: () => {
            open[key] = details.open;
          },
        },
      },
      h("summary", title, h("small", count)),
      content,
    );
    return details;
  }

  return [
    h(
      "div",
      { class: `lnb-operation lnb-op-${family}` },
      glyph ? h("i", { "aria-hidden": "true" }, glyph) : null,
      h("strong", title ?? detail.operation),
      title && h("small", detail.operation),
      h("span", detail.label),
    ),
    detail.message ? messageBlock(detail.message) : null,
    detail.description ? h("p.lnb-description", detail.description) : null,
    ...acts,
    h("p.lnb-when", h("time", detail.time), detail.time_ms ? ageOf(detail.time_ms) : null),
    h("dl.lnb-counts", detail.counts.map(entry)),
    section("schema", "Schema", count(columns), schemaTree(lines, hidden)),
    detail.properties.length
      ? section(
          "properties",
          "Properties",
          String(detail.properties.length),
          h("dl.lnb-entries", detail.properties.map(entry)),
        )
      : null,
    detail.transaction.length
      ? section(
          "transaction",
          "Transaction",
          "",
          h("dl.lnb-entries", detail.transaction.map(entry)),
        )
      : null,
  ].filter((part) => part !== null);
}

const FOLDED_CHARS = 240;
const FOLDED_LINES = 4;
const SHOWN_CHARS = 120;

/** A commit message; a long one is folded to its beginning. @param {string} message */
function messageBlock(message) {
  const lines = message.split("\n");
  if (message.length <= FOLDED_CHARS && lines.length <= FOLDED_LINES)
    return h("blockquote.lnb-message", message);
  const first = lines.find((line) => line.trim()) ?? "";
  const shown = first.length > SHOWN_CHARS ? `${first.slice(0, SHOWN_CHARS)}…` : first;
  return h(
    "details.lnb-message.lnb-message-long",
    h("summary", shown, h("small", ` whole message, ${count(message.length)} characters`)),
    h("p", message),
  );
}

/** @param {Lnb.Entry} entry */
export function entry({ label, value }) {
  return h("div", h("dt", label), h("dd", value));
}

/** The columns as a tree. @param {Lnb.SchemaLine[]} lines @param {number} hidden */
export function schemaTree(lines, hidden) {
  const items = lines.map((line) => {
    const item = h(
      "li.lnb-field",
      {
        title: line.note || null,
        "aria-level": line.depth + 1,
        role: "treeitem",
      },
      h("b", line.name),
      h("code", line.type),
      line.nullable ? null : h("small", { title: "never null" }, "required"),
    );
    item.style.paddingInlineStart = `${line.depth * 14}px`;
    return item;
  });
  if (hidden) items.push(h("li.lnb-faint", `and ${count(hidden)} more`));
  return h("ul.lnb-schema", { role: "tree", "aria-label": "schema" }, items);
}
