// The explorer of a dataset, or of the tables of a database: header, timeline, tabs with a detail
// pane beside them, and the same as code.

import { mountOverview } from "./history/overview.js";
import { mountTimeline } from "./history/timeline.js";
import { mountVersionDetail } from "./history/version_detail.js";
import { codeFooter } from "./js/code_footer.js";
import { detailPane } from "./js/detail_pane.js";
import { h, svg } from "./js/dom.js";
import { watchNews } from "./js/news.js";
import { tabHost } from "./js/tab_host.js";
import { switchingWidget } from "./tables/table_switch.js";
import { TABS } from "./tabs.js";

/**
 * @param {HTMLElement} el
 * @param {import("./js/view.js").Context} ctx
 * @param {import("./tabs.js").Tab[]} [tabs]
 */
export function mountExplorer(el, ctx, tabs = TABS) {
  /** @param {string} name */
  const part = (name) => h("div", { class: `lnb-part-${name}` });
  const parts = Object.fromEntries(
    ["overview", "timeline", "bar", "views", "detail", "code"].map((name) => [name, part(name)]),
  );
  const main = h("div", { class: "lnb-main" }, parts.views, parts.detail);
  el.append(
    h("div", { class: "lnb-card" }, parts.overview, parts.timeline, parts.bar, main, parts.code),
  );
  const pane = detailPane(parts.detail, main, ctx.announce);
  let paintCode = () => {};
  /** @type {Lnb.Context} */
  const card = {
    ...ctx,
    detail: pane,
    go: (/** @type {string} */ tab, /** @type {object | undefined} */ target) =>
      host.select(tab, target),
    has: (/** @type {string} */ tab) => host.has(tab),
  };
  const host = tabHost(parts.bar, parts.views, tabs, card, (another) => {
    paintCode();
    if (another) pane.clear();
  });
  card.writes = host.writes;
  mountOverview(parts.overview, card);
  mountTimeline(parts.timeline, card);
  mountVersionDetail(pane.version, card);
  parts.bar.append(pane.toggle, besideButton(ctx), fullScreenButton(ctx));
  ctx.describe("tab", () => host.active);
  ctx.describe("range", () => ctx.range.get());
  host.select(tabs[0].id);
  paintCode = codeFooter(parts.code, card, () => host.code());
  ctx.onScreen((_screen, patched) => patched || pane.clear());
  watchNews(el, card);
}

/**
 * Only where our extension of JupyterLab is at work: it opens a tab beside the notebook.
 * @param {Lnb.Context} ctx
 */
function besideButton(ctx) {
  const open = () => {
    const request = new CustomEvent("lance-nb:beside", { bubbles: true, cancelable: true });
    if (ctx.root.dispatchEvent(request))
      ctx.announce("This explorer is not in a cell of a notebook.");
  };
  const title = "Show this explorer in a tab beside the notebook, too";
  const button = iconButton("Beside", title, "M2.5 3.5h11v9h-11zM8.5 3.5v9", open);
  button.classList.add("lnb-beside");
  button.hidden = !("lanceNbBeside" in document.documentElement.dataset);
  return button;
}

/**
 * @param {string} label @param {string} title @param {string} d of a drawing 16 by 16
 * @param {() => unknown} click
 */
function iconButton(label, title, d, click) {
  const drawing = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d }));
  const properties = { type: "button", "aria-label": label, title, on: { click } };
  return h("button.lnb-button.lnb-icon", properties, drawing);
}

/** @param {Lnb.Context} ctx */
function fullScreenButton(ctx) {
  const isFull = () => ctx.root.matches(":fullscreen");
  const toggle = async () => {
    try {
      await (isFull() ? document.exitFullscreen() : ctx.root.requestFullscreen());
    } catch {
      ctx.announce("The browser does not show this page in full screen.");
    }
  };
  const corners = "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10";
  const button = iconButton("Full screen", "Full screen; Escape ends it", corners, toggle);
  button.hidden = !document.fullscreenEnabled;
  return button;
}

export default switchingWidget((el, ctx) => mountExplorer(el, ctx), "Lance dataset explorer");
