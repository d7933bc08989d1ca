// What comes of an act, line by line, and the word that a person types to approve it.

import { h, button as makeButton } from "../js/dom.js";

/** @type {Record<string, string>} */
const MARKS = { ok: "✓", warn: "!", stop: "✕" };

/** What comes of it, line by line. @param {{level: string, text: string}[]} consequences */
export function consequenceList(consequences) {
  return h(
    "ul.lnb-cq",
    consequences.map((consequence) =>
      h(
        "li",
        { class: `lnb-cq-${consequence.level}` },
        h("i", { "aria-hidden": "true" }, MARKS[consequence.level]),
        consequence.text,
      ),
    ),
  );
}

/**
 * A box for the word that approves an act; none if no word is asked for.
 * @param {string} word @param {string} value what was typed before
 * @param {(right: boolean) => void} changed
 */
export function typedWord(word, value, changed) {
  /** @type {HTMLInputElement} */
  const box = h("input.lnb-input.lnb-cc-input", {
    "aria-label": `type ${word} to confirm`,
    autocomplete: "off",
    spellcheck: "false",
    value,
    on: {
      input: () => changed(right()),
      keydown: (event) => event.stopPropagation(),
    },
  });
  /** @returns {boolean} */
  const right = () => !word || box.value.trim() === word;
  const element = word ? h("label.lnb-cc-word", h("span", "Type ", h("code", word)), box) : null;
  return { element, right, value: () => (word ? box.value.trim() : "") };
}

/**
 * The consequences of a staged act with the button that does it.
 * @param {Lnb.Json} card see stage/card_view.py
 * @param {boolean} locked
 * @param {{commit: (message: string, approval: Lnb.Args) => void, rerun: () => void}} act
 * @param {() => string} message
 * @returns {{element: HTMLElement, button: HTMLElement}}
 */
export function consequenceCard(card, locked, act, message) {
  const { review } = card;
  const refused = Boolean(card.expectations?.refused); // by the gate of the expectations
  const stop = locked || review.empty || review.outdated || refused;
  const button = makeButton(
    review.button,
    () => act.commit(message(), { seen: review.key, typed: typed.value() }),
    {
      class: `lnb-button ${review.final ? "lnb-cc-act" : "lnb-sg-go"}`,
      title: review.final ? "This cannot be undone" : null,
    },
  );
  const before = card.typed?.key === review.key ? card.typed.word : ""; // of other consequences
  const typed = typedWord(review.empty ? "" : review.typed, before, (right) => {
    button.disabled = stop || !right;
  });
  button.disabled = stop || !typed.right();
  const refresh = makeButton("Refresh the preview", () => act.rerun(), { disabled: locked });
  const element = h(
    "section",
    {
      class: `lnb-cc${review.final ? " lnb-cc-final" : ""}`,
      "aria-label": `consequences: ${card.title}`,
      "data-key": review.key,
    },
    review.outdated
      ? h("p.lnb-cc-old", { role: "status" }, "The dataset changed after this preview. ", refresh)
      : null,
    consequenceList(review.consequences),
    review.outdated ? null : typed.element,
  );
  return { element, button };
}
