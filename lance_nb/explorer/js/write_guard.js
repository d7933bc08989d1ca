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
  const guards = new Set();

  /** @param {Guarded} guard */
  function paint(guard) {
    const { locked } = ctx.screen();
    guard.button.disabled = locked !== false || guard.refused;
    guard.hint.textContent = locked === null ? "opened with read_only=True" : "open the lock first";
    guard.hint.hidden = locked === false || guard.refused;
  }

  ctx.onScreen(() => {
    for (const guard of guards) {
      if (guard.element.isConnected) paint(guard);
      else guards.delete(guard);
    }
  }, ["locked"]);

  return {
    /** @param {string} label @param {() => unknown} act @param {{refused?: boolean}} [how] */
    button(label, act, { refused = false } = {}) {
      const button = h(
        "button.lnb-button.lnb-write",
        { type: "button", on: { click: act } },
        label,
      );
      const hint = h("small.lnb-write-hint");
      const guard = {
        button,
        hint,
        refused,
        element: h("span.lnb-write-place", button, hint),
      };
      guards.add(guard);
      paint(guard);
      return guard.element;
    },
  };
}
