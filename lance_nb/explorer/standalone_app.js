// The explorer in one module, for hosts that load the models that they display and no others.

import { mountExplorer } from "./app.js";
import { widget } from "./js/view.js";
import { TABS } from "./tabs.js";
import { mountBranches } from "./widgets/branches.js";
import { mountChanges } from "./widgets/changes.js";
import { mountStage } from "./widgets/stage.js";

/** @type {Record<string, Lnb.Mount>} */
const MOUNTS = { changes: mountChanges, refs: mountBranches, stage: mountStage };
const ALL = TABS.map((tab) => ({ ...tab, mount: tab.mount ?? MOUNTS[tab.id] }));

export default widget((el, ctx) => mountExplorer(el, ctx, ALL), "Lance dataset explorer");
