// The legend of the map: tables of its colours and of what changed, the ramp of numbers and the
// sizes. They have what the map shows, also for keyboards and screen readers.

import { button, count, h, plural, show } from "../js/dom.js";
import { CHANGES, colourOf, gradient, OTHER } from "./map_colours.js";
import { sizeFactor } from "./point_renderer.js";

const WIDTH = 7; // of a point of the legend without a size, in pixels

/**
 * @param {HTMLElement} side
 * @param {{map: Lnb.Json, counts: Lnb.Json, group: (kind: string, code?: number) => void}} shown
 */
export function paintLegend(side, { map, counts, group }) {
  const { colouring, sizing } = map;
  const changed = counts
    ? table(
        `${counts.a} → ${counts.b}`,
        CHANGES.map(({ kind, colour, glyph }) =>
          row(`var(--lnb-${colour})`, `${glyph} ${kind}`, counts.counts[kind], () => group(kind)),
        ),
      )
    : null;
  const changes = counts?.groups ?? {};
  const isChanged = Object.keys(changes).length > 0;
  const groups = colouring.legend.length ? categories(colouring, changes, group) : null;
  side.classList.toggle("lnb-map-wide", isChanged);
  show(
    side,
    changed,
    groups,
    colouring.kind === "number" ? ramp(colouring) : null,
    sizing ? sizes(sizing) : null,
  );
  side.hidden = !side.firstChild;
}

/** @param {string} caption @param {HTMLElement[]} rows @param {HTMLElement} [head] */
function table(caption, rows, head) {
  return h(
    "table",
    { class: "lnb-map-table" },
    h("caption", {}, caption),
    head && h("thead", {}, head),
    h("tbody", {}, rows),
  );
}

/**
 * @param {string | null} swatch @param {string} label @param {number} number
 * @param {() => void} click
 */
function row(swatch, label, number, click) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, swatch && spot(swatch, 9), label),
    h("td", {}, count(number)),
    h(
      "td",
      {},
      button("Rows", click, {
        class: "lnb-link",
        disabled: !number,
        "aria-label": `show the ${plural(number, "row")}: ${label}`,
      }),
    ),
  );
}

/**
 * The categories with their counts, and with their changes where there are some.
 * @param {Lnb.Json} colouring @param {Lnb.Json} changes by code
 * @param {(kind: string, code?: number) => void} group
 */
function categories(colouring, changes, group) {
  const isChanged = Object.keys(changes).length > 0;
  // A label that only removed rows had is among the others.
  const hasOthers = changes[OTHER] && !colouring.legend.some(
    (/** @type {Lnb.Json} */ entry) => entry.code === OTHER,
  ); // biome-ignore format: one condition
  const entries = hasOthers
    ? [...colouring.legend, { code: OTHER, label: "other values", count: 0 }]
    : colouring.legend;
  /** @param {Lnb.Json} entryLine */
  const entry = (entryLine) => {
    const line = row(colourOf("category", entryLine.code), entryLine.label, entryLine.count, () =>
      group("code", entryLine.code),
    );
    if (isChanged)
      CHANGES.forEach(({ kind }, index) => {
        const number = changes[entryLine.code]?.[kind] ?? 0;
        line.insertBefore(h("td", {}, number ? count(number) : ""), line.children[2 + index]);
      });
    return line;
  };
  /** @param {string} sign @param {string} word */
  const title = (sign, word) => h("th", { scope: "col", title: word, "aria-label": word }, sign);
  const head = isChanged
    ? h(
        "tr",
        {},
        h("td", {}),
        title("rows", "rows"),
        CHANGES.map(({ kind, glyph }) => title(glyph, kind)),
        h("td", {}),
      )
    : undefined;
  return table(colouring.column, entries.map(entry), head);
}

/** @param {Lnb.Json} colouring of numbers */
function ramp(colouring) {
  const bar = h("i", { class: "lnb-map-ramp" });
  bar.style.background = gradient();
  return h(
    "div",
    { class: "lnb-map-numbers" },
    h("strong", {}, colouring.column),
    bar,
    h("span", {}, colouring.low),
    h("span", {}, colouring.high),
  );
}

/** Points of the least, the middle and the greatest size. @param {Lnb.Json} sizing */
function sizes(sizing) {
  const points = [1, 128, 255].map((code) =>
    spot("var(--lnb-soft)", Math.round(WIDTH * sizeFactor(code))),
  );
  return h(
    "div",
    { class: "lnb-map-sizes" },
    h("strong", {}, "size"),
    h("span", { "aria-hidden": "true" }, points),
    h("span", {}, sizing.words),
  );
}

/** @param {string} colour @param {number} wide pixels */
function spot(colour, wide) {
  const mark = h("i", { class: "lnb-map-spot", "aria-hidden": "true" });
  mark.style.background = colour;
  mark.style.width = `${wide}px`;
  mark.style.height = `${wide}px`;
  return mark;
}
