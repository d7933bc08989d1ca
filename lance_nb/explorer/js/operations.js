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
