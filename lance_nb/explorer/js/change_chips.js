// The chips above the levels of a diff: what came, went and changed, by level; a tab list.

import { count, h } from "./dom.js";

let instances = 0;

/** @param {(level: string) => void} choose @param {string} panel id of what the chips stand for */
export function changeChips(choose, panel) {
  const uid = `lnb-chips${(instances += 1)}`;
  const element = h("div", {
    class: "lnb-chips",
    role: "tablist",
    "aria-label": "levels of the difference",
    on: { keydown: onKey },
  });
  let chips = [];
  let active = null;

  function onKey(event) {
    const at = chips.findIndex((chip) => chip.id === active);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: chips.length - 1 }[
      event.key
    ];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const to = chips[(next + chips.length) % chips.length].id;
    choose(to);
    element.querySelector(`[data-level="${to}"]`)?.focus();
  }

  function chipOf(model) {
    const chip = h(
      "button",
      {
        class: "lnb-chip",
        type: "button",
        role: "tab",
        "aria-selected": "false",
        tabindex: "-1",
        id: `${uid}-${model.id}`,
        "data-level": model.id,
        "aria-controls": panel,
        on: { click: () => choose(model.id) },
      },
      h("b", {}, model.label),
      h("span", {}),
    );
    element.append(chip);
    return chip;
  }

  return {
    element,
    get models() {
      return chips;
    },
    /** Paint numbers; elements stay, so that numbers may follow a drag. */
    paint(models) {
      chips = models;
      for (const model of models) {
        const chip = element.querySelector(`[data-level="${model.id}"]`) ?? chipOf(model);
        const words = wordsOf(model);
        chip.classList.toggle("lnb-chip-none", !words.length && model.id !== "drift");
        const key = words.map(([, text]) => text).join(" ");
        if (chip.lnb !== key)
          chip.lastChild.replaceChildren(
            ...words.flatMap(([look, text]) => [h("i", { class: look }, text), " "]),
          );
        chip.lnb = key;
        chip.title = model.bound
          ? "the most that can have come and gone, from the manifests alone: rows that were updated or moved count on both sides"
          : "";
      }
    },
    choose(level) {
      if (level === active && level) return; // numbers of other versions: to look for its place lays out the page
      active = level;
      for (const chip of element.children) {
        const chosen = chip.dataset.level === level;
        const reached = chosen || (level === null && chip === element.firstChild);
        chip.setAttribute("aria-selected", String(chosen));
        chip.setAttribute("tabindex", reached ? "0" : "-1");
        if (chosen) chip.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    },
    idOf: (level) => `${uid}-${level}`,
  };
}

function wordsOf({ added, removed, changed, bound, note }) {
  return [
    bound && (added || removed) && ["lnb-most", "≤"],
    added && ["lnb-plus", `+${count(added)}`],
    removed && ["lnb-minus", `−${count(removed)}`],
    changed && ["lnb-tilde", `~${count(changed)}`],
    note && note !== "0" && ["lnb-note", note],
  ].filter(Boolean);
}

/** Numbers that are exact in place of those that manifests can tell. */
export function exactly(models, { added, removed, changed }) {
  return models.map((model) =>
    model.id === "rows" ? { ...model, added, removed, changed, bound: false, note: "" } : model,
  );
}
