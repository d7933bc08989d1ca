// The lock: nothing is written while it is shut.

import { h, setText } from "./dom.js";

/** In the header, or in a view that writes and stands alone. @param {Lnb.Context} ctx */
export function lockButton(ctx) {
  const words = h("span");
  const properties = { type: "button", on: { click: () => turn(!state) } };
  const button = h("button.lnb-button.lnb-lock", properties, words);
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
    setText(words, state === false ? "Changes allowed" : state ? "Allow changes" : "Read-only");
    button.setAttribute("aria-label", words.textContent ?? "");
    button.title =
      state === null
        ? "opened with read_only=True"
        : state
          ? "locked: nothing can be written before you allow it"
          : "changes can be committed; click to lock again";
    button.disabled = state === null;
    button.setAttribute("aria-pressed", String(state === false));
  }
  ctx.onScreen((screen) => {
    state = screen.locked;
    paint();
  });
  return button;
}
