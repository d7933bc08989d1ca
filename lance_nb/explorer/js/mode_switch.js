// Data | Diff: the version shown, or what changed from A to B. Diff is the tab of changes.

import { h } from "./dom.js";
import { placeLabel } from "./version_range.js";

/** @param {Lnb.Context} ctx @param {() => string} active the tab that is open */
export function modeSwitch(ctx, active) {
  let back = "rows";
  const choices = ["Data", "Diff"].map((name) =>
    h(
      "button",
      {
        class: "lnb-choice",
        type: "button",
        on: { click: () => ctx.go(name === "Diff" ? "changes" : back) },
      },
      name,
    ),
  );
  const words = h("span", { class: "lnb-mode-range" });
  const element = h(
    "div",
    { class: "lnb-mode", hidden: !ctx.has("changes") },
    words,
    h(
      "div",
      { class: "lnb-choices", role: "group", "aria-label": "show the data or what changed" },
      choices,
    ),
  );

  function paint() {
    const diff = active() === "changes";
    if (!diff) back = active();
    choices.forEach((choice, at) =>
      choice.setAttribute("aria-pressed", String(diff === (at === 1))),
    );
    const { a, b } = ctx.range.get();
    words.textContent = diff ? `${placeLabel(a)} → ${placeLabel(b)}` : "";
  }
  ctx.onClose(ctx.range.on(paint));
  return { element, paint };
}
