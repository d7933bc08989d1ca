// One cell's whole value (up to the kernel's limit), over the grid: text, picture, sound, vector.

import { button, copyText, count, h } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { mediaOf } from "../js/media.js";
import { markedText } from "../js/search_box.js";

/**
 * @param {Lnb.Context} ctx @param {HTMLElement} grid gets the focus back
 * @param {{columnOf: (column: number) => Lnb.Column | undefined, query: () => Lnb.Args,
 *   similar: (row: number, column: number) => void, only: (row: number, column: number) => void,
 *   alike: (row: number, column: number) => void}} from
 */
export function cellPeek(ctx, grid, { columnOf, query, similar, alike, only }) {
  const element = h("div", {
    class: "lnb-peek",
    role: "dialog",
    "aria-label": "whole value",
    tabindex: "-1",
    hidden: true,
  });
  /** @type {Lnb.Args | null} the value that was asked for last, until it is closed */
  let newest = null;
  /** @type {import("../js/media.js").MediaElement | null} */
  let media = null;

  function close() {
    newest = null;
    media?.close();
    media = null;
    element.hidden = true;
    grid.focus({ preventScroll: true });
  }
  element.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  });
  ctx.onClose(() => media?.close());

  /**
   * What can be done with a value of this kind.
   * @param {number} row @param {number} column @param {string} text
   */
  function actions(row, column, text) {
    const look = columnOf(column)?.look;
    const copy = button("Copy", async () => {
      copy.textContent = (await copyText(text)) ? "Copied" : "Press Ctrl+C";
      element.focus({ preventScroll: true });
    });
    /** @param {(row: number, column: number) => void} work */
    const act = (work) => () => {
      close();
      work(row, column);
    };
    const alikes = look === "text" && text ? button("More like this", act(alike)) : null;
    const special =
      look === "vector"
        ? button("Find similar", act(similar))
        : ["text", "bool", "number"].includes(look ?? "")
          ? button("Only this value", act(only))
          : null;
    return h("span", { class: "lnb-peek-actions" }, special, alikes, copy);
  }

  /** @param {number} row @param {number} column */
  async function open(row, column) {
    const args = { ...ctx.place(), row, column, ...query() };
    newest = args;
    /** @type {HTMLElement | null} */
    let shown;
    let text = "";
    let match = null;
    try {
      const { result } = await ctx.kernel.ask("cell", args);
      text = result.text;
      const words = result.marks ? markedText(text, result.marks) : [text || "empty text"];
      shown = h("pre", { class: result.null ? "lnb-look-null" : "" }, words);
      if (result.bytes) match = await mediaOf(ctx, args);
    } catch (caught) {
      const error = /** @type {Lnb.Failure} */ (caught);
      shown = error.card ? errorCard(error.card) : h("p", {}, error.message);
    }
    if (newest !== args) return match?.close();
    if (match?.shows) shown = null; // its bytes would take the room of what they show
    media?.close();
    media = match;
    element.replaceChildren(
      h(
        "header",
        {},
        h("b", {}, columnOf(column)?.name ?? ""),
        h("span", {}, `row ${count(row)}`),
        actions(row, column, text),
        button("×", close, { class: "lnb-close", "aria-label": "close" }),
      ),
      ...[match, shown].filter((part) => part !== null),
    );
    element.hidden = false;
    getSelection()?.removeAllRanges();
    element.focus({ preventScroll: true });
  }

  return { element, open };
}
