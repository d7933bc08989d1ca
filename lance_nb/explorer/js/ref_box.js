// A box for a version, a tag or a branch, completed while it is typed. Unlike the header's it only
// asks.

import { h } from "./dom.js";
import { suggestions } from "./suggestions.js";

/**
 * @typedef {{ref: string, label: string, kind: string, note: string}} Choice see
 *   models/refs.py
 */

/**
 * @param {Lnb.Context} ctx
 * @param {{label: string, value?: string, branches?: boolean, changed: () => void}} of with
 *   `branches` only branches are offered
 * @returns `element` and `input`
 */
export function refBox(ctx, { label, value = "", branches = false, changed }) {
  const input = h("input", {
    class: "lnb-input",
    "aria-label": label,
    placeholder: branches ? "a branch" : "12 · dev · dev:3 · tag:v1 · HEAD~2",
    spellcheck: "false",
    autocomplete: "off",
    value,
    size: branches ? "14" : "20",
    on: {
      input: () => {
        changed();
        offer();
      },
      keydown: (event) => offers.key(event) && event.stopPropagation(),
    },
  });
  const offers = suggestions(input, `choices for ${label}`, (line) => {
    input.value = line.ref;
    changed();
  });
  const request = ctx.kernel.line();

  function offer() {
    const text = input.value.trim();
    request(
      "refs",
      { text },
      ({ result }) => {
        const found = result.choices.filter(
          (/** @type {Choice} */ one) =>
            !branches || (one.kind === "branch" && !one.ref.includes(":")),
        );
        if (text === input.value.trim())
          offers.offer(
            found.some((/** @type {Choice} */ one) => one.ref === text)
              ? []
              : found.map((/** @type {Choice} */ one) => ({
                  name: one.label,
                  type: one.kind,
                  ref: one.ref,
                })),
          );
      },
      () => offers.offer([]),
    );
  }

  return { element: h("span", { class: "lnb-ref-box" }, input, offers.list), input };
}
