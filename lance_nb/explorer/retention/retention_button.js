// The button that opens the clean-up simulator under it. The simulator is loaded then.

import { consume, h, button as makeButton, show } from "../js/dom.js";
import { loadViews } from "../js/tab_host.js";

/** @type {Omit<Lnb.RetentionMarks, "repaint">} */
const NONE = { goes: () => false, words: () => "", hovered() {} };

/**
 * What the simulator tells the timeline.
 * @typedef {Object} RetentionLink
 * @property {(marks: Partial<Lnb.RetentionMarks>) => void} put
 * @property {() => void} close
 */

/** @param {Lnb.Context} ctx @param {() => void} closed */
export function retentionButton(ctx, closed) {
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    consume(event);
    close();
    button.focus();
  };
  const panel = h("div.lnb-rt-place", { hidden: true });
  panel.addEventListener("keydown", onKey, true); // its sliders keep their keys
  const button = makeButton("Clean-up…", () => (panel.hidden ? open() : close()), {
    hidden: true,
    "aria-expanded": "false",
    title: "See what a clean-up of old versions would remove; nothing is changed",
  });
  /** @type {RetentionLink} */
  const link = {
    put(marks) {
      const { retention } = ctx.shared;
      Object.assign(retention ?? {}, marks);
      retention?.repaint();
    },
    close,
  };

  async function open() {
    panel.hidden = false;
    button.setAttribute("aria-expanded", "true");
    show(panel, h("p.lnb-loading", "Loading…"));
    try {
      const views = await loadViews(ctx.kernel, "retention/retention.js");
      if (panel.hidden) return;
      show(panel);
      const mount = /** @type {(...args: unknown[]) => unknown} */ (views.mount);
      mount(panel, ctx, link);
    } catch (error) {
      show(panel, ctx.problem(error, open));
    }
  }

  function close() {
    if (panel.hidden) return;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    show(panel);
    link.put(NONE);
    closed();
  }

  ctx.onClose(
    ctx.kernel.onState((state) => {
      button.hidden = state === "static" || !ctx.has("stage");
      if (state === "static") close();
    }),
  );
  return { button, panel, close };
}
