// The explorer: header, timeline, rows with the version's detail beside them, and the same as code.

import { h, copyText } from "./js/dom.js";
import { mountOverview } from "./widgets/overview.js";
import { mountTimeline } from "./widgets/timeline.js";
import { mountRows } from "./widgets/rows.js";
import { mountVersionDetail } from "./widgets/version_detail.js";
import { widget } from "./js/view.js";

/** @param {HTMLElement} el @param {import("./js/view.js").Context} ctx */
export function mountExplorer(el, ctx) {
  const part = (name) => h("div", { class: `lnb-part-${name}` });
  const parts = Object.fromEntries(["overview", "timeline", "rows", "detail", "code"].map((name) => [name, part(name)]));
  el.append(h("div", { class: "lnb-card" }, parts.overview, parts.timeline, h("div", { class: "lnb-main" }, parts.rows, parts.detail), parts.code));
  mountOverview(parts.overview, ctx);
  mountTimeline(parts.timeline, ctx);
  mountRows(parts.rows, ctx);
  mountVersionDetail(parts.detail, ctx);
  mountCode(parts.code, ctx);
}

/** The line that does the same as the present state, in Python and as a magic. */
function mountCode(el, ctx) {
  let language = "python";
  const code = h("code", { class: "lnb-code-line" });
  const choices = ["python", "magic"].map((name) => h("button", { class: "lnb-choice", type: "button", on: { click: () => { language = name; paint(); } } }, name === "python" ? "Python" : "%lance"));
  const copy = h("button", { class: "lnb-button", type: "button", on: { click: async () => {
    const done = await copyText(code.textContent);
    copy.textContent = done ? "copied" : "press Ctrl+C";
    ctx.announce(copy.textContent);
    setTimeout(() => { copy.textContent = "copy"; }, 1200);
  } } }, "copy");
  el.append(h("footer", { class: "lnb-code" }, h("div", { class: "lnb-choices", role: "group", "aria-label": "same as code" }, choices), code, copy));
  function paint() {
    const lines = ctx.screen().code ?? {};
    code.textContent = lines[language] ?? "";
    code.title = code.textContent;
    choices.forEach((choice, at) => choice.setAttribute("aria-pressed", String((at === 0) === (language === "python"))));
  }
  ctx.onScreen(paint);
}

export default widget(mountExplorer, "Lance dataset explorer");
