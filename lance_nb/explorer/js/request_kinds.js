// What each request to the kernel does: whether it may be sent again, and whether it is answered in
// order. tests/unit/explorer/test_request_kinds.py compares the lists with the handlers in Python.

// Requests that only read and are answered where the message arrives, one after the other.
// biome-ignore format: a line for each area
const READS = [
  "ready", "cancel", "travel", "shown", "buffers", "detail", "cell", "select", "news",
  "views.send", "views.load",
  "rows", "rows.like", "rows.words", "rows.columns", "rows.names", "rows.range", "rows.value",
  "rows.row", "rows.thumbs", "rows.text", "rows.media",
  "versions", "versions.outline",
  "refs", "refs.check", "refs.value",
  "biography.find", "biography.keys",
  "changes.counts", "changes.near", "changes.place", "changes.files",
  "wall.columns", "wall.tiles", "wall.changed", "wall.condition",
  "map.columns", "map.piece", "map.lasso", "map.group", "map.point",
  "storage.map", "storage.fragment", "storage.deletions", "storage.deleted", "storage.pages",
  "storage.health",
  "checks.form",
  "edit.begin", "edit.cell", "edit.marks", "edit.copy", "edit.lines", "edit.value",
  "stage.menu", "stage.check", "stage.cards", "stage.running",
  "log.list",
  "tables.list", "tables.refresh", "tables.open", "tables.close",
  "retention.move", "retention.files",
];

// Requests that only read, in a thread of their own, always or sometimes: a later request may be
// answered earlier.
// biome-ignore format: a line for each area
const LONG_READS = [
  "biography.steps",
  "rows.look", "rows.hold", "rows.profile", "rows.cross", "rows.exact", "rows.recall",
  "changes.rows", "changes.thumbs", "changes.row", "changes.summary", "changes.level",
  "changes.drift",
  "wall.groups", "wall.duplicates", "wall.doubts", "wall.changes",
  "map.place", "map.colour", "map.size", "map.compare",
  "storage.space",
  "refs.heads", "refs.list", "refs.show", "refs.explain", "refs.bytes", "refs.cells",
  "stage.forecast",
  "retention.open",
  "checks.state", "checks.marks", "checks.run", "checks.bisect", "checks.rows",
  "review.open", "review.section", "review.news", "review.page",
  "tables.describe",
];

// Requests that write, stage, or number a preview: they are sent once.
// biome-ignore format: a line for each area
const WRITES = [
  "lock",
  "refs.create", "refs.move", "refs.note",
  "stage.forget", "stage.remove", "stage.earlier", "stage.look",
  "edit.set", "edit.clear", "edit.fill", "edit.paste", "edit.add", "edit.delete", "edit.undo",
  "edit.redo", "edit.drop", "edit.resolve",
];
// biome-ignore format: a line for each area
const LONG_WRITES = [
  "refs.plan", "refs.merge", "refs.delete",
  "map.stage",
  "rows.export",
  "stage.add", "stage.prepare", "stage.rerun", "stage.resume", "stage.commit", "stage.all",
  "log.undo",
  "checks.add", "checks.remove", "checks.gate",
  "review.write",
];

const ONLY_READ = new Set([...READS, ...LONG_READS]);
const IN_ORDER = new Set([...READS, ...WRITES]);

/**
 * Whether a request may be sent a second time. What is not known here may not.
 * @param {string} type
 */
export function isRepeatable(type) {
  return ONLY_READ.has(type);
}

/** Whether all later requests are answered after this one. @param {string} type */
export function isInOrder(type) {
  return IN_ORDER.has(type);
}

/** Whether a request is in one of the lists above. @param {string} type */
export function isKnown(type) {
  return [READS, LONG_READS, WRITES, LONG_WRITES].some((types) => types.includes(type));
}
