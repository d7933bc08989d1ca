// The scrolled area of a wall: tiles in sections, of which only those in sight exist as elements.
// One tile is the current one, that of the keyboard.

import { h, onResize, perFrame, show } from "../js/dom.js";
import { CAPTION, TITLE, WallLayout } from "./wall_layout.js";
import { WallTiles } from "./wall_tiles.js";

export const SIZES = [48, 320];
const AHEAD = 200; // pixels above and below the part in sight

/**
 * @typedef {import("./wall_tiles.js").Source & {title: string, edit: Lnb.Json}} Section
 * @typedef {{isChosen: (row: number) => boolean, act: (section: Section) => Lnb.Child,
 *   failed: (error: Lnb.Failure) => void, learned: (result: Lnb.Json) => void}} Hooks whether a row
 *   is selected, what can be done with a section
 */

/** Tells the tiles of several walls in a page apart. */
const uid = Math.floor(Math.random() * 1e9);

export class TileWall {
  /** @type {Section[]} */
  sections = [];
  current = { section: 0, at: 0 };
  size = 120;
  sight = { width: 0, height: 0, top: 0 };
  /** @type {Set<string>} keys of the tiles in sight */
  shownKeys = new Set();
  /** @type {Map<string, HTMLElement>} by key */
  elements = new Map();

  /** @param {Lnb.Context} ctx @param {Hooks} hooks @param {Lnb.Handlers} on */
  constructor(ctx, hooks, on) {
    this.ctx = ctx;
    this.hooks = hooks;
    this.layout = new WallLayout([], 1, 1, this.size);
    this.paint = perFrame(() => this.draw());
    this.tiles = new WallTiles(ctx, {
      size: () => this.size,
      inSight: (key) => this.shownKeys.has(key),
      changed: this.paint,
      ...hooks,
    });
    this.space = h("div", { class: "lnb-wall-space" });
    const scroll = () => {
      this.sight.top = this.element.scrollTop;
      this.paint();
    };
    this.element = h(
      "div",
      {
        class: "lnb-wall-scroll",
        role: "listbox",
        tabindex: "0",
        "aria-label": "pictures",
        "aria-multiselectable": "true",
        on: { scroll, ...on },
      },
      this.space,
    );
    ctx.onClose(
      onResize(
        this.element,
        perFrame(() => this.resized()),
      ),
    );
  }

  /** Show other sections, from their beginning. @param {Section[]} sections */
  show(sections) {
    this.sections = sections;
    this.current = { section: 0, at: 0 };
    this.tiles.forget();
    this.clear();
    this.element.scrollTop = 0;
    this.measure();
  }

  clear() {
    show(this.space);
    this.elements = new Map();
    this.shownKeys = new Set();
  }

  /** Look how large the wall is, and lay it out. */
  measure() {
    const { clientWidth, clientHeight, scrollTop } = this.element;
    if (!clientWidth) return;
    this.sight = { width: clientWidth - 12, height: clientHeight, top: scrollTop };
    this.layOut();
    this.draw();
  }

  layOut() {
    this.layout = new WallLayout(this.sections, this.sight.width, this.sight.height, this.size);
    this.space.style.height = `${this.layout.height}px`;
  }

