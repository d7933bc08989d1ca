// The columns of a version as a tree, alone.

import { h, show } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { widget } from "../js/view.js";
import { storageFrame } from "../storage/storage_frame.js";
import { schemaTree } from "./version_facts.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountSchema(el, ctx) {
  const body = h("div.lnb-schema-alone");
  el.append(storageFrame("schema", body));
  ctx.onScreen(
    ({ detail, label }) => {
      if (!detail) return;
      if (detail.error) show(body, errorCard(detail.error));
      else
        show(
          body,
          h("h3.lnb-st-title", `Schema of ${label}`),
          schemaTree(detail.schema.lines, detail.schema.hidden),
        );
    },
    ["detail"],
  );
}

export default widget(mountSchema, "schema of the dataset");
