// A labelled list to choose a column or the like from, in the tools above a view.

import { h } from "./dom.js";

/** @typedef {{raw: string, label: string}} Named */

/** @param {string} label @param {(raw: string | null) => void} changed */
export function toolSelect(label, changed) {
  /** @type {HTMLSelectElement} */
  const select = h("select", {
    class: "lnb-input",
    "aria-label": label,
    on: {
      change: () => changed(select.value === "" ? null : select.value),
      keydown: (event) => event.stopPropagation(),
    },
  });
  return {
    element: h("label", { class: "lnb-tool" }, label, select),
    /**
     * @param {Named[]} names @param {string | null} first what none of them is called
     * @param {string | null} chosen
     */
    fill(names, first, chosen) {
      select.replaceChildren(
        ...(first === null ? [] : [h("option", { value: "" }, first)]),
        ...names.map(({ raw, label: name }) => h("option", { value: raw }, name)),
      );
      select.value = chosen ?? "";
    },
    /** What is chosen is called. */
    get words() {
      return select.selectedOptions[0]?.textContent ?? "";
    },
    /** @param {string} raw */
    choose(raw) {
      select.value = raw;
    },
  };
}
