// Registers the views of one kind in the page, where every loader finds them. Before it in the same text
// stand the linked views, as the constant VIEWS (see view_module.py).

import { placeOf } from "./view_place.js";

const SHEETS = Symbol.for("lance_nb.sheets");

/**
 * Add the style sheets that the page does not have: one added twice would override those that build on it.
 * @param {string} sheets
 */
function addSheets(sheets) {
  const page = /** @type {{[symbol: symbol]: Set<string> | undefined}} */ (globalThis);
  const added = (page[SHEETS] ??= new Set());
  const style = document.createElement("style");
  style.textContent = sheets
    .split("\f")
    .filter((sheet) => !added.has(sheet) && added.add(sheet))
    .join("\n");
  document.head.append(style);
}

/** @param {{model: Lnb.Model}} of */
function initialize({ model }) {
  const place = placeOf(model.get("key"));
  if (place.isRegistered) return; // another kernel registered the same
  place.isRegistered = true;
  addSheets(model.get("style"));
  place.put(VIEWS);
}

const registration = { initialize };

export default registration;
