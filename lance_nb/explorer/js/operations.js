// How an operation looks: a family (colour), a glyph (never colour alone), and what happened.

/**
 * The words are those of `OPERATION_TITLES` in format/transaction_summary.py.
 * @type {Record<string, [family: string, glyph: string, title: string]>}
 */
export const OPERATIONS = {
  Append: ["add", "+", "Rows added"],
  Delete: ["remove", "−", "Rows deleted"],
  Update: ["change", "~", "Rows changed"],
  Overwrite: ["replace", "=", "All rows replaced"],
  Restore: ["replace", "↶", "Earlier version restored"],
  Merge: ["schema", "▦", "Columns added or cast"],
  Project: ["schema", "▦", "Columns renamed or dropped"],
  DataReplacement: ["schema", "▦", "Columns replaced"],
  DataOverlay: ["schema", "▦", "Cells replaced"],
  Rewrite: ["upkeep", "◇", "Compacted"],
  CreateIndex: ["upkeep", "⌕", "Index built or dropped"],
  UpdateConfig: ["upkeep", "⚙", "Settings changed"],
  ReserveFragments: ["upkeep", "·", "Fragment ids reserved"],
  UpdateBases: ["upkeep", "⚙", "Paths added"],
  UpdateMemWalState: ["upkeep", "⚙", "Settings changed"],
  Clone: ["fork", "↳", "Branch begun"],
  Unknown: ["unknown", "?", "Unknown change"],
  Damaged: ["unknown", "!", "Manifest cannot be read"],
};

/** @param {string} operation @returns {{family: string, glyph: string}} */
export function lookOfOperation(operation) {
  const [family, glyph] = OPERATIONS[operation] ?? ["upkeep", operation ? "•" : ""];
  return { family, glyph };
}

/** What happened, with Lance's term: "Compacted (Rewrite)". @param {string} operation */
export function titleOfOperation(operation) {
  const title = OPERATIONS[operation]?.[2];
  return title ? `${title} (${operation})` : operation || "operation not recorded";
}
