// Buttons that write: they wait for the lock, and say so.

import { h } from "./dom.js";

/**
 * Buttons that write: they wait for the lock, and say so.
 * @param {Lnb.Context} ctx @returns `button(label, act)`, an element that follows the lock
 */
export function writeGuard(ctx) {
  /**
   * @typedef {{button: HTMLButtonElement, hint: HTMLElement, refused: boolean,
   *   element: HTMLElement}} Guarded
   */
  /** @type {Set<Guarded>} */
  const known = new Set();

  /** @param {Guarded} one */
  function paint(one) {
    const { locked } = ctx.screen();
    one.button.disabled = locked !== false || one.refused;
    one.hint.textContent = locked === null ? "opened with read_only=True" : "open the lock first";
    one.hint.hidden = locked === false || one.refused;
  }

  ctx.onScreen(() => {
    for (const one of known) {
      if (one.element.isConnected) paint(one);
      else known.delete(one);
    }
  }, ["locked"]);

  return {
    /** @param {string} label @param {() => unknown} act @param {{refused?: boolean}} [how] */
    button(label, act, { refused = false } = {}) {
      const button = h(
        "button",
        { class: "lnb-button lnb-write", type: "button", on: { click: act } },
        label,
      );
      const hint = h("small", { class: "lnb-write-hint" });
      const one = {
        button,
        hint,
        refused,
        element: h("span", { class: "lnb-write-place" }, button, hint),
      };
      known.add(one);
      paint(one);
      return one.element;
    },
  };
}
