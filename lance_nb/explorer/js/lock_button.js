// The lock: nothing is written while it is shut.

import { h } from "./dom.js";

/** In the header, or in a view that writes and stands alone. @param {Lnb.Context} ctx */
export function lockButton(ctx) {
  const button = h("button.lnb-button.lnb-lock", {
    type: "button",
    on: { click: () => turn(!state) },
  });
  let state = ctx.screen().locked;
  /** @param {boolean} locked */
  async function turn(locked) {
    try {
      const { result } = await ctx.kernel.ask("lock", { locked });
      state = result.locked;
      ctx.refresh({ locked: state }); // views that write say what they wait for
    } catch (error) {
      ctx.announce(/** @type {Error} */ (error).message);
    }
    paint();
  }
  function paint() {
    button.textContent = state === false ? "Writing" : "Read-only";
    button.title =
      state === null
        ? "opened with read_only=True"
        : state
          ? "nothing can be written; click to open the lock"
          : "changes can be committed; click to shut the lock";
    button.disabled = state === null;
    button.setAttribute("aria-pressed", String(state !== false));
  }
  ctx.onScreen((screen) => {
    state = screen.locked;
    paint();
  });
  return button;
}
