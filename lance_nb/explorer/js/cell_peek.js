// One cell's whole value (up to the kernel's limit), over the grid.

import { h, count } from "./dom.js";
import { errorCard } from "./error_card.js";

/**
 * @param {import("./view.js").Context} ctx @param {HTMLElement} grid gets the focus back
 * @param {(column: number) => string} nameOf
 * @param {Object} look filter and system columns of the grid
 */
export function cellPeek(ctx, grid, nameOf, look) {
  const element = h("div", { class: "lnb-peek", role: "dialog", "aria-label": "whole value", tabindex: "-1", hidden: true });
  let opened = 0;

  function close() {
    element.hidden = true;
    grid.focus({ preventScroll: true });
  }
  element.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
  });

  async function open(row, column) {
    const turn = (opened += 1);
    const { branch, version } = ctx.screen();
    let shown;
    try {
      const { result } = await ctx.kernel.ask("cell", { branch, version, row, column, ...look });
      shown = h("pre", { class: result.null ? "lnb-look-null" : "" }, result.text || "empty text");
    } catch (error) {
      shown = error.card ? errorCard(error.card) : h("p", {}, error.message);
    }
    if (turn !== opened) return;
    const button = h("button", { class: "lnb-close", type: "button", "aria-label": "close", on: { click: close } }, "×");
    element.replaceChildren(h("header", {}, h("b", {}, nameOf(column)), h("span", {}, `row ${count(row)}`), button), shown);
    element.hidden = false;
    getSelection()?.removeAllRanges();
    element.focus({ preventScroll: true });
  }

  return { element, open };
}
