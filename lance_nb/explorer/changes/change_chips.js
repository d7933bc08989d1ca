// The chips above the levels of a diff: what came, went and changed, by level; a tab list.

import { count, h } from "../js/dom.js";

/**
 * @typedef {{id: string, label: string, added: number, removed: number, changed: number,
 *   bound: boolean, note: string}} Chip see changes/change_summary.py
 */

let instances = 0;

/** @param {(level: string) => void} choose @param {string} panel id of what the chips stand for */
export function changeChips(choose, panel) {
  const uid = `lnb-chips${(instances += 1)}`;
  const element = h("div.lnb-chips", {
    role: "tablist",
    "aria-label": "levels of the difference",
    on: { keydown: onKey },
  });
  /** @type {Chip[]} */
  let chips = [];
  /** @type {string | null} */
  let active = null;

  /** @param {string} level @returns {Lnb.Recycled | null} */
  function chipAt(level) {
    return element.querySelector(`[data-level="${level}"]`);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const index = chips.findIndex((chip) => chip.id === active);
    /** @type {Record<string, number>} */
    const keys = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: chips.length - 1 };
    const next = keys[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const to = chips[(next + chips.length) % chips.length].id;
    choose(to);
    chipAt(to)?.focus();
  }

  /** @param {Chip} model @returns {Lnb.Recycled} */
  function chipOf(model) {
    const chip = h(
      "button.lnb-chip",
      {
        type: "button",
        role: "tab",
        "aria-selected": "false",
        tabindex: "-1",
        id: `${uid}-${model.id}`,
        "data-level": model.id,
        "aria-controls": panel,
        on: { click: () => choose(model.id) },
      },
      h("b", model.label),
      h("span"),
    );
    element.append(chip);
    return chip;
  }

  return {
    element,
    get models() {
      return chips;
    },
    /** Paint numbers; elements stay, so that numbers may follow a drag. @param {Chip[]} models */
    paint(models) {
      chips = models;
      for (const model of models) {
        const chip = chipAt(model.id) ?? chipOf(model);
        const words = wordsOf(model);
        chip.classList.toggle("lnb-chip-none", !words.length && model.id !== "drift");
        const key = words.map(([, text]) => text).join(" ");
        if (chip.lnb !== key)
          chip.lastElementChild?.replaceChildren(
            ...words.flatMap(([look, text]) => [h("i", { class: look }, text), " "]),
          );
        chip.lnb = key;
        chip.title = model.bound
          ? "Upper bound from the manifests: " + "updated or moved rows count on both sides"
          : "";
      }
    },
    /** @param {string | null} level */
    choose(level) {
      if (level === active && level) return; // looking for its place would lay out the page
      active = level;
      for (const chip of /** @type {Iterable<HTMLElement>} */ (element.children)) {
        const chosen = chip.dataset.level === level;
        const reached = chosen || (level === null && chip === element.firstChild);
        chip.setAttribute("aria-selected", String(chosen));
        chip.setAttribute("tabindex", reached ? "0" : "-1");
        if (chosen) chip.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    },
    idOf: (/** @type {string} */ level) => `${uid}-${level}`,
  };
}

/** @param {Chip} chip */
function wordsOf({ added, removed, changed, bound, note }) {
  /** @type {(0 | "" | false | [look: string, text: string])[]} */
  const words = [
    bound && (added || removed) && ["lnb-most", "≤"],
    added && ["lnb-plus", `+${count(added)}`],
    removed && ["lnb-minus", `−${count(removed)}`],
    changed && ["lnb-tilde", `~${count(changed)}`],
    note && note !== "0" && ["lnb-note", note],
  ];
  return words.filter((word) => word !== 0 && word !== "" && word !== false);
}

/**
 * Numbers that are exact in place of those that manifests can tell.
 * @param {Chip[]} models @param {{added: number, removed: number, changed: number}} exact
 * @returns {Chip[]}
 */
export function exactly(models, { added, removed, changed }) {
  return models.map((model) =>
    model.id === "rows" ? { ...model, added, removed, changed, bound: false, note: "" } : model,
  );
}
