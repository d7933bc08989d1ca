// A page of linkedom for modules that make elements: no layout, no styles, time as Node has it.

import { parseHTML } from "linkedom";

const { window, document } = parseHTML("<!doctype html><html><head></head><body></body></html>");

/** Observers that a test fires by hand: `observers[0].fire(entries)`. */
export const observers = [];
class Observer {
  constructor(work) {
    this.work = work;
    this.connected = true;
    this.observed = [];
    observers.push(this);
  }
  observe(element) {
    this.observed.push(element);
  }
  disconnect() {
    this.connected = false;
  }
  /** Tell of a change; one that observes nothing hears nothing. */
  fire(...news) {
    if (this.observed.length) this.work(...news);
  }
}
const frames = new Map();
let frame = 0;

/** Run what waits for the next animation frame. */
export function nextFrame() {
  const due = [...frames.values()];
  frames.clear();
  for (const work of due) work();
}

/** A style sheet that keeps its text. */
class Sheet {
  replaceSync(text) {
    this.text = text;
  }
}
document.adoptedStyleSheets = [];

/** Let Node import modules from blobs until a test ends. */
export function importableBlobs(t) {
  const [{ createObjectURL }, { Blob }] = [URL, globalThis];
  class TextBlob {
    constructor([text]) {
      this.text = text;
    }
  }
  globalThis.Blob = TextBlob;
  URL.createObjectURL = ({ text }) => `data:text/javascript,${encodeURIComponent(text)}`;
  t.after(() => {
    Object.assign(URL, { createObjectURL });
    Object.assign(globalThis, { Blob });
  });
}

Object.assign(globalThis, {
  CSSStyleSheet: Sheet,
  ShadowRoot: class {},
  window,
  document,
  Node: window.Node,
  Text: window.Text,
  Element: window.Element,
  HTMLElement: window.HTMLElement,
  Event: window.Event,
  CustomEvent: window.CustomEvent,
  MutationObserver: Observer,
  ResizeObserver: Observer,
  IntersectionObserver: Observer,
  getSelection: () => null,
  getComputedStyle: (element) => ({
    color: element.style?.color,
    fontSize: "12px",
    fontFamily: "sans",
    paddingLeft: "4px",
    getPropertyValue: () => "mono",
  }),
  requestAnimationFrame(work) {
    frame += 1;
    frames.set(frame, work);
    return frame;
  },
  cancelAnimationFrame: (id) => frames.delete(id),
});
Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
Object.defineProperty(document, "hidden", { value: false, configurable: true });
/** A pen that keeps what it filled since it was cleared: [style, x, y, width, height]. */
function makePen() {
  const round = (value) => Math.round(value * 100) / 100;
  const pen = {
    drawn: [],
    lines: [],
    fillRect: (...box) => pen.drawn.push([pen.fillStyle, ...box.map(round)]),
    strokeRect: (...box) => pen.drawn.push([pen.strokeStyle, ...box.map(round)]),
    clearRect: () => pen.drawn.splice(0),
    measureText: (text) => ({ width: 7 * text.length }),
    createPattern: () => "hatch",
  };
  for (const name of ["setTransform", "beginPath", "stroke", "drawImage"]) pen[name] = () => {};
  for (const name of ["moveTo", "lineTo"]) pen[name] = (...point) => pen.lines.push(point);
  return pen;
}
window.HTMLCanvasElement.prototype.getContext = function getContext(kind) {
  if (kind === "webgl") return null;
  this.pen ??= makePen();
  return this.pen;
};
for (const name of ["scrollIntoView", "setPointerCapture", "setRangeText", "select"])
  window.HTMLElement.prototype[name] ??= () => {};
window.HTMLInputElement.prototype.checked = false;
window.HTMLElement.prototype.scrollTop ??= 0; // as of an element without a layout
Object.defineProperty(window.HTMLSelectElement.prototype, "value", {
  get() {
    const options = [...this.querySelectorAll("option")].map((one) => one.getAttribute("value"));
    const selected = this.querySelector("option[selected]")?.getAttribute("value");
    return options.includes(this.chosen) ? this.chosen : (selected ?? options[0] ?? "");
  },
  set(value) {
    this.chosen = value;
  },
});
window.HTMLElement.prototype.focus = function focus() {
  document.lastFocused = this;
};

/** Send an event with properties to an element; returns it. */
export function send(element, type, properties = {}) {
  const event = new window.Event(type, { bubbles: true, cancelable: true });
  for (const [name, value] of Object.entries(properties))
    Object.defineProperty(event, name, { value, configurable: true });
  element.dispatchEvent(event);
  return event;
}

/** The texts of all elements that a selector finds. */
export const texts = (element, selector) =>
  [...element.querySelectorAll(selector)].map((found) => found.textContent);

/**
 * What is shown in an element as one line: texts are divided by "|", a button is [words], or
 * (words) when it is disabled, a field <label: value>, a title {title}; what is hidden is left out.
 */
export function shown(node) {
  if (node.nodeType === 3) return node.data.trim();
  if (node.hidden) return "";
  const inner = [...node.childNodes].map(shown).filter(Boolean).join("|");
  const title = node.getAttribute("title") ? `{${node.getAttribute("title")}}` : "";
  if (node.localName === "button") return (node.disabled ? `(${inner})` : `[${inner}]`) + title;
  if (["input", "select"].includes(node.localName))
    return `<${node.getAttribute("aria-label")}: ${node.value ?? ""}>`;
  return `${inner}${title}`;
}

/** The button with these words. */
export const button = (element, words) =>
  [...element.querySelectorAll("button")].find((found) => found.textContent.startsWith(words));
