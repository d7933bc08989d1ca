// One version in detail: operation, message, counts, schema, transaction.

import { h } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { widget } from "../js/view.js";
import { versionFacts } from "./version_facts.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountVersionDetail(el, ctx) {
  const pane = h("aside.lnb-detail", { tabindex: "0", "aria-label": "this version" });
  const open = { schema: true, transaction: false, properties: true };
  el.append(pane);
  ctx.onScreen(
    ({ detail, card }) => {
      if (!detail) return;
      // What the header says of the same version is not repeated.
      const facts = new Set((card?.error ? [] : (card?.facts ?? [])).map(({ key }) => key));
      pane.replaceChildren(
        ...(detail.error
          ? [errorCard(detail.error)]
          : versionFacts(
              { ...detail, counts: detail.counts.filter(({ label }) => !facts.has(label)) },
              open,
            )),
      );
    },
    ["detail"],
  );
}

export default widget(mountVersionDetail, "version");
