// How an operation looks: a family (colour), a glyph (never colour alone) and words.

/** @type {Record<string, [family: string, glyph: string]>} */
const FAMILIES = {
  Append: ["add", "+"],
  Delete: ["remove", "−"],
  Update: ["change", "~"],
  Overwrite: ["replace", "="],
  Restore: ["replace", "↶"],
  Merge: ["schema", "▦"],
  Project: ["schema", "▦"],
  DataReplacement: ["schema", "▦"],
  Rewrite: ["upkeep", "◇"],
  CreateIndex: ["upkeep", "⌕"],
  UpdateConfig: ["upkeep", "⚙"],
  ReserveFragments: ["upkeep", "·"],
  Clone: ["fork", "↳"],
  Damaged: ["unknown", "!"], // no operation: the version's manifest cannot be read
};

/** @param {string} operation @returns {{family: string, glyph: string}} */
export function lookOfOperation(operation) {
  const [family, glyph] = FAMILIES[operation] ?? ["upkeep", operation ? "•" : ""];
  return { family, glyph };
}

/**
 * What happened, in the words of a person, with the look of each kind of operation.
 * @type {[operation: string, words: string][]}
 */
export const OPERATION_WORDS = [
  ["Append", "rows added"],
  ["Delete", "rows deleted"],
  ["Update", "values changed"],
  ["Overwrite", "all rows replaced"],
  ["Restore", "an earlier version made the newest again"],
  ["Merge", "columns added, changed or dropped"],
  ["Rewrite", "files compacted, rows as they were"],
  ["CreateIndex", "an index built or extended"],
  ["UpdateConfig", "settings changed"],
  ["Clone", "a branch or copy began"],
  ["Damaged", "the manifest cannot be read"],
];
