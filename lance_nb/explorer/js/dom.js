// Elements made from plain values. Text is always set as text: nothing in this package parses
// markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. `tag` may name classes: "span.lnb-faint". Its first content may be properties:
 * `class`, `on: {event: handler}`, everything else is an attribute; null and false leave an
 * attribute out. Children are nodes or texts; null and false are skipped.
 * @template {Lnb.ElementTag<keyof HTMLElementTagNameMap>} T
 * @param {T} tag @param {...(Lnb.Props | Lnb.Child)} content
 * @returns {HTMLElementTagNameMap[Lnb.NameOf<T, keyof HTMLElementTagNameMap>]}
 */
export function h(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return fill(/** @type {any} */ (document.createElement(name)), classes, content);
}

/**
 * The same for SVG.
 * @template {Lnb.ElementTag<keyof SVGElementTagNameMap>} T
 * @param {T} tag @param {...(Lnb.Props | Lnb.Child)} content
 * @returns {SVGElementTagNameMap[Lnb.NameOf<T, keyof SVGElementTagNameMap>]}
 */
export function svg(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return fill(/** @type {any} */ (document.createElementNS(SVG, name)), classes, content);
}

/**
 * @template {Element} E
 * @param {E} element @param {string[]} classes @param {(Lnb.Props | Lnb.Child)[]} content
 */
function fill(element, classes, content) {
  const [first, ...others] = content;
  const [props, children] = isProps(first) ? [first, others] : [{}, content];
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, handler] of Object.entries(value))
        element.addEventListener(event, handler);
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  const nodes = children.flat().filter((child) => !isNothing(child));
  element.append(.../** @type {(Node | string)[]} */ (nodes));
  return element;
}

/** @param {Lnb.Props | Lnb.Child} content @returns {content is Lnb.Props} */
function isProps(content) {
  if (typeof content !== "object" || content === null) return false;
  return !Array.isArray(content) && !(content instanceof Node);
}

/** @param {unknown} child */
function isNothing(child) {
  return child === null || child === undefined || child === false;
}

/**
 * Replace the content of `element`, keeping nothing.
 * @param {Element} element @param {...Lnb.Child} children
 */
export function show(element, ...children) {
  const nodes = children.flat().filter(Boolean);
  element.replaceChildren(.../** @type {(Node | string)[]} */ (nodes));
}

/**
 * Set text only when it changes, so that a recycled element costs nothing when it stays the same.
 * The text node stays: a child that comes or goes has the page look at all rules with `:has()`
 * again.
 * @param {Element} element @param {string} text
 */
export function setText(element, text) {
  const only = element.firstChild;
  if (text && only instanceof Text && !only.nextSibling) {
    if (only.data !== text) only.data = text;
  } else if (element.textContent !== text) element.textContent = text;
}

/**
 * The same for an attribute.
 * @param {Element} element @param {string} name @param {string} value
 */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * A button of the usual look; `props` can give it another class, a title and the like.
 * @param {Lnb.Child} label @param {(event: Lnb.Heard<MouseEvent>) => unknown} click
 * @param {Lnb.Props} [props]
 */
export function button(label, click, props = {}) {
  return h("button", { class: "lnb-button", type: "button", on: { click }, ...props }, label);
}

/** @type {Lnb.Handlers} keys that are typed are not those of a grid or of the notebook */
const TYPED = { keydown: (event) => event.stopPropagation() };

/**
 * A field for a line of text or a number; keys that are typed stay in it.
 * @param {string} label @param {Lnb.Props} [props] @returns {HTMLInputElement}
 */
export function field(label, { on = {}, ...props } = {}) {
  const plain = { spellcheck: "false", autocomplete: "off", on: { ...TYPED, ...on } };
  return h("input", { class: "lnb-input", "aria-label": label, ...plain, ...props });
}

/**
 * A list to choose from.
 * @param {string} label @param {string | null} chosen
 * @param {[value: string, words: string][]} options @param {(value: string) => void} changed
 * @returns {HTMLSelectElement}
 */
export function choice(label, chosen, options, changed) {
  /** @type {HTMLSelectElement} */
  const select = h(
    "select",
    {
      class: "lnb-input",
      "aria-label": label,
      on: { ...TYPED, change: () => changed(select.value) },
    },
    options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)),
  );
  return select;
}

