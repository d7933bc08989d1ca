// What the signs of the timeline and of the grid mean.

import { button, h } from "../js/dom.js";
import { OPERATIONS } from "../js/operations.js";

/** @type {[sign: string, words: string][]} */
const SIGNS = [
  ["height of a bar", "rows that were added and removed, on a logarithmic scale"],
  ["A", "the version that is compared with; drag it, or press [ and ]"],
  ["B", "the version shown; click a bar, drag it, or use the arrow keys"],
  ["⚑", "a tag"],
  ["hatched", "versions that were cleaned up"],
  ["curve", "where a branch began; in colour a merge, dashed a cherry-pick or revert"],
  ["histogram", "the values of a column: drag over bars to filter"],
  ["grey behind", "all rows, where a filter is set; each to its own scale"],
  ["bars on its right", "nulls (red), NaN, infinities and outliers"],
];

/** @param {Lnb.Context} ctx @returns {HTMLElement} */
export function legendButton(ctx) {
  return button(
    "Legend",
    () => ctx.detail.show({ title: "Legend", content: legend(), focus: true }),
    { class: "lnb-button lnb-tl-tool", title: "what the signs and colours mean" },
  );
}

function legend() {
  const operations = Object.entries(OPERATIONS).map(([operation, [family, glyph, words]]) => {
    const sign = h("i", { "aria-hidden": "true" }, glyph);
    return [h("dt", { class: `lnb-operation lnb-op-${family}` }, sign, operation), meaning(words)];
  });
  const signs = SIGNS.map(([sign, words]) => [h("dt", sign), meaning(words)]);
  return h("dl.lnb-keys.lnb-legend", operations.flat(), signs.flat());
}

/** @param {string} words */
const meaning = (words) => h("dd", words);
