// An error, readable: what happened, where, what to do.

import { button, h } from "./dom.js";

/**
 * @param {Lnb.Card} card with `retry` there is a button for it @param {...Lnb.Child} extra
 * @returns {HTMLElement}
 */
export function errorCard(card, ...extra) {
  const calm = card.kind === "Snapshot"; // nothing went wrong: there is no kernel to ask
  return h(
    "div",
    { class: calm ? "lnb-error lnb-error-calm" : "lnb-error" },
    h("span.lnb-error-mark", { "aria-hidden": "true" }, calm ? "i" : "!"),
    h(
      "div.lnb-error-text",
      h("strong.lnb-error-title", card.title),
      h("p.lnb-error-message", card.message),
      card.where ? h("p.lnb-error-where", card.where) : null,
      h("p.lnb-error-hint", card.hint),
    ),
    h("span.lnb-error-kind", calm ? "" : card.kind),
    card.retry && button("Try again", card.retry, { class: "lnb-button lnb-error-retry" }),
    ...extra,
  );
}
