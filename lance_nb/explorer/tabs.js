// What stands in the tabs of the explorer, in their order. A new tab is a line here and one in registry.py.

import { mountBranches } from "./widgets/branches.js";
import { mountChanges } from "./widgets/changes.js";
import { mountRows } from "./widgets/rows.js";
import { mountStage } from "./widgets/stage.js";
import { mountStorage } from "./widgets/storage.js";

/**
 * @typedef {Object} Tab
 * @property {string} id used by `ctx.go`: rows, changes, storage, refs, stage
 * @property {string} label
 * @property {(el: HTMLElement, ctx: Lnb.Context) => Lnb.View|void} mount called when
 *   the tab is first opened; may return `{open(target), shown(), hidden()}`
 * @property {boolean} [writes] whether something can be written there: then there is a lock
 */
/** @type {Tab[]} */
export const TABS = [
  { id: "rows", label: "Rows", mount: mountRows },
  { id: "changes", label: "Changes", mount: mountChanges },
  { id: "storage", label: "Storage", mount: mountStorage },
  { id: "refs", label: "Branches & tags", mount: mountBranches, writes: true },
  { id: "stage", label: "Stage", mount: mountStage, writes: true },
];
