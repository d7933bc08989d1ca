// One version in detail: what changed, when, counts; schema and transaction are folded.

import { button, h } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { widget } from "../js/view.js";
import { rowWords } from "./lanes.js";
import { versionFacts } from "./version_facts.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountVersionDetail(el, ctx) {
  const pane = h("aside.lnb-detail", { tabindex: "0", "aria-label": "this version" });
  const open = { schema: false, transaction: false, properties: true };
  el.append(pane);
  ctx.onScreen(
    ({ detail, card, timeline }) => {
      if (!detail) return;
      const lane = timeline?.lanes?.find(({ branch }) => branch === (detail.branch ?? null));
      const bar = lane?.details.find(({ version }) => version === detail.version);
      // What the header says of the same version is not repeated.
      const facts = new Set((card?.error ? [] : (card?.facts ?? [])).map(({ key }) => key));
      pane.replaceChildren(
        ...(detail.error
          ? [errorCard(detail.error)]
          : versionFacts(
              { ...detail, counts: detail.counts.filter(({ label }) => !facts.has(label)) },
              open,
              ...changed(ctx, bar),
            )),
      );
    },
    ["detail"],
  );
}

/**
 * How many rows changed, and the way to them: A follows the version shown again.
 * @param {Lnb.Context} ctx @param {Lnb.VersionBar | undefined} bar
 */
function changed(ctx, bar) {
  const see = () => {
    ctx.range.set({ a: null });
    ctx.go("changes", { level: "rows" });
  };
  const isFirst = bar?.version === 1;
  const isOffered = bar && ctx.has("changes") && !isFirst && !bar.orphaned;
  return [
    ...(bar ? [h("p.lnb-changed", rowWords(bar))] : []),
    ...(isOffered ? [h("p", button("See the changed rows", see))] : []),
  ];
}

export default widget(mountVersionDetail, "version");
