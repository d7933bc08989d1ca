// Puts the views of one kind in the page, where every loader finds them. Before it in the same text stand the
// linked views, as the constant VIEWS (see view_module.py).

import { placeOf } from "./view_place.js";

const SHEETS = Symbol.for("lance_nb.sheets");

/** Put sheets in the page that it has not: one that came again would undo the rules of those that build on it. */
function wear(sheets) {
  const worn = (globalThis[SHEETS] ??= new Set());
  const style = document.createElement("style");
  style.textContent = sheets.split("\f").filter((sheet) => !worn.has(sheet) && worn.add(sheet)).join("\n");
  document.head.append(style);
}

function initialize({ model }) {
  const place = placeOf(model.get("key"));
  if (place.here) return; // another kernel brought the same
  place.here = true;
  wear(model.get("style"));
  place.put(VIEWS);
}

const keeper = { initialize };

export default keeper;
