// An error, readable: what happened, where, what to do.

import { h } from "./dom.js";

/** @param {{title: string, message: string, where: string, hint: string, kind: string}} card @returns {HTMLElement} */
export function errorCard(card, ...extra) {
  return h(
    "div",
    { class: "lnb-error" },
    h("span", { class: "lnb-error-mark", "aria-hidden": "true" }, "!"),
    h(
      "div",
      { class: "lnb-error-text" },
      h("strong", { class: "lnb-error-title" }, card.title),
      h("p", { class: "lnb-error-message" }, card.message),
      card.where ? h("p", { class: "lnb-error-where" }, card.where) : null,
      h("p", { class: "lnb-error-hint" }, card.hint),
    ),
    h("span", { class: "lnb-error-kind" }, card.kind),
    ...extra,
  );
}
