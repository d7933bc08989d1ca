// A line above the view while the kernel does not answer: it may be busy, so this is no error.

import { h } from "./dom.js";

const WORDS =
  "No answer from the kernel yet. It may be busy running a cell; " +
  "the answer appears here when it is done.";

/** @param {Lnb.Kernel} kernel @returns {HTMLElement} shown while requests of the user are late */
export function lateNotice(kernel) {
  const again = () => {
    kernel.tryAgain();
    words.textContent = "Asked again. Waiting for the kernel…";
  };
  const words = h("span", {});
  const button = h(
    "button",
    { class: "lnb-button", type: "button", on: { click: again } },
    "Try again",
  );
  const element = h("div", { class: "lnb-late", role: "status", hidden: true }, words, button);
  kernel.onLate((count) => {
    element.hidden = !count;
    words.textContent = count ? WORDS : "";
  });
  return element;
}
