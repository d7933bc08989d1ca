// Registers the views of one kind in the page, where every loader finds them. Before it in the same
// text stand the linked views, as the constant VIEWS (see assets.py): a widget, or for views
// that are loaded later a function of the modules that they share with the views of the key `base`.

import { placeOf } from "./view_place.js";
import { addSheets } from "./view_sheets.js";

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
