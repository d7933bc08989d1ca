// The frame of the storage tab and of its pieces alone: it scrolls, and it is a region of the page.

import { h } from "../js/dom.js";

/** @param {string} label @param {...HTMLElement} parts @returns {HTMLElement} */
export function storageFrame(label, ...parts) {
  return h("div.lnb-storage", { tabindex: "0", role: "region", "aria-label": label }, ...parts);
}

/** What stands there without a kernel. */
export function needsKernel() {
  return h(
    "p.lnb-st-well",
    "The storage of a version is read by the kernel. Run the cell to see it.",
  );
}
