// The whole history in one narrow strip above the bars of the timeline: rows over versions, tags,
// branch points, A and B, and the window that the bars show now. The window is one slider.

import { onTheme, penOf, themeColours } from "../js/canvas.js";
import { consume, count, h, plural, setAttribute, setBox } from "../js/dom.js";
import { followPointer } from "../js/pointer_drag.js";
import { widget } from "../js/view.js";

const HEIGHT = 16;
const POINTS = 256; // versions of which the rows are asked for
const LEAST_PX = 10; // a narrower window could not be taken hold of
const ZOOM = 1.25;

/**
 * What is known of the versions of a branch.
 * @typedef {{points: Map<number, [rows: number | null, bytes: number | null]>, asked: boolean}}
 *   Outline
 */

class HistoryStrip {
  canvas = h("canvas", { "aria-hidden": "true" });
  pane = h(
    "div.lnb-hs-window",
    {
      role: "slider",
      tabindex: "0",
      "aria-label": "versions in sight",
      "aria-orientation": "horizontal",
      "aria-description": "Arrow keys move, plus and minus resize",
      on: { keydown: (event) => this.onKey(event) },
    },
    h("i.lnb-hs-edge", { "data-edge": "first" }),
    h("i.lnb-hs-edge", { "data-edge": "last" }),
  );
  strip = h(
    "div.lnb-hs",
    { on: { pointerdown: (event) => this.drag(event) } },
    this.canvas,
    this.pane,
  );
  /** @type {Map<string | null, Outline>} */
  outlines = new Map();
  width = 0;
  drawnKey = "";

  /**
   * @param {HTMLElement} el @param {Lnb.Context} ctx
   * @param {import("./history_strip_place.js").HistoryLink} link
   */
  constructor(el, ctx, link) {
    this.ctx = ctx;
    this.link = link;
    this.request = ctx.kernel.line({ quiet: true });
    el.append(this.strip);
    ctx.onClose(onTheme(() => this.redraw()));
    // Versions were written or cleaned up, and details came: what is asked for once is kept.
    ctx.onScreen(() => this.redraw(), ["timeline"]);
  }

  /** @param {Lnb.Lane} lane @returns {Outline} */
  outlineOf({ branch }) {
    const outline = this.outlines.get(branch) ?? { points: new Map(), asked: false };
    this.outlines.set(branch, outline);
    return outline;
  }

