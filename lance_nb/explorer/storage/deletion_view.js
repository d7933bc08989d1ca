// The deletion vector of a fragment as a bitmap, alone, with a choice of fragments.

import { percent } from "../js/canvas.js";
import { count, h, plural, show } from "../js/dom.js";
import { widget } from "../js/view.js";
import { deletionMap } from "./deletion_map.js";
import { needsKernel, storageFrame } from "./storage_frame.js";

/** @typedef {{id: number, rows: number, deleted: number}} Deleted */

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountDeletions(el, ctx) {
  /** @type {HTMLSelectElement} */
  const choice = h("select.lnb-input", {
    "aria-label": "fragment",
    on: { change: () => draw(Number(choice.value)), keydown: (event) => event.stopPropagation() },
  });
  const body = h("div");
  const placeNow = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  let chosen = ctx.screen().fragment ?? null;
  ctx.describe("deletions", () => ({ fragment: chosen }));
  el.append(storageFrame("deleted rows", h("p", "fragment ", choice), body));

  /** @param {number} id */
  async function draw(id) {
    chosen = id;
    const place = placeNow();
    try {
      const { result } = await ctx.kernel.ask("storage.fragment", { ...place, fragment: id });
      const none = result.deletion_file
        ? deletionMap(ctx, place, id, result.rows)
        : h("p.lnb-st-well", `No row of fragment ${id} is deleted.`);
      show(body, none);
    } catch (error) {
      show(body, ctx.problem(error));
    }
  }

  async function list() {
    if (ctx.kernel.state === "static") return show(body, needsKernel());
    try {
      const { result } = await ctx.kernel.ask("storage.deleted", placeNow());
      const isListed = result.most.some(
        (/** @type {Deleted} */ fragment) => fragment.id === chosen,
      );
      const lines = result.most.map((/** @type {Deleted} */ fragment) =>
        h(
          "option",
          { value: String(fragment.id), selected: fragment.id === chosen },
          `${fragment.id}: ${count(fragment.deleted)} of ${plural(fragment.rows, "row")}` +
            ` deleted, ${percent(fragment.deleted, fragment.rows)}`,
        ),
      );
      if (chosen !== null && !isListed)
        lines.unshift(h("option", { value: String(chosen), selected: true }, String(chosen)));
      show(choice, lines);
      if (chosen === null && !result.most.length)
        return show(body, h("p.lnb-st-well", "No row of this version is deleted."));
      return draw(chosen ?? result.most[0].id);
    } catch (error) {
      return show(body, ctx.problem(error));
    }
  }

  ctx.onScreen(list, ["card"]);
}

export default widget(mountDeletions, "deleted rows of the dataset");
