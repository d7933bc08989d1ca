// Each transaction of the source against each of the target; the reason of a verdict under the
// grid.

import { h, plural, show } from "../js/dom.js";
import { lookOfOperation, titleOfOperation } from "../js/operations.js";

/**
 * @typedef {{label: string, operation: string, text: string}} Step
 * @typedef {{outcome: string, words: string, reason: string}} Verdict
 * @typedef {{source: Step[], target: Step[], cells: number[], verdicts: Verdict[],
 *   hidden_source: number, hidden_target: number}} Grid see refs/ref_preview.py
 */

/** @type {Record<string, string>} */
const GLYPHS = { replayed: "·", merged: "≈", conflict: "✕" };

/** @param {Grid} grid @param {{source: string, target: string}} names */
export function conflictGrid(grid, names) {
  if (!grid.source.length)
    return h("p.lnb-faint", `${names.source} has no change that ${names.target} lacks.`);
  const readout = h(
    "p.lnb-cg-readout",
    { "aria-live": "polite" },
    "Choose a cell to read its reason.",
  );
  const wide = grid.target.length;
  const cells = grid.cells.map((verdict, index) => cell(verdict, index));
  let position = 0;

  /** @param {number} verdict @param {number} index */
  function cell(verdict, index) {
    /** @type {Verdict | undefined} */
    const details = grid.verdicts[verdict];
    const [source, target] = [grid.source[Math.floor(index / wide)], grid.target[index % wide]];
    const label =
      `${source.label} ${titleOfOperation(source.operation)} against ` +
      `${target.label} ${titleOfOperation(target.operation)}: ` +
      (details?.words ?? "not checked");
    return h(
      "td",
      {
        role: "gridcell",
        class: `lnb-cg-${details?.outcome ?? "unknown"}`,
        tabindex: index ? "-1" : "0",
        "aria-label": label,
        title: label,
        on: {
          focus: () => tell(index, details, label),
          click: (event) => event.currentTarget.focus(),
        },
      },
      GLYPHS[details?.outcome ?? ""] ?? "?",
    );
  }

  /** @param {number} index @param {Verdict | undefined} details @param {string} label */
  function tell(index, details, label) {
    cells[position].setAttribute("tabindex", "-1");
    cells[index].setAttribute("tabindex", "0");
    position = index;
    show(readout, h("strong", label), details && h("span", details.reason));
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    /** @type {Record<string, number>} */
    const keys = {
      ArrowRight: position + 1,
      ArrowLeft: position - 1,
      ArrowDown: position + wide,
      ArrowUp: position - wide,
      Home: position - (position % wide),
      End: position - (position % wide) + wide - 1,
    };
    const next = keys[event.key];
    if (next === undefined || !cells[next]) return;
    event.preventDefault();
    event.stopPropagation();
    cells[next].focus();
  }

  /** @param {Step} version */
  const step = (version) => {
    const { family, glyph } = lookOfOperation(version.operation);
    return [
      h("i", { class: `lnb-op-${family}`, "aria-hidden": "true" }, glyph),
      h("b", version.label),
      " ",
      h("small", titleOfOperation(version.operation)),
    ];
  };
  const lines = grid.source.map((version, row) =>
    h(
      "tr",
      { role: "row" },
      h("th", { scope: "row", role: "rowheader", title: version.text }, step(version)),
      wide ? cells.slice(row * wide, (row + 1) * wide) : h("td.lnb-cg-text", version.text),
    ),
  );
  const table = h(
    "table.lnb-cg",
    {
      role: "grid",
      "aria-label": `${names.source} against ${names.target}`,
      on: { keydown: onKey },
    },
    wide
      ? h(
          "thead",
          { role: "rowgroup" },
          h(
            "tr",
            { role: "row" },
            h("th.lnb-cg-corner", { role: "columnheader" }, `${names.source} ↓  ${names.target} →`),
            grid.target.map((version) =>
              h("th", { scope: "col", role: "columnheader", title: version.text }, step(version)),
            ),
          ),
        )
      : null,
    h("tbody", { role: "rowgroup" }, lines),
  );
  const hidden = [
    grid.hidden_source && `${plural(grid.hidden_source, "older version")} of ${names.source}`,
    grid.hidden_target && `${plural(grid.hidden_target, "older version")} of ${names.target}`,
  ].filter(Boolean);
  return h(
    "div.lnb-cg-whole",
    h("div.lnb-cg-scroll", table),
    wide ? readout : null,
    hidden.length ? h("p.lnb-faint", `not shown: ${hidden.join(", ")}`) : null,
  );
}