/** Keep an event that was acted on from the browser and from the notebook. @param {Event} event */
export function consume(event) {
  event.preventDefault();
  event.stopPropagation();
}

/**
 * Call `work` when an element has another size; returns how to stop.
 * @param {Element} element @param {() => void} work
 */
export function onResize(element, work) {
  if (typeof ResizeObserver !== "function") return () => {};
  const observer = new ResizeObserver(work);
  observer.observe(element);
  return () => observer.disconnect();
}

/**
 * Set place and size in pixels; what is left out stays.
 * @param {HTMLElement | SVGElement} element
 * @param {{left?: number, top?: number, width?: number, height?: number}} box
 */
export function setBox(element, { left, top, width, height }) {
  for (const [name, value] of Object.entries({ left, top, width, height }))
    if (value !== undefined) element.style.setProperty(name, `${value}px`);
}

/**
 * A table of rows of cells, which are `th` or `td`.
 * @param {Lnb.Child[]} head texts of the columns, or `th` elements @param {Lnb.Child[][]} rows
 * @param {Lnb.Props} [props]
 */
export function table(head, rows, props = {}) {
  const titles = head.map((title) =>
    title instanceof Element && title.localName === "th" ? title : h("th", { scope: "col" }, title),
  );
  const body = rows.map((row) => h("tr", {}, row));
  return h(
    "table",
    { class: "lnb-table", ...props },
    h("thead", {}, h("tr", {}, titles)),
    h("tbody", {}, body),
  );
}

/**
 * Copy to the clipboard, also where the clipboard API is not allowed (plain http).
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "lnb-offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** @type {Set<() => void> | null} paintings asked for while `atOnce` is under way */
let soon = null;

/**
 * Call `work` at most once per animation frame; what `atOnce` asks for is done at its end.
 * @param {() => void} work
 */
export function perFrame(work) {
  let turnBefore = 0;
  const now = () => {
    cancelAnimationFrame(turnBefore);
    turnBefore = 0;
    work();
  };
  const later = () => {
    if (soon) soon.add(now);
    else turnBefore ||= requestAnimationFrame(now);
  };
  later.cancel = () => cancelAnimationFrame(turnBefore);
  return later;
}

/**
 * Do `work` and paint what it asked for before the next frame, not in it: a frame less to wait for.
 * @template T @param {() => T} work @returns {T}
 */
export function atOnce(work) {
  if (soon) return work();
  soon = new Set();
  try {
    return work();
  } finally {
    const turnThen = soon;
    soon = null;
    for (const paint of turnThen) paint();
  }
}

const numbers = new Intl.NumberFormat("en-US");

/** 1204 -> "1,204". @param {number} value */
export function count(value) {
  return numbers.format(value);
}

/** (1, "row") -> "1 row". @param {number} value @param {string} noun */
export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/** 3400000 -> "3.4 MB", powers of 1,000. @param {number} value */
export function bytes(value) {
  let unit = 0;
  let left = value;
  while (left >= 999.5 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${left.toFixed(unit === 0 || left >= 99.5 ? 0 : 1)} ${UNITS[unit]}`;
}

/** @type {[limit: number, unit: number, name: string][]} */
const AGES = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86400, 3600, "hour"],
  [2592000, 86400, "day"],
  [31536000, 2592000, "month"],
  [Infinity, 31536000, "year"],
];

/**
 * Milliseconds since 1970 -> an element that says how long ago that is, until `renewAges` says it
 * anew.
 * @param {number} timeMs
 */
export function ageOf(timeMs) {
  return h("span", { "data-since": timeMs }, age(timeMs));
}

/** Tell all ages below `root` as they are now. @param {HTMLElement} root */
export function renewAges(root) {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (
    root.querySelectorAll("[data-since]")
  ))
    setText(element, age(Number(element.dataset.since)));
}

/** Milliseconds since 1970 -> "3 days ago". @param {number} timeMs */
export function age(timeMs) {
  const seconds = Math.max(0, (Date.now() - timeMs) / 1000);
  if (seconds < 10) return "just now";
  const [, unit, name] = AGES.find(([limit]) => seconds < limit) ?? AGES[0];
  return `${plural(Math.floor(seconds / unit), name)} ago`;
}