  resized() {
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth - 12 === this.sight.width && clientHeight === this.sight.height) return;
    this.clear();
    this.measure();
  }

  /** The tiles at the top of what is in sight, and the titles. @param {number} [ahead] */
  inSight(ahead = 0) {
    const top = this.layout.topOf(this.sight.top);
    return this.layout.inSight(top - ahead, top + this.sight.height + ahead);
  }

  /** Put what is in sight on the wall. */
  draw() {
    const { spots, titles } = this.inSight(AHEAD);
    const offset = this.sight.top - this.layout.topOf(this.sight.top);
    const rows = spots.map((spot) => {
      const source = this.sections[spot.section];
      return { spot, source, row: source.first + spot.at };
    });
    this.shownKeys = new Set(rows.map(({ source, row }) => this.tiles.keyOf(source, row)));
    /** @type {Map<string, HTMLElement>} */
    const next = new Map();
    for (const section of titles) {
      const key = `title ${section}`;
      const element = this.elements.get(key) ?? this.titleOf(this.sections[section]);
      element.style.top = `${this.layout.tops[section] + offset}px`;
      next.set(key, element);
    }
    for (const { spot, source, row } of rows) {
      const key = `${spot.section} ${spot.at}`;
      const element = this.elements.get(key) ?? this.tileOf(spot, source);
      element.style.left = `${spot.x}px`;
      element.style.top = `${spot.y + offset}px`;
      this.fillTile(element, source, row);
      const isCurrent = spot.section === this.current.section && spot.at === this.current.at;
      element.classList.toggle("lnb-wall-here", isCurrent);
      if (isCurrent) this.element.setAttribute("aria-activedescendant", element.id);
      next.set(key, element);
    }
    for (const [key, element] of this.elements) if (!next.has(key)) element.remove();
    for (const [key, element] of next) if (!this.elements.has(key)) this.space.append(element);
    this.elements = next;
    this.tiles.want(rows);
  }

  /** @param {import("./wall_layout.js").Spot} spot @param {Section} source */
  tileOf(spot, source) {
    const element = h("div", {
      class: `lnb-wall-tile${source.type === "wall.changed" ? " lnb-wall-pair" : ""}`,
      role: "option",
      id: `lnb-tile-${uid}-${spot.section}-${spot.at}`,
      "aria-setsize": source.count,
      "aria-posinset": spot.at + 1,
      "data-section": spot.section,
      "data-at": spot.at,
    });
    element.style.width = `${this.size}px`;
    element.style.height = `${this.size + CAPTION}px`;
    return element;
  }

  /** @param {HTMLElement} element @param {Section} source @param {number} row */
  fillTile(element, source, row) {
    element.setAttribute("aria-selected", String(this.hooks.isChosen(row)));
    const tile = this.tiles.get(this.tiles.keyOf(source, row));
    if (!tile || element.hasAttribute("data-filled")) return;
    element.setAttribute("data-filled", "");
    const words = tile.abouts[0].caption || `row ${row}`;
    element.setAttribute("aria-label", words);
    element.replaceChildren(
      h("div", { class: "lnb-wall-picture" }, this.tiles.draw(tile)),
      h("div", { class: "lnb-wall-caption", title: words }, words),
    );
  }

  /** @param {Section} section */
  titleOf(section) {
    const element = h(
      "div",
      { class: "lnb-wall-title", role: "presentation" },
      section.title,
      this.hooks.act(section),
    );
    element.style.height = `${TITLE}px`;
    return element;
  }

  /** The section, the row and the caption of the current tile. */
  currentRow() {
    const section = this.sections[this.current.section];
    if (!section) return null;
    const row = section.first + this.current.at;
    const tile = this.tiles.get(this.tiles.keyOf(section, row));
    return { section, row, words: tile?.abouts[0].caption || `row ${row}` };
  }

  /** Make the tile current that a key leads to. @param {string} key */
  step(key) {
    const next = this.layout.step(this.current, key);
    if (!next) return false;
    this.current = next;
    const { y } = this.layout.spot(next.section, next.at);
    const bottom = y + this.size + CAPTION;
    const top = this.layout.topOf(this.element.scrollTop);
    if (y < top) this.element.scrollTop = this.layout.scrollOf(y - TITLE);
    else if (bottom > top + this.sight.height)
      this.element.scrollTop = this.layout.scrollOf(bottom + 8 - this.sight.height);
    this.sight.top = this.element.scrollTop;
    this.draw();
    this.ctx.announce(this.currentRow()?.words ?? "");
    return true;
  }

  /** Make the tile current that was clicked. @param {Event} event */
  pick(event) {
    /** @type {HTMLElement | null} */
    const tile = /** @type {Element} */ (event.target).closest(".lnb-wall-tile");
    if (!tile) return false;
    this.current = { section: Number(tile.dataset.section), at: Number(tile.dataset.at) };
    return true;
  }

  /**
   * Make the tiles larger or smaller; the current one stays where it is, if it is in sight.
   * @param {number} size in pixels, brought within `SIZES`; returns the new size
   */
  resize(size) {
    const before = this.size;
    this.size = Math.round(Math.min(SIZES[1], Math.max(SIZES[0], size)));
    if (this.size === before) return before;
    const { section, at } = this.current;
    const beside = this.layout.spot(section, at).y - this.layout.topOf(this.element.scrollTop);
    if (this.size > before) this.tiles.forget(); // small ones are not enough
    this.clear();
    this.layOut();
    if (beside >= 0 && beside < this.sight.height)
      this.element.scrollTop = this.layout.scrollOf(this.layout.spot(section, at).y - beside);
    this.measure();
    return this.size;
  }
}
