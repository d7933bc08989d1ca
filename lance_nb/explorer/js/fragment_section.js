// The map of the fragments with its tools and its words: in the storage tab, and alone.

import { percent } from "./canvas.js";
import { bytes, count, h, plural, setText } from "./dom.js";
import { fragmentStrip } from "./fragment_strip.js";

const ALL = 2 ** 52;

/**
 * @param {Lnb.Context} ctx
 * @param {{placeNow: () => Lnb.Place, open: (id: number) => void,
 *   failed: (error: Lnb.Failure|null) => void}} on
 */
export function fragmentSection(ctx, { placeNow, open, failed }) {
  const summary = h("p", { class: "lnb-st-summary" });
  const readout = h("p", { class: "lnb-st-readout" });
  const strip = fragmentStrip(ctx, {
    zoom: load,
    open,
    describe: (words) => setText(readout, words),
  });
  /** @param {string} name @param {string} title @param {() => void} act */
  const tool = (name, title, act) =>
    h(
      "button",
      { class: "lnb-button", type: "button", title, "aria-label": title, on: { click: act } },
      name,
    );
  const tools = h(
    "span",
    { class: "lnb-st-tools" },
    tool("−", "zoom out", () => strip.zoom(false)),
    tool("+", "zoom in", () => strip.zoom(true)),
    tool("all", "show all fragments", () => load(0, ALL)),
  );
  const legend = h(
    "p",
    { class: "lnb-st-legend" },
    "width rows · height bytes per row · ",
    h("i", { class: "lnb-st-hatch", "aria-hidden": "true" }),
    " deleted",
  );
  const request = ctx.kernel.line();
  /** @type {number | null} */
  let wanted = null; // a fragment to be marked when the map is here

  /** @param {number} first @param {number} stop */
  function load(first, stop) {
    request(
      "storage.map",
      { ...placeNow(), first, stop },
      ({ result, buffers }) => {
        failed(null);
        strip.show(result, buffers);
        paintSummary(result);
        if (wanted !== null) strip.mark(wanted);
        wanted = null;
      },
      failed,
    );
  }

  /** @param {Lnb.Json} map see models/fragment_map.py */
  function paintSummary({ num_fragments: fragments, first, stop, totals }) {
    const parts = [
      plural(fragments, "fragment"),
      plural(totals.rows, "stored row"),
      `${percent(totals.deleted, totals.rows)} deleted`,
      totals.bytes === null ? "size unknown" : bytes(totals.bytes),
      plural(totals.files, "data file"),
    ];
    if (totals.indices)
      parts.push(
        `${percent(totals.covered, totals.rows)} covered by ` +
          (totals.indices === 1 ? "the index" : "every index"),
      );
    const span = stop - first < fragments ? ` — showing ${count(first)} to ${count(stop - 1)}` : "";
    // A line does not end before the sign.
    setText(summary, `${parts.join(" · ")}${span}`.replaceAll(" %", "\u00a0%"));
  }

  return {
    element: h(
      "section",
      { class: "lnb-st-section" },
      h("div", { class: "lnb-st-head" }, summary, tools),
      strip.element,
      h("div", { class: "lnb-st-under" }, readout, legend),
    ),
    load: () => load(0, ALL),
    /** @param {number} id */
    mark(id) {
      wanted = id;
      strip.mark(id);
    },
  };
}
