// The explorer over a snapshot in the page: the same views, and a kernel that knows what was
// recorded.

import { mountExplorer } from "./app.js";
import { mountChanges } from "./changes/changes.js";
import { mountHistoryStrip } from "./history/history_strip.js";
import { snapshotModel } from "./js/snapshot_kernel.js";
import { holdViews } from "./js/tab_host.js";
import { mountBranches } from "./refs/branches.js";
import { mountStorage } from "./storage/storage.js";
import { switchingWidget } from "./tables/table_switch.js";
import { TABS } from "./tabs.js";

// A snapshot cannot write, and there is no kernel that sends views later.
/** @type {Record<string, Lnb.Mount>} */
const MOUNTS = { changes: mountChanges, refs: mountBranches, storage: mountStorage };
holdViews("history/history_strip.js", { mount: mountHistoryStrip });
const LEFT_OUT = ["pictures", "map", "checks", "stage", "log"]; // a kernel does what they offer
const KEPT = TABS.filter(({ id }) => !LEFT_OUT.includes(id)).map((tab) => ({
  ...tab,
  mount: tab.mount ?? MOUNTS[tab.id],
}));

/** @param {Document} page holds the snapshot as JSON, and the place for the explorer */
export function start(page) {
  const data = JSON.parse(page.getElementById("snapshot")?.textContent ?? "");
  const place = page.getElementById("explorer");
  if (!place || !data.screens.length) return; // the picture stays
  place.replaceChildren();
  switchingWidget(
    (el, ctx) => mountExplorer(el, ctx, KEPT),
    "Lance dataset explorer, a snapshot",
  ).render({ model: snapshotModel(data), el: place });
}

export default start;
