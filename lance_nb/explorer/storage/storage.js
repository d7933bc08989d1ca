// The storage tab: map of the fragments, what would do good, and where all bytes of the folder are.

import { button, copyText, h, show } from "../js/dom.js";
import { samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { retentionButton } from "../retention/retention_button.js";
import { fragmentDetail } from "./fragment_detail.js";
import { fragmentSection } from "./fragment_strip.js";
import { ioMeter } from "./io_meter.js";
import { spaceUse } from "./space_use.js";
import { needsKernel, storageFrame } from "./storage_frame.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountStorage(el, ctx) {
  const problem = h("div.lnb-st-problem");
  const advice = h("div.lnb-st-advice");
  const placeNow = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  const map = fragmentSection(ctx, {
    placeNow,
    open: openFragment,
    failed: (error) => show(problem, ...(error ? [ctx.problem(error)] : [])),
  });
  const health = h("section.lnb-st-section", h("h3.lnb-st-title", "Health"), advice);
  const cleanUp = retentionButton(ctx, () => setCode());
  const tools = h("div.lnb-st-head", cleanUp.button, ioMeter(ctx));
  const space = spaceUse(ctx, placeNow);
  el.append(storageFrame("storage", problem, tools, cleanUp.panel, map.element, health, space));

  /** @type {(Lnb.Place & {fragment: number}) | null} */
  let opened = null;
  ctx.describe("storage", () => ({
    fragment: opened && samePlace(opened, placeNow()) ? opened.fragment : null,
  }));

  /** @param {number} id */
  async function openFragment(id) {
    const place = placeNow();
    opened = { ...place, fragment: id };
    setCode(id);
    try {
      const { result } = await ctx.kernel.ask("storage.fragment", { ...place, fragment: id });
      ctx.detail.show({ title: `Fragment ${id}`, content: fragmentDetail(ctx, place, result) });
    } catch (error) {
      ctx.detail.show({
        title: `Fragment ${id}`,
        content: ctx.problem(error),
      });
    }
  }

  async function loadHealth() {
    const place = placeNow();
    try {
      const { result } = await ctx.kernel.ask("storage.health", place);
      if (place.version !== placeNow().version || place.branch !== placeNow().branch) return;
      show(
        advice,
        result.advice.length
          ? result.advice.map(card)
          : h(
              "p.lnb-st-well",
              "✓ Nothing to do: fragments, deletions and indices are in good order.",
            ),
      );
    } catch (error) {
      show(advice, ctx.problem(error));
    }
  }

  /**
   * @param {{title: string, text: string, python: string, stage: Lnb.Json, fragment: number}} entry
   */
  function card(entry) {
    const code = h("code", entry.python);
    const copy = button("Copy", async () =>
      ctx.announce((await copyText(entry.python)) ? "Copied" : "Press Ctrl+C"),
    );
    const see = button(`See fragment ${entry.fragment}`, () => open({ fragment: entry.fragment }));
    const stage =
      entry.stage && ctx.has("stage")
        ? button("Stage this", () => ctx.go("stage", { card: entry.stage }))
        : null;
    return h(
      "article.lnb-st-card",
      h("strong", entry.title),
      h("p", entry.text),
      entry.python ? h("p.lnb-st-code", code, copy) : null,
      h("p.lnb-st-acts", entry.fragment < 0 ? null : see, stage),
    );
  }

  /** The line that shows the same: all fragments, or one. @param {number | null} id */
  function setCode(id = null) {
    const codes = ctx.screen().code;
    if (!codes) return;
    const opened = codes.python.replace(/^ds = /, "");
    ctx.code({
      python: `${opened}${id === null ? ".inspect.fragments()" : `.get_fragment(${id})`}`,
      magic: codes.magic?.replace("%lance at ", "%lance fragments "),
    });
  }

  /** @param {{fragment?: number}} target */
  function open({ fragment }) {
    if (fragment === undefined) return;
    map.mark(fragment);
    openFragment(fragment);
  }

  ctx.onScreen(() => {
    if (ctx.kernel.state === "static") {
      show(problem, needsKernel());
      return;
    }
    setCode();
    map.load();
    loadHealth();
  }, ["card"]);
  return { open, shown: () => setCode(), hidden: cleanUp.close };
}

export default widget(mountStorage, "storage of the dataset");
