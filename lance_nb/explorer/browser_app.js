// The explorer alone in a page, over the server of `lance-nb view` (browser_server.py).

import explorer from "./app.js";
import { httpModel } from "./js/http_model.js";

/** @param {Document} page holds how to reach the server as JSON, and the place for the explorer */
export function start(page) {
  const data = JSON.parse(page.getElementById("session")?.textContent ?? "");
  const place = page.getElementById("explorer");
  if (!place) return;
  place.replaceChildren();
  explorer.render({ model: httpModel(data), el: place });
}

export default start;
