// Puts the views of one kind in the page, where every loader finds them. Before it in the same text stand the
// linked views, as the constant VIEWS (see view_module.py).

const PAGE = Symbol.for("lance_nb.views");

function initialize({ model }) {
  const key = model.get("key");
  const places = (globalThis[PAGE] ??= new Map());
  const place = places.get(key) ?? {};
  if (place.here) return; // another kernel brought the same
  place.here = true;
  const style = document.createElement("style");
  style.textContent = model.get("style");
  document.head.append(style);
  if (place.put) place.put(VIEWS);
  else place.views = Promise.resolve(VIEWS);
  places.set(key, place);
}

const keeper = { initialize };

export default keeper;
