// The button beside the timeline that opens the clean-up simulator. The simulator is loaded then.

import { h, button as makeButton, show } from "../js/dom.js";
import { loadViews } from "../js/tab_host.js";

/**
 * What the simulator tells the timeline.
 * @typedef {Object} RetentionLink
 * @property {(goes: (branch: string | null, version: number) => boolean,
 *   words: (branch: string | null, version: number) => string) => void} put
 * @property {() => void} close
 * @property {((branch: string | null, version: number) => void) | null} hovered
 */

/** @param {Lnb.Context} ctx @param {() => void} repaint paints the bars anew */
export function retentionButton(ctx, repaint) {
  const panel = h("div.lnb-tl-retention", { hidden: true });
  const button = makeButton("Clean-up…", () => (panel.hidden ? open() : close()), {
    class: "lnb-button lnb-tl-tool",
    hidden: true,
    "aria-expanded": "false",
    title: "See what a clean-up of old versions would remove; nothing is changed",
  });
  const none = { goes: () => false, words: () => "" };
  /** @type {{goes: (branch: string | null, version: number) => boolean,
   *   words: (branch: string | null, version: number) => string}} */
  let now = none;
  /** @type {RetentionLink} */
  const link = {
    put(goes, words) {
      now = { goes, words };
      repaint();
    },
    close,
    hovered: null,
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
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    show(panel);
    link.hovered = null;
    now = none;
    repaint();
  }

  ctx.onClose(
    ctx.kernel.onState((state) => {
      button.hidden = state === "static" || !ctx.has?.("stage");
      if (state === "static" && !panel.hidden) close();
    }),
  );
  return {
    button,
    panel,
    /** @param {string | null} branch @param {number} version */
    goes: (branch, version) => now.goes(branch, version),
    /** @param {string | null} branch @param {number} version */
    words: (branch, version) => now.words(branch, version),
    /** @param {string | null} branch @param {number} version */
    hovered: (branch, version) => link.hovered?.(branch, version),
  };
}
