// The explorer in one module, for hosts that load the models that they display and no others.

import { mountExplorer } from "./app.js";
import { mountChanges } from "./changes/changes.js";
import { mountExpectations } from "./checks/expectations.js";
import { mountRowEditor } from "./editing/row_editor.js";
import { mountHistoryStrip } from "./history/history_strip.js";
import { holdViews } from "./js/tab_host.js";
import { mountOperationsLog } from "./log/operations_log.js";
import { mountEmbeddingMap } from "./map/embedding_map.js";
import { mountPictureWall } from "./pictures/picture_wall.js";
import { mountBranches } from "./refs/branches.js";
import { mountRetention } from "./retention/retention.js";
import { mountReview } from "./review/review.js";
import { mountStage } from "./stage/stage.js";
import { mountStorage } from "./storage/storage.js";
import { switchingWidget } from "./tables/table_switch.js";

/** @type {Record<string, Lnb.Mount>} */
const LATE = {
  "refs/branches.js": mountBranches,
  "changes/changes.js": mountChanges,
  "map/embedding_map.js": mountEmbeddingMap,
  "checks/expectations.js": mountExpectations,
  "history/history_strip.js": mountHistoryStrip,
  "log/operations_log.js": mountOperationsLog,
  "pictures/picture_wall.js": mountPictureWall,
  "retention/retention.js": mountRetention,
  "review/review.js": mountReview,
  "editing/row_editor.js": mountRowEditor,
  "stage/stage.js": mountStage,
  "storage/storage.js": mountStorage,
};
for (const [entry, mount] of Object.entries(LATE)) holdViews(entry, { mount });

export const explorer = switchingWidget(
  (el, ctx) => mountExplorer(el, ctx),
  "Lance dataset explorer",
);

export default explorer;
