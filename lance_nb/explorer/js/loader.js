// The module of every widget: waits for the views of its kind, which the page holds once (see
// view_registration.js). Their text is long: it is sent and compiled once, not with every cell that
// is run.

import { placeOf } from "./view_place.js";

const LONGEST_MS = 60000;

/** @type {Lnb.Widget["render"]} */
async function render({ model, el }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error("The views did not come with the output: run the cell again.")),
      LONGEST_MS,
    );
  });
  const views = await Promise.race([placeOf(model.get("_views_key")).views, late]);
  clearTimeout(timer);
  return views.render({ model, el });
}

const loader = { render };

export default loader;
