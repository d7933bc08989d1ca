// Registers the views of one kind in the page, where every loader finds them. Before it in the same
// text stand the linked views, as the constant VIEWS (see assets.py): a widget, or for views
// that are loaded later a function of the modules that they share with the views of the key `base`.

import { placeOf } from "./view_place.js";

const SHEETS = Symbol.for("lance_nb.sheets");

/**
 * Add the style sheets that the page does not have: one added twice would override those that build
 * on it.
 * @param {string} sheets
 */
function addSheets(sheets) {
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

/** @param {{model: Lnb.Model}} of */
function initialize({ model }) {
  const place = placeOf(model.get("key"));
  if (place.isRegistered) return; // another kernel registered the same
  place.isRegistered = true;
  addSheets(model.get("style"));
  const base = model.get("base");
  if (base) placeOf(base).views.then(({ modules }) => place.put(VIEWS(modules)));
  else place.put(VIEWS);
}

const registration = { initialize };

export default registration;
