// The place above the bars of a long history where the strip of all of it stands. The strip is
// loaded then; its room is taken at once, so that nothing moves when it comes.

import { h } from "../js/dom.js";
import { loadViews } from "../js/tab_host.js";

const LONG = 100; // versions that are more than bars can show at a glance

/**
 * What the timeline tells the strip and does for it. A place of the axis is a position among the
 * version numbers, with a fraction.
 * @typedef {Object} HistoryLink
 * @property {() => Lnb.LaneMap} map
 * @property {() => [first: number, last: number]} sight the places of the axis in sight
 * @property {(first: number) => void} move
 * @property {(first: number, last: number, keepsLast: boolean) => void} resize
 * @property {() => void} layout lays the timeline out anew
 */

/** @param {Lnb.Context} ctx @param {HistoryLink} link */
export function historyStripPlace(ctx, link) {
  const element = h("div.lnb-tl-strip", { hidden: true });
  /** @type {{paint: () => void} | null} */
  let strip = null;
  let state = "absent";

  async function load() {
    state = "loading";
    try {
      const views = await loadViews(ctx.kernel, "history/history_strip.js");
      const mount = /** @type {(...args: unknown[]) => {paint: () => void}} */ (views.mount);
      strip = mount(element, ctx, link);
      state = "here";
      strip.paint();
    } catch {
      // The bars show the same versions; a saved notebook has no kernel that sends the strip.
      state = "failed";
      link.layout();
    }
  }

  return {
    element,
    paint: () => strip?.paint(),
    /** Whether a history of this many versions has the strip. @param {number} versions */
    offered(versions) {
      const offered = versions >= LONG && state !== "failed" && ctx.has("rows");
      element.hidden = !offered;
      if (offered && state === "absent") load();
      return offered;
    },
  };
}
