// The module of every widget: keeps the code of the views that the kernel sent, once in a page, and
// imports the module of its own view from it. The code is long: it is sent and compiled once, not
// with every cell that is run.
//
// Some hosts load only the models that they display, and never the one with the code. So when it
// has not come after a moment, the kernel is asked to send it as a message, and the place of the
// view says what it waits for.
//
// It imports nothing: a host loads it as one text. Other modules reach the code through their own
// copy of it (tab_host.js).

export const PATIENCE_MS = 2000;
const LONGEST_MS = 60000;
const REQUEST = "views.send";
const WAITING =
  "Waiting for the views of lance_nb. The notebook has not loaded them, so the kernel was asked " +
  "to send them; if it runs a cell, they come when the cell is done.";
const FAILED =
  "The views of lance_nb did not come: there is no kernel, or it does not answer. " +
  "Run the cell again.";
const PATH = /(?<= from ")[\w./]+\.js(?=";$)/gm;
const PAGE = Symbol.for("lance_nb.code");

/**
 * @typedef {[path: string, text: string][]} Texts
 * @typedef {{modules: Texts, sheets: Texts}} Code
 */

/** The modules and style sheets that a page holds of one version of the package. */
class PageCode {
  /** @type {Map<string, string>} blob URLs of the modules by path */
  #addresses = new Map();
  /** @type {Map<string, CSSStyleSheet>} */
  #sheets = new Map();
  /** @type {Set<Document | ShadowRoot>} */
  #roots = new Set([document]);
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {Code} code dependencies first; what the page has already is left out */
  add({ modules, sheets }) {
    for (const [path, text] of modules) {
      if (this.#addresses.has(path)) continue;
      const linked = text.replace(PATH, (imported) => this.#addresses.get(imported) ?? imported);
      const source = `${linked}\n//# sourceURL=lance_nb/explorer/${path}`;
      const blob = new Blob([source], { type: "text/javascript" });
      this.#addresses.set(path, URL.createObjectURL(blob));
    }
    for (const [path, text] of sheets) {
      if (this.#sheets.has(path)) continue;
      const sheet = new CSSStyleSheet(); // a policy that allows one style sheet allows it
      sheet.replaceSync(text);
      this.#sheets.set(path, sheet);
      for (const root of this.#roots) root.adoptedStyleSheets.push(sheet);
    }
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Style what is in a tree; hosts may put each widget into a shadow tree. @param {Node} root */
  style(root) {
    if (!(root instanceof ShadowRoot) || this.#roots.has(root)) return;
    for (const styled of this.#roots) if (!styled.isConnected) this.#roots.delete(styled);
    this.#roots.add(root);
    root.adoptedStyleSheets.push(...this.#sheets.values());
  }

  /** Wait for a module, and return what it exports. @param {string} path */
  async load(path) {
    for (;;) {
      const address = this.#addresses.get(path);
      if (address) return import(address);
      await new Promise((resolve) => this.#waiting.push(() => resolve(undefined)));
    }
  }
}

/** @param {string} key of a version of the package @returns {PageCode} */
export function pageCode(key) {
  const page = /** @type {{[symbol: symbol]: Map<string, PageCode> | undefined}} */ (globalThis);
  const codes = (page[PAGE] ??= new Map());
  const code = codes.get(key) ?? new PageCode();
  codes.set(key, code);
  return code;
}

/** Start the view of a page that holds its code. @param {Document} page */
export async function startPage(page) {
  const { entry, code, key } = JSON.parse(page.getElementById("code")?.textContent ?? "");
  pageCode(key).add(code);
  (await pageCode(key).load(entry)).default(page);
}

/**
 * Ask the kernel for the code of the views.
 * @param {Lnb.Model} model @param {PageCode} code
 * @returns {() => void} ends the waiting
 */
function request(model, code) {
  const id = `loader-${Math.random().toString(36).slice(2)}`;
  /** @param {Lnb.Json} message */
  function onMessage(message) {
    if (message?.id === id && message.ok) code.add(message.result);
  }
  model.on("msg:custom", onMessage);
  try {
    model.send({ id, type: REQUEST, args: {} });
  } catch {
    // No kernel: a saved notebook, whose code comes with its states or not at all.
  }
  return () => model.off("msg:custom", onMessage);
}

/** @param {Element} el @param {string} message */
function addNote(el, message) {
  const note = document.createElement("p");
  note.setAttribute("role", "status");
  note.textContent = message;
  el.append(note);
  return note;
}

/** Keep the code that a model brings. @param {{model: Lnb.Model}} host */
function initialize({ model }) {
  const code = model.get("_code");
  if (code?.modules) pageCode(model.get("_code_key")).add(code);
}

/** @type {Lnb.Widget["render"]} */
async function render({ model, el }) {
  const code = pageCode(model.get("_code_key"));
  /** @type {Element[]} */
  const notes = [];
  let stopListening = () => {};
  const patience = setTimeout(() => {
    notes.push(addNote(el, WAITING));
    stopListening = request(model, code);
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
    const views = await Promise.race([code.load(model.get("_entry")), late]);
    for (const note of notes) note.remove();
    code.style(el.getRootNode());
    return views.default.render({ model, el });
  } catch (error) {
    for (const note of notes) note.textContent = FAILED;
    throw error;
  } finally {
    clearTimeout(patience);
    clearTimeout(timer);
    stopListening();
  }
}

export default { initialize, render };
