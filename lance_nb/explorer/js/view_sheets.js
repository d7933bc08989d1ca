// The style sheets of the views, each once in a page.

const SHEETS = Symbol.for("lance_nb.sheets");

/**
 * Add the style sheets that the page does not have: one added twice would override those that build
 * on it.
 * @param {string} sheets
 */
export function addSheets(sheets) {
  const page = /** @type {{[symbol: symbol]: Set<string> | undefined}} */ (globalThis);
  const added = (page[SHEETS] ??= new Set());
  const text = sheets
    .split("\f")
    .filter((sheet) => !added.has(sheet) && added.add(sheet))
    .join("\n");
  if (!text) return;
  const style = document.createElement("style");
  style.textContent = text;
  document.head.append(style);
}
