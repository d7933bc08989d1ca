// Where the page holds the views of each kind, by key: loaders wait there until
// view_registration.js puts them.

/**
 * @typedef {{views: Promise<Lnb.Widget>, put: (views: Lnb.Widget) => void, isRegistered: boolean}}
 *   ViewPlace the views of one kind in the page
 * @typedef {{[symbol: symbol]: Map<string, ViewPlace> | undefined}} Page
 */

const PAGE = Symbol.for("lance_nb.views");

/** @param {string} key of the views @returns {ViewPlace} */
export function placeOf(key) {
  const page = /** @type {Page} */ (globalThis);
  const places = (page[PAGE] ??= new Map());
  const stored = places.get(key);
  if (stored) return stored;
  /** @type {ViewPlace["put"]} */
  let put = () => {};
  /** @type {Promise<Lnb.Widget>} */
  const views = new Promise((resolve) => {
    put = resolve;
  });
  const place = { views, put, isRegistered: false };
  places.set(key, place);
  return place;
}
