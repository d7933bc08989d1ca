// One version in detail: operation, message, counts, schema, transaction.

import { h } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { versionFacts } from "../js/version_facts.js";
import { widget } from "../js/view.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountVersionDetail(el, ctx) {
  const pane = h("aside", { class: "lnb-detail", tabindex: "0", "aria-label": "this version" });
  const open = { schema: true, transaction: false, properties: true };
  el.append(pane);
  ctx.onScreen(
    ({ detail }) => {
      if (detail)
        pane.replaceChildren(
          ...(detail.error ? [errorCard(detail.error)] : versionFacts(detail, open)),
        );
    },
    ["detail"],
  );
}

export default widget(mountVersionDetail, "version");
