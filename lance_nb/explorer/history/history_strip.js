// The whole history in one narrow strip above the bars of the timeline: rows over versions, tags,
// branch points, A and B, and the window that the bars show now. The window is one slider.

import { onTheme, penOf, themeColours } from "../js/canvas.js";
import { count, h, plural, setAttribute } from "../js/dom.js";
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

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./history_strip_place.js").HistoryLink} [timeline]
 */
export function mountHistoryStrip(el, ctx, timeline) {
  if (!timeline) return null;
  const link = timeline;
  const canvas = h("canvas", { "aria-hidden": "true" });
  const pane = h(
    "div",
    {
      class: "lnb-hs-window",
      role: "slider",
      tabindex: "0",
      "aria-label": "versions in sight",
      "aria-orientation": "horizontal",
      "aria-description": "Arrow keys move, plus and minus resize",
    },
    h("i", { class: "lnb-hs-edge", "data-edge": "first" }),
    h("i", { class: "lnb-hs-edge", "data-edge": "last" }),
  );
  const strip = h("div", { class: "lnb-hs" }, canvas, pane);
  el.append(strip);
  /** @type {Map<string | null, Outline>} */
  const outlines = new Map();
  const request = ctx.kernel.line({ quiet: true });
  let width = 0;
  let drawn = "";

  /** @param {Lnb.Lane} lane @returns {Outline} */
  function outlineOf(lane) {
    const outlineOfLane = outlines.get(lane.branch);
    if (outlineOfLane) return outlineOfLane;
    const outline = { points: new Map(), asked: false };
    outlines.set(lane.branch, outline);
    return outline;
  }

  /** Ask for the rows of versions all over the lane. @param {Lnb.Lane} lane */
  function fetchOutline(lane) {
    const outline = outlineOf(lane);
    if (outline.asked || ctx.kernel.state === "static" || !lane.numbers.length) return;
    outline.asked = true;
    const version = lane.numbers.at(-1);
    /** @param {number[]} numbers */
    const ask = (numbers) =>
      request(
        "versions.outline",
        { branch: lane.branch, version, numbers },
        ({ result }) => {
          for (const [number, rows, bytes] of result.points)
            outline.points.set(number, [rows, bytes]);
          drawn = "";
          paint();
          const remaining = result.left.slice(0, Math.max(0, result.most - outline.points.size));
          if (remaining.length && strip.isConnected) ask(remaining);
        },
        () => {}, // what is known of versions in sight is drawn without it
      );
    ask(spread(lane.numbers, POINTS));
  }

  /** The rows known of versions of a lane, oldest first. @param {Lnb.Lane} lane */
  function rowsOf(lane) {
    const { points } = outlineOf(lane);
    /** @type {Map<number, number>} */
    const rows = new Map();
    for (const [version, [value]] of points) if (value !== null) rows.set(version, value);
    for (const [version, facts] of lane.details)
      if (facts.rows !== null && facts.operation !== "Damaged") rows.set(version, facts.rows);
    return [...rows].sort(([left], [other]) => left - other);
  }

  /** @param {Lnb.LaneMap} map */
  function draw(map) {
    const lane = map.lanes[map.here.lane];
    const colours = themeColours(strip, ["faint", "accent", "flag", "fork"]);
    const pen = penOf(canvas, width, HEIGHT);
    const scale = width / map.numbers.length;
    pen.clearRect(0, 0, width, HEIGHT);
    pen.fillStyle = colours.faint;
    pen.globalAlpha = 0.5;
    pen.fillRect(0, HEIGHT - 1, width, 1);
    const rows = rowsOf(lane);
    const most = rows.reduce((top, [, value]) => Math.max(top, value), 1);
    rows.forEach(([version, value], index) => {
      const from = Math.round(map.indexOf(version) * scale);
      const next = rows[index + 1]?.[0] ?? lane.numbers[lane.numbers.length - 1] + 1;
      const tall = (HEIGHT - 4) * (value / most);
      pen.fillRect(
        from,
        HEIGHT - tall,
        Math.max(1, Math.round(map.indexOf(next) * scale) - from),
        tall,
      );
    });
    pen.globalAlpha = 1;
    /** @param {number} version @param {string} colour @param {number} top @param {number} tall */
    const mark = (version, colour, top, tall, thick = 1.5) => {
      pen.fillStyle = colour;
      pen.fillRect((map.indexOf(version) + 0.5) * scale - thick / 2, top, thick, tall);
    };
    for (const { fork } of map.lanes) if (fork) mark(fork[1], colours.fork, HEIGHT / 2, HEIGHT / 2);
    for (const { tags } of map.lanes)
      for (const tag of tags) mark(tag.version, colours.flag, 0, HEIGHT / 2);
    const { a, b } = ctx.range.get();
    if (a && ctx.range.pinned) mark(a.version, colours.accent, 0, HEIGHT, 2);
    if (b) mark(b.version, colours.accent, 0, HEIGHT, 2);
  }

  /** Draw what changed, and put the window where the bars are. */
  function paint() {
    const map = link.map();
    width = strip.clientWidth || width;
    if (!map?.numbers.length || !width) return;
    const lane = map.lanes[map.here.lane];
    fetchOutline(lane);
    const { a, b } = ctx.range.get();
    const places = [a, b].map((place) => place && [place.branch, place.version]);
    const key = JSON.stringify([width, map.numbers.length, map.here, places, ctx.range.pinned]);
    if (key !== drawn) {
      drawn = key;
      draw(map);
    }
    const [first, end] = link.sight();
    const last = Math.min(end, map.numbers.length);
    const scale = width / map.numbers.length;
    const wide = Math.max(LEAST_PX, (last - first) * scale);
    const from = Math.max(0, Math.min(width - wide, ((first + last) / 2) * scale - wide / 2));
    pane.style.transform = `translateX(${from}px)`;
    pane.style.width = `${wide}px`;
    const [low, high] = [first, last - 1].map((index) => numberAt(map, index));
    const all = plural(map.numbers.length, "version");
    const words = `versions ${count(low)} to ${count(high)} of ${all}`;
    setAttribute(pane, "aria-valuemin", String(map.numbers[0]));
    setAttribute(pane, "aria-valuemax", String(map.numbers[map.numbers.length - 1]));
    setAttribute(pane, "aria-valuenow", String(low));
    setAttribute(pane, "aria-valuetext", words);
    setAttribute(strip, "title", `${words}: drag the window, or its edges`);
  }

  /** @param {Lnb.LaneMap} map @param {number} index */
  function numberAt(map, index) {
    return map.numbers[Math.max(0, Math.min(map.numbers.length - 1, Math.round(index)))];
  }

  /** @param {number} first */
  function move(first) {
    const [low, high] = link.sight();
    const { width: whole, slot } = link.map(); // behind the newest version there is room, too
    link.move(Math.max(0, Math.min(whole / slot - (high - low), first)));
  }

  /** @param {PointerEvent} event */
  function drag(event) {
    const map = link.map();
    if (event.button || !map?.numbers.length) return;
    event.preventDefault();
    pane.focus({ preventScroll: true });
    const box = strip.getBoundingClientRect();
    /** @param {PointerEvent} pointer */
    const placeOf = (pointer) =>
      ((pointer.clientX - box.left) / box.width) * link.map().numbers.length;
    const target = /** @type {HTMLElement} */ (event.target);
    const { edge } = target.dataset;
    let [first, last] = link.sight();
    const start = placeOf(event);
    if (!edge && !pane.contains(target)) {
      first = start - (last - first) / 2;
      move(first);
    }
    /** @param {PointerEvent} pointer */
    const follow = (pointer) => {
      const by = placeOf(pointer) - start;
      if (!edge) move(first + by);
      else if (edge === "first")
        link.resize(Math.max(0, Math.min(last - 1, first + by)), last, true);
      else link.resize(first, Math.max(first + 1, last + by), false);
    };
    followPointer(strip, event, { move: follow, end: () => {} });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !link.map()) return;
    const [first, last] = link.sight();
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
      End: link.map().numbers.length,
    };
    const factor = { "+": 1 / ZOOM, "=": 1 / ZOOM, "-": ZOOM }[event.key];
    if (goals[event.key] === undefined && !factor) return;
    event.preventDefault();
    event.stopPropagation();
    if (!factor) return move(goals[event.key]);
    const middle = (first + last) / 2;
    return link.resize(
      Math.max(0, middle - (wide * factor) / 2),
      middle + (wide * factor) / 2,
      false,
    );
  }

  strip.addEventListener("pointerdown", drag);
  pane.addEventListener("keydown", onKey);
  const again = () => {
    drawn = "";
    paint();
  };
  ctx.onClose(onTheme(again));
  // Versions were written or cleaned up, and details came: what is asked for once is kept.
  ctx.onScreen(again, ["timeline"]);
  return { paint };
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
