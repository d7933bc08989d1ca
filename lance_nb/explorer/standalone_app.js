// The explorer in one module, for hosts that load the models that they display and no others.

import { mountExplorer } from "./app.js";
import { holdViews } from "./js/tab_host.js";
import { switchingWidget } from "./js/table_switch.js";
import { mountBranches } from "./widgets/branches.js";
import { mountChanges } from "./widgets/changes.js";
import { mountEmbeddingMap } from "./widgets/embedding_map.js";
import { mountExpectations } from "./widgets/expectations.js";
import { mountHistoryStrip } from "./widgets/history_strip.js";
import { mountOperationsLog } from "./widgets/operations_log.js";
import { mountPictureWall } from "./widgets/picture_wall.js";
import { mountRetention } from "./widgets/retention.js";
import { mountReview } from "./widgets/review.js";
import { mountRowEditor } from "./widgets/row_editor.js";
import { mountStage } from "./widgets/stage.js";
import { mountStorage } from "./widgets/storage.js";

/** @type {Record<string, Lnb.Mount>} */
const LATE = {
  "widgets/branches.js": mountBranches,
  "widgets/changes.js": mountChanges,
  "widgets/embedding_map.js": mountEmbeddingMap,
  "widgets/expectations.js": mountExpectations,
  "widgets/history_strip.js": mountHistoryStrip,
  "widgets/operations_log.js": mountOperationsLog,
  "widgets/picture_wall.js": mountPictureWall,
  "widgets/retention.js": mountRetention,
  "widgets/review.js": mountReview,
  "widgets/row_editor.js": mountRowEditor,
  "widgets/stage.js": mountStage,
  "widgets/storage.js": mountStorage,
};
for (const [entry, mount] of Object.entries(LATE)) holdViews(entry, { mount });

export const explorer = switchingWidget(
  (el, ctx) => mountExplorer(el, ctx),
  "Lance dataset explorer",
);

export default explorer;
