// Puts the views of one kind in the page, where every loader finds them. Before it in the same text stand the
// linked views, as the constant VIEWS (see view_module.py).

import { placeOf } from "./view_place.js";

function initialize({ model }) {
  const place = placeOf(model.get("key"));
  if (place.here) return; // another kernel brought the same
  place.here = true;
  const style = document.createElement("style");
  style.textContent = model.get("style");
  document.head.append(style);
  place.put(VIEWS);
}

const keeper = { initialize };

export default keeper;
