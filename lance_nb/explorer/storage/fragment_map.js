// The map of the fragments, alone; a fragment opens below it.

import { h, show } from "../js/dom.js";
import { widget } from "../js/view.js";
import { fragmentDetail } from "./fragment_detail.js";
import { fragmentSection } from "./fragment_strip.js";
import { needsKernel, storageFrame } from "./storage_frame.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountFragmentMap(el, ctx) {
  const problem = h("div.lnb-st-problem");
  const below = h("div");
  const placeNow = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  const map = fragmentSection(ctx, {
    placeNow,
    open,
    failed: (error) => show(problem, ...(error ? [ctx.problem(error)] : [])),
  });
  el.append(storageFrame("fragments", problem, map.element, below));

  /** @param {number} id */
  async function open(id) {
    const place = placeNow();
    try {
      const { result } = await ctx.kernel.ask("storage.fragment", { ...place, fragment: id });
      show(below, h("h3.lnb-st-title", `Fragment ${id}`), fragmentDetail(ctx, place, result));
    } catch (error) {
      show(below, ctx.problem(error));
    }
  }

  ctx.onScreen(() => {
    show(below);
    if (ctx.kernel.state === "static") show(problem, needsKernel());
    else map.load();
  }, ["card"]);
}

export default widget(mountFragmentMap, "fragments of the dataset");