  /** Ask for the rows of versions all over the lane. @param {Lnb.Lane} lane */
  fetchOutline(lane) {
    const outline = this.outlineOf(lane);
    if (outline.asked || this.ctx.kernel.state === "static" || !lane.numbers.length) return;
    outline.asked = true;
    const { branch, numbers } = lane;
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      for (const [number, rows, bytes] of result.points) outline.points.set(number, [rows, bytes]);
      this.redraw();
      const remaining = result.left.slice(0, Math.max(0, result.most - outline.points.size));
      if (remaining.length && this.strip.isConnected) ask(remaining);
    };
    const failed = () => {}; // what is known of versions in sight is drawn without it
    /** @param {number[]} some */
    const ask = (some) => {
      const args = { branch, version: numbers.at(-1), numbers: some };
      this.request("versions.outline", args, done, failed);
    };
    ask(spread(numbers, POINTS));
  }

  /** The rows known of versions of a lane, oldest first. @param {Lnb.Lane} lane */
  rowsOf(lane) {
    /** @type {Map<number, number>} */
    const rows = new Map();
    for (const [version, [value]] of this.outlineOf(lane).points)
      if (value !== null) rows.set(version, value);
    for (const [version, facts] of lane.details)
      if (facts.rows !== null && facts.operation !== "Damaged") rows.set(version, facts.rows);
    return [...rows].sort(([left], [right]) => left - right);
  }

  /** @param {Lnb.LaneMap} map */
  draw(map) {
    const { width } = this;
    const colours = themeColours(this.strip, ["faint", "accent", "flag", "fork"]);
    const pen = penOf(this.canvas, width, HEIGHT);
    const scale = width / map.numbers.length;
    pen.clearRect(0, 0, width, HEIGHT);
    pen.fillStyle = colours.faint;
    pen.globalAlpha = 0.5;
    pen.fillRect(0, HEIGHT - 1, width, 1);
    this.drawRows(pen, map, scale);
    pen.globalAlpha = 1;
    /** @param {number} version @param {string} colour @param {number} top @param {number} tall */
    const mark = (version, colour, top, tall, thick = 1.5) => {
      pen.fillStyle = colour;
      pen.fillRect((map.indexOf(version) + 0.5) * scale - thick / 2, top, thick, tall);
    };
    for (const { fork } of map.lanes) if (fork) mark(fork[1], colours.fork, HEIGHT / 2, HEIGHT / 2);
    for (const { tags } of map.lanes)
      for (const tag of tags) mark(tag.version, colours.flag, 0, HEIGHT / 2);
    const { a, b } = this.ctx.range.get();
    if (a && this.ctx.range.pinned) mark(a.version, colours.accent, 0, HEIGHT, 2);
    if (b) mark(b.version, colours.accent, 0, HEIGHT, 2);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Lnb.LaneMap} map @param {number} scale */
  drawRows(pen, map, scale) {
    const lane = map.lanes[map.here.lane];
    const rows = this.rowsOf(lane);
    const most = rows.reduce((top, [, value]) => Math.max(top, value), 1);
    rows.forEach(([version, value], index) => {
      const next = rows[index + 1]?.[0] ?? lane.numbers[lane.numbers.length - 1] + 1;
      const [left, right] = [version, next].map((end) => Math.round(map.indexOf(end) * scale));
      const tall = (HEIGHT - 4) * (value / most);
      pen.fillRect(left, HEIGHT - tall, Math.max(1, right - left), tall);
    });
  }

  redraw() {
    this.drawnKey = "";
    this.paint();
  }

  /** Draw what changed, and put the window where the bars are. */
  paint() {
    const map = this.link.map();
    this.width = this.strip.clientWidth || this.width;
    if (!map?.numbers.length || !this.width) return;
    this.fetchOutline(map.lanes[map.here.lane]);
    const { range } = this.ctx;
    const { a, b } = range.get();
    const places = [a, b].map((place) => place && [place.branch, place.version]);
    const key = JSON.stringify([this.width, map.numbers.length, map.here, places, range.pinned]);
    if (key !== this.drawnKey) {
      this.drawnKey = key;
      this.draw(map);
    }
    this.placeWindow(map);
  }

  /** @param {Lnb.LaneMap} map */
  placeWindow({ numbers }) {
    const [first, end] = this.link.sight();
    const last = Math.min(end, numbers.length);
    const scale = this.width / numbers.length;
    const wide = Math.max(LEAST_PX, (last - first) * scale);
    const left = Math.max(0, Math.min(this.width - wide, ((first + last) / 2) * scale - wide / 2));
    this.pane.style.transform = `translateX(${left}px)`;
    setBox(this.pane, { width: wide });
    const newest = numbers[numbers.length - 1];
    const [low, high] = [first, last - 1].map(
      (index) => numbers[Math.max(0, Math.min(numbers.length - 1, Math.round(index)))],
    );
    const all = plural(numbers.length, "version");
    const label = `versions ${count(low)} to ${count(high)} of ${all}`;
    setAttribute(this.pane, "aria-valuemin", String(numbers[0]));
    setAttribute(this.pane, "aria-valuemax", String(newest));
    setAttribute(this.pane, "aria-valuenow", String(low));
    setAttribute(this.pane, "aria-valuetext", label);
    setAttribute(this.strip, "title", `${label}: drag the window, or its edges`);
  }

  /** @param {number} first */
  move(first) {
    const [low, high] = this.link.sight();
    const { width, slot } = this.link.map(); // behind the newest version there is room, too
    this.link.move(Math.max(0, Math.min(width / slot - (high - low), first)));
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const { link, pane, strip } = this;
    if (event.button || !link.map()?.numbers.length) return;
    event.preventDefault();
    pane.focus({ preventScroll: true });
    const box = strip.getBoundingClientRect();
    const placeOf = (/** @type {PointerEvent} */ pointer) =>
      ((pointer.clientX - box.left) / box.width) * link.map().numbers.length;
    const target = /** @type {HTMLElement} */ (event.target);
    const { edge } = target.dataset;
    let [first, last] = link.sight();
    const start = placeOf(event);
    if (!edge && !pane.contains(target)) {
      first = start - (last - first) / 2;
      this.move(first);
    }
    const follow = (/** @type {PointerEvent} */ pointer) => {
      const by = placeOf(pointer) - start;
      if (!edge) this.move(first + by);
      else if (edge === "first")
        link.resize(Math.max(0, Math.min(last - 1, first + by)), last, true);
      else link.resize(first, Math.max(first + 1, last + by), false);
    };
    followPointer(strip, event, { move: follow, end: () => {} });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.link.map()) return;
    const [first, last] = this.link.sight();
    const wide = last - first;
    const step = Math.max(1, wide / 10);
    /** @type {Record<string, number>} */
    const goals = {
      ArrowLeft: first - step,
      ArrowDown: first - step,
      ArrowRight: first + step,
      ArrowUp: first + step,
      PageUp: first - wide,
      PageDown: first + wide,
      Home: 0,
      End: this.link.map().numbers.length,
    };
    const factor = { "+": 1 / ZOOM, "=": 1 / ZOOM, "-": ZOOM }[event.key];
    if (goals[event.key] === undefined && !factor) return;
    consume(event);
    if (!factor) return this.move(goals[event.key]);
    const [middle, half] = [(first + last) / 2, (wide * factor) / 2];
    this.link.resize(Math.max(0, middle - half), middle + half, false);
  }
}

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./history_strip_place.js").HistoryLink} [link] of the timeline that it is of
 */
export function mountHistoryStrip(el, ctx, link) {
  return link ? new HistoryStrip(el, ctx, link) : null;
}

/**
 * Up to `most` of ascending numbers, evenly spread, the coarse steps first: those at the beginning
 * of the list cover all of it, too.
 * @param {number[]} numbers @param {number} most
 */
export function spread(numbers, most) {
  /** @type {Set<number>} */
  const shownNumbers = new Set([numbers[numbers.length - 1], numbers[0]]);
  for (let parts = 2; shownNumbers.size < Math.min(most, numbers.length); parts *= 2) {
    for (let part = 1; part < parts && shownNumbers.size < most; part += 2)
      shownNumbers.add(numbers[Math.round(((numbers.length - 1) * part) / parts)]);
    if (parts > 2 * numbers.length) break;
  }
  return [...shownNumbers];
}

export default widget(mountHistoryStrip, "the whole history of the dataset");
