// The module of every widget: waits for the views of its kind, which the page holds once (see
// view_registration.js). Their text is long: it is sent and compiled once, not with every cell that
// is run.
//
// Some hosts load only the models that they display, and never the one with the views. So when the
// views have not come after a moment, the kernel is asked to send them as a message, and the place
// of the view says what it waits for.

import { placeOf } from "./view_place.js";
import { addSheets } from "./view_sheets.js";

export const PATIENCE_MS = 2000;
const LONGEST_MS = 60000;
const REQUEST = "views.send";
const WAITING =
  "Waiting for the views of lance_nb. The notebook has not loaded them, so the kernel was asked " +
  "to send them; if it runs a cell, they come when the cell is done.";
const FAILED =
  "The views of lance_nb did not come: there is no kernel, or it does not answer. " +
  "Run the cell again.";

let requests = 0;

/**
 * Ask the kernel for the views, and put them where all loaders of this kind find them.
 * @param {Lnb.Model} model @param {string} key
 * @returns {() => void} ends the waiting
 */
function request(model, key) {
  const id = `loader-${(requests += 1)}-${Math.random().toString(36).slice(2, 8)}`;
  /** @param {Lnb.Json} message */
  async function onMessage(message) {
    if (message?.id !== id || !message.ok) return;
    model.off("msg:custom", onMessage);
    const place = placeOf(key);
    if (place.isRegistered) return;
    place.isRegistered = true;
    addSheets(message.result.style);
    const blob = new Blob([message.result.module], { type: "text/javascript" });
    const address = URL.createObjectURL(blob);
    try {
      place.put((await import(address)).default);
    } finally {
      URL.revokeObjectURL(address);
    }
  }
  model.on("msg:custom", onMessage);
  try {
    model.send({ id, type: REQUEST, args: {} });
  } catch {
    // No kernel: a saved notebook, whose views come with its states or not at all.
  }
  return () => model.off("msg:custom", onMessage);
}

/** @param {Element} el @param {string} words */
function say(el, words) {
  const note = document.createElement("p");
  note.setAttribute("role", "status");
  note.textContent = words;
  el.append(note);
  return note;
}

/** @type {Lnb.Widget["render"]} */
async function render({ model, el }) {
  const key = model.get("_views_key");
  /** @type {Element[]} */
  const notes = [];
  let forget = () => {};
  const patience = setTimeout(() => {
    notes.push(say(el, WAITING));
    forget = request(model, key);
  }, PATIENCE_MS);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error("The views did not come with the output: run the cell again.")),
      LONGEST_MS,
    );
  });
  try {
    const views = await Promise.race([placeOf(key).views, late]);
    for (const note of notes) note.remove();
    return views.render({ model, el });
  } catch (error) {
    for (const note of notes) note.textContent = FAILED;
    throw error;
  } finally {
    clearTimeout(patience);
    clearTimeout(timer);
    forget();
  }
}

const loader = { render };

export default loader;
