// What stands in the tabs of the explorer, in their order. A new tab is a line here and one in
// registry.py; one that is loaded later is also in LATE_VIEWS (assets.py).

import { mountRows } from "./rows/rows.js";

/**
 * @typedef {Object} Tab
 * @property {string} id used by `ctx.go`: rows, changes, pictures, map, storage, refs,
 *   checks, stage, log
 * @property {string} label
 * @property {Lnb.Mount} [mount] called when the tab is first opened; may return `{open(target),
 *   shown(), hidden()}`
 * @property {string} [entry] without `mount`: the module to load when the tab is first opened
 * @property {boolean} [offered] whether it is there only for versions that offer it, see
 *   `Lnb.Screen`
 * @property {boolean} [writes] whether something can be written there: then there is a lock
 */
/** @type {Tab[]} */
export const TABS = [
  { id: "rows", label: "Rows", mount: mountRows },
  { id: "changes", label: "Changes", entry: "changes/changes.js" },
  { id: "pictures", label: "Pictures", entry: "pictures/picture_wall.js", offered: true },
  { id: "map", label: "Map", entry: "map/embedding_map.js", offered: true },
  { id: "storage", label: "Storage", entry: "storage/storage.js" },
  { id: "refs", label: "Branches & tags", entry: "refs/branches.js", writes: true },
  { id: "checks", label: "Checks", entry: "checks/expectations.js", writes: true },
  { id: "stage", label: "Stage", entry: "stage/stage.js", writes: true },
  { id: "log", label: "My actions", entry: "log/operations_log.js", writes: true },
];
