// Where the page holds the views of each kind, by key: loaders wait there until view_registration.js puts them.

const PAGE = Symbol.for("lance_nb.views");

/** @param {string} key of the views @returns {{views: Promise, put: Function}} the place of the views in the page */
export function placeOf(key) {
  const places = (globalThis[PAGE] ??= new Map());
  if (!places.has(key)) {
    const place = {};
    place.views = new Promise((resolve) => {
      place.put = resolve;
    });
    places.set(key, place);
  }
  return places.get(key);
}
