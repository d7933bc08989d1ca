// The storage tab: map of the fragments, what would do good, and where all bytes of the folder are.

import { h, show, setText, bytes, count, copyText, plural } from "../js/dom.js";
import { fragmentStrip } from "../js/fragment_strip.js";
import { fragmentDetail } from "../js/fragment_detail.js";
import { spaceUse } from "../js/space_use.js";
import { percent } from "../js/canvas.js";
import { widget } from "../js/view.js";

const ALL = 2 ** 52;

/** @param {HTMLElement} el @param {import("../js/view.js").Context} ctx */
export function mountStorage(el, ctx) {
  const summary = h("p", { class: "lnb-st-summary" });
  const readout = h("p", { class: "lnb-st-readout" });
  const problem = h("div", { class: "lnb-st-problem" });
  const advice = h("div", { class: "lnb-st-advice" });
  const strip = fragmentStrip(ctx, { zoom: load, open: openFragment, told: (words) => setText(readout, words) });
  const tool = (name, title, act) => h("button", { class: "lnb-button", type: "button", title, "aria-label": title, on: { click: act } }, name);
  const tools = h("span", { class: "lnb-st-tools" }, tool("−", "zoom out", () => strip.zoom(false)), tool("+", "zoom in", () => strip.zoom(true)), tool("all", "show all fragments", () => load(0, ALL)));
  const placeNow = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  const legend = h("p", { class: "lnb-st-legend" }, "width rows · height bytes per row · ", h("i", { class: "lnb-st-hatch", "aria-hidden": "true" }), " deleted");
  const map = h("section", { class: "lnb-st-section" }, h("div", { class: "lnb-st-head" }, summary, tools), strip.element, h("div", { class: "lnb-st-under" }, readout, legend));
  const health = h("section", { class: "lnb-st-section" }, h("h3", { class: "lnb-st-title" }, "Health"), advice);
  el.append(h("div", { class: "lnb-storage", tabindex: "0", role: "region", "aria-label": "storage" }, problem, map, health, spaceUse(ctx, placeNow)));
  const request = ctx.kernel.line();
  let wanted = null; // a fragment to be opened when the map is here

  function load(first, stop) {
    request("storage.map", { ...placeNow(), first, stop }, ({ result, buffers }) => {
      show(problem);
      strip.show(result, buffers);
      paintSummary(result);
      if (wanted !== null) strip.mark(wanted);
      wanted = null;
    }, (error) => show(problem, ctx.problem(error)));
  }

  function paintSummary({ num_fragments: fragments, first, stop, totals }) {
    const parts = [plural(fragments, "fragment"), plural(totals.rows, "stored row"), `${percent(totals.deleted, totals.rows)} deleted`, bytes(totals.bytes), plural(totals.files, "data file")];
    if (totals.indices) parts.push(`${percent(totals.covered, totals.rows)} covered by ${totals.indices === 1 ? "the index" : "every index"}`);
    const span = stop - first < fragments ? ` — showing ${count(first)} to ${count(stop - 1)}` : "";
    setText(summary, `${parts.join(" · ")}${span}`);
  }

  async function openFragment(id) {
    const place = placeNow();
    setCode(id);
    try {
      const { result } = await ctx.kernel.ask("storage.fragment", { ...place, fragment: id });
      ctx.detail.show({ title: `Fragment ${id}`, content: fragmentDetail(ctx, place, result) });
    } catch (error) {
      ctx.detail.show({ title: `Fragment ${id}`, content: ctx.problem(error) });
    }
  }

  async function loadHealth() {
    const place = placeNow();
    try {
      const { result } = await ctx.kernel.ask("storage.health", place);
      if (place.version !== placeNow().version || place.branch !== placeNow().branch) return;
      show(advice, result.advice.length ? result.advice.map(card) : h("p", { class: "lnb-st-well" }, "✓ Nothing to do: fragments, deletions and indices are in good order."));
    } catch (error) {
      show(advice, ctx.problem(error));
    }
  }

  function card(one) {
    const code = h("code", {}, one.python);
    const copy = h("button", { class: "lnb-button", type: "button", on: { click: async () => ctx.announce((await copyText(one.python)) ? "copied" : "press Ctrl+C") } }, "copy");
    const see = h("button", { class: "lnb-button", type: "button", on: { click: () => open({ fragment: one.fragment }) } }, `see fragment ${one.fragment}`);
    const stage = one.stage && ctx.has("stage") ? h("button", { class: "lnb-button", type: "button", on: { click: () => ctx.go("stage", { card: one.stage }) } }, "stage this") : null;
    return h("article", { class: "lnb-st-card" }, h("strong", {}, one.title), h("p", {}, one.text), h("p", { class: "lnb-st-code" }, code, copy), h("p", { class: "lnb-st-acts" }, see, stage));
  }

  /** The line that shows the same: all fragments, or one. */
  function setCode(id = null) {
    const known = ctx.screen().code;
    if (!known) return;
    const opened = known.python.replace(/^ds = /, "");
    ctx.code({ python: `${opened}${id === null ? ".inspect.fragments()" : `.get_fragment(${id})`}`, magic: known.magic.replace("%lance at ", "%lance fragments ") });
  }

  function open({ fragment }) {
    if (fragment === undefined) return;
    wanted = fragment;
    strip.mark(fragment);
    openFragment(fragment);
  }

  ctx.onScreen(() => {
    if (ctx.kernel.state === "static") {
      show(problem, h("p", { class: "lnb-st-well" }, "The storage of a version is read when it is asked for: run the cell to see it."));
      return;
    }
    setCode();
    load(0, ALL);
    loadHealth();
  }, ["card"]);
  return { open, shown: () => setCode() };
}

export default widget(mountStorage, "storage of the dataset");
