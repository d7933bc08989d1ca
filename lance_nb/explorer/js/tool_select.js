// Controls in the tools above a view: a labelled list to choose a column or the like from, a
// slider, and long work with its bar.

import { button, h, show } from "./dom.js";

/** @typedef {{raw: string, label: string}} Named */

export class ToolSelect {
  /** @type {string | null} */
  chosen = null;

  /** @param {string} label @param {() => void} changed */
  constructor(label, changed) {
    this.select = h("select", {
      class: "lnb-input",
      "aria-label": label,
      on: {
        change: () => {
          this.chosen = this.select.value || null;
          changed();
        },
        keydown: (event) => event.stopPropagation(),
      },
    });
    this.element = h("label", { class: "lnb-tool" }, label, this.select);
  }

  /**
   * Offer other names. The choice stays if it is among them, else it is `otherwise`.
   * @param {Named[]} names
   * @param {{none?: string | null, otherwise?: string | null}} [options] `none`: what no choice is
   *   called where that is allowed
   */
  fill(names, { none = null, otherwise = null } = {}) {
    this.select.replaceChildren(
      ...(none === null ? [] : [h("option", { value: "" }, none)]),
      ...names.map(({ raw, label }) => h("option", { value: raw }, label)),
    );
    this.choose(names.some(({ raw }) => raw === this.chosen) ? this.chosen : otherwise);
  }

  /** @param {string | null} raw */
  choose(raw) {
    this.chosen = raw;
    this.select.value = raw ?? "";
  }

  /** What is chosen is called. */
  get words() {
    return this.select.selectedOptions[0]?.textContent ?? "";
  }
}

/**
 * The first column that has one of some names, as labels do.
 * @param {Named[]} columns @param {string[]} names @returns {string | null}
 */
export function columnNamed(columns, names) {
  return columns.find(({ raw }) => names.includes(raw.toLowerCase()))?.raw ?? null;
}

/**
 * @param {string} label @param {Lnb.Props} range its `min`, `max`, `step` and `value`
 * @param {(value: number) => void} changed
 */
export function toolSlider(label, range, changed) {
  /** @type {HTMLInputElement} */
  const slider = h("input", {
    type: "range",
    "aria-label": label,
    ...range,
    on: {
      input: () => changed(Number(slider.value)),
      keydown: (event) => event.stopPropagation(),
    },
  });
  return slider;
}

/** Long work of a view: the newest request alone counts, and ends the one before. */
export class LongWork {
  element = h("div", { class: "lnb-tool-busy", role: "status", hidden: true });
  /** @type {Lnb.Asked | null} */
  running = null;

  /** @param {Lnb.Kernel} kernel */
  constructor(kernel) {
    this.kernel = kernel;
  }

  cancel() {
    this.running?.cancel();
  }

  /**
   * @param {string} type @param {Lnb.Args} args @param {string} words
   * @param {(done: number, total: number) => string} [progressWords]
   */
  async ask(type, args, words, progressWords = () => words) {
    this.cancel();
    const bar = h("progress", { "aria-label": words });
    const label = h("span", {}, words);
    const running = this.kernel.ask(type, args, {
      progress(done, total) {
        bar.max = Math.max(1, total);
        bar.value = done;
        label.textContent = progressWords(done, total);
      },
    });
    this.running = running;
    this.element.hidden = false;
    show(
      this.element,
      bar,
      label,
      button("Cancel", () => running.cancel(), { title: "stop" }),
    );
    try {
      return await running;
    } finally {
      if (this.running === running) {
        this.running = null;
        this.element.hidden = true;
      }
    }
  }
}
