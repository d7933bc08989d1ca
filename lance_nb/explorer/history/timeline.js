// The timeline: one bar per version, tags as flags, a lane per branch. Only bars in sight exist.

import {
  ageOf,
  atOnce,
  button,
  consume,
  count,
  h,
  perFrame,
  plural,
  setBox,
  setText,
  svg,
} from "../js/dom.js";
import { lookOfOperation, titleOfOperation } from "../js/operations.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { branchLabels } from "./branch_labels.js";
import { CheckMarks } from "./check_marks.js";
import { historyStripPlace } from "./history_strip_place.js";
import { barHeight, comparedWords, laneMap, rangeWords, rowWords, sentence } from "./lanes.js";
import { legendButton } from "./legend.js";
import { mergeEdges } from "./merge_edges.js";
import { playButton } from "./play.js";
import { rangeHandles } from "./range_handles.js";
import { tagFlags } from "./tag_flags.js";

const COUNT_MS = 400; // after a range was chosen
const OVERSCAN = 8;
const MAX_ASK = 64;
const BAR = { main: 46, branch: 32 };
const FLAG = 18;
const PATIENCE_MS = 1000;
const MAX_GAPS = 400;
const HANDLE = 48; // pixels of the handle beside the version shown
let instances = 0;

/** @typedef {{lane: Lnb.Lane, version: number}} Bar */

class Timeline {
  uid = `lnb-tl${(instances += 1)}`;
  merges = svg("svg.lnb-tl-edges", { "aria-hidden": "true" });
  plane = h("div.lnb-tl-plane", {
    role: "listbox",
    tabindex: "0",
    "aria-orientation": "horizontal",
    "aria-label": "versions",
  });
  scroller = h("div.lnb-tl-scroll");
  readout = h("div.lnb-tl-readout");
  /** @type {Map<string, Lnb.Recycled>} */
  bars = new Map();
  /** @type {Map<number, Lnb.Queue>} */
  lines = new Map();
  // What paints runs with a map only; before the first screen there is none.
  map = /** @type {Lnb.LaneMap} */ (/** @type {unknown} */ (null));
  /** @type {Bar | null} */
  hovered = null;
  isDragging = false;
  dropHint = "";
  axisKey = "";
  isWhole = false; // empty branches have lanes, too
  /** @type {(Lnb.Spot & {at: number}) | null} where the last key led */
  goal = null;
  // The last width that was not nothing: a notebook may take a view away for the length of a frame.
  room = 0;
  // How far the bars are scrolled: asking the page after something was written lays it out anew.
  left = 0;
  slot = 0; // the pixels of one version that were chosen in the strip above, 0: automatic
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  comparing = undefined;

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.counting = ctx.kernel.line({ quiet: true });
    this.paint = perFrame(() => this.map && this.room && this.paintNow());
    const map = () => this.map;
    const repaint = () => this.map && this.paint();
    this.handles = rangeHandles(ctx, this.scroller, map);
    this.rail = this.handles.element;
    this.scroller.append(h("div.lnb-tl-track", this.plane, this.rail));
    this.labels = branchLabels(ctx, {
      map,
      go: (lane) => lane.numbers.length && this.go(lane, lane.numbers[lane.numbers.length - 1]),
      hint: (words) => {
        this.dropHint = words;
        this.paintReadout();
      },
    });
    /** @type {Lnb.RetentionMarks} */
    this.retention = { goes: () => false, words: () => "", hovered() {}, repaint };
    ctx.shared.retention = this.retention;
    this.checks = new CheckMarks(ctx, map, repaint);
    this.strip = historyStripPlace(ctx, {
      map,
      sight: () => [this.left / this.map.slot, (this.left + this.room) / this.map.slot],
      move: (first) => {
        this.scroller.scrollLeft = first * this.map.slot;
      },
      resize: (first, last, keepsLast) => this.resize(first, last, keepsLast),
      layout: () => this.layout(false),
    });
    const column = h("div.lnb-tl-column", this.strip.element, this.scroller);
    this.frame = h("div.lnb-tl-frame", this.labels.element, column);
    const bottom = h(
      "div.lnb-tl-bottom",
      playButton(ctx, map, this.plane),
      this.readout,
      this.checks.element,
      legendButton(ctx),
    );
    el.append(h("div.lnb-timeline", this.frame, bottom));
    this.listen();
    this.follow();
  }

  /** React to pointer and keys. */
  listen() {
    this.plane.addEventListener("click", (event) => this.onClick(event));
    this.plane.addEventListener("keydown", (event) => this.onKey(event));
    this.plane.addEventListener("pointerover", (event) => this.hover(barOf(event)));
    this.plane.addEventListener("pointerleave", () => this.hover(null));
    const onScroll = () => {
      this.left = this.scroller.scrollLeft;
      this.paint();
    };
    this.scroller.addEventListener("scroll", onScroll, { passive: true });
  }

  /** Repaint when the room, the kernel, the range or the screen is another. */
  follow() {
    const { ctx } = this;
    const observer = new ResizeObserver(() => this.map && atOnce(() => this.layout(true)));
    observer.observe(this.scroller);
    ctx.onClose(ctx.kernel.onState(this.paint));
    ctx.onClose(() => {
      observer.disconnect();
      this.paint.cancel();
      clearTimeout(this.comparing);
    });
    ctx.onClose(
      ctx.range.on((range, { dragging }) => {
        this.isDragging = dragging;
        clearTimeout(this.comparing);
        // The tab of changes counts at once where it is open.
        if (!dragging) this.comparing = setTimeout(() => this.compare(range), COUNT_MS);
        this.paint();
      }),
    );
    ctx.onClose(ctx.range.onCompared(this.paint));
    ctx.onScreen((screen, patched) => this.show(screen, patched), ["timeline"]);
  }

  /** @param {Lnb.Screen} screen @param {boolean} patched */
  show({ timeline, branch, version }, patched) {
    if (!timeline || timeline.error) return;
    const { isWhole } = this;
    this.map = laneMap(timeline, branch, version, this.map, { bar: BAR, flag: FLAG, isWhole });
    for (const bar of this.bars.values()) bar.remove();
    this.bars.clear();
    this.hovered = null;
    this.layout(!patched);
  }

  paintNow() {
    const { map } = this;
    const [first, last] = map.visible(this.left, this.room, OVERSCAN);
    const keysInSight = new Set();
    for (const lane of map.lanes) {
      const missing = [];
      const inSight = map.numbersBetween(lane, first, last);
      if (lane.index === map.here.lane) this.checks.seen(inSight);
      for (const version of inSight) {
        keysInSight.add(`${lane.index}:${version}`);
        this.paintBar(lane, version);
        if (!lane.details.has(version) && !lane.asked.has(version)) missing.push(version);
      }
      if (missing.length) this.fetchDetails(lane, missing);
    }
    for (const [key, bar] of this.bars) {
      if (keysInSight.has(key)) continue;
      bar.remove();
      this.bars.delete(key);
    }
    this.paintAxis(first, last);
    this.handles.paint();
    this.strip.paint();
    const { lane, version } = map.here;
    this.plane.setAttribute("aria-activedescendant", `${this.uid}-${lane}-${version}`);
    this.paintReadout();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const bar = barOf(event);
    if (!bar) return;
    const { lane, version } = bar;
    if (event.shiftKey) {
      // From where we stand to there: A stays behind.
      this.ctx.range.set({ a: this.ctx.range.get().b });
      this.ctx.go("changes");
    }
    this.go(lane, version);
    if (!event.shiftKey) this.checks.clicked(lane.branch, version);
  }

  /** @param {Bar | null} bar */
  hover(bar) {
    this.hovered = bar;
    if (bar) this.retention.hovered(bar.lane.branch, bar.version);
    if (this.map) this.paintReadout();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { map, goal } = this;
    if (event.altKey || event.ctrlKey || event.metaKey || !map) return;
    if (event.key === "[" || event.key === "]") {
      if (this.handles.step("a", event.key === "[" ? "ArrowLeft" : "ArrowRight")) consume(event);
      return;
    }
    // Keys may come faster than answers: the next step starts where the last key led.
    const from = goal && performance.now() - goal.at < PATIENCE_MS ? goal : map.here;
    const target = map.step(event.key, from);
    if (!target) return;
    consume(event);
    this.goal = { ...target, at: performance.now() };
    this.go(map.lanes[target.lane], target.version);
  }

  /** @param {Lnb.Lane} lane @param {number} version */
  paintBar(lane, version) {
    const key = `${lane.index}:${version}`;
    let bar = this.bars.get(key);
    if (!bar) {
      bar = h(
        "div.lnb-tl-bar",
        { role: "option", id: `${this.uid}-${lane.index}-${version}` },
        h("i", ""),
        h("b"),
      );
      bar.lnb = { lane, version };
      this.bars.set(key, bar);
      this.plane.append(bar);
    }
    const facts = lane.details.get(version);
    const { family, glyph } = lookOfOperation(facts?.operation ?? "");
    const tall = lane.index ? BAR.branch : BAR.main;
    const isCurrent = lane.index === this.map.here.lane && version === this.map.here.version;
    const height = barHeight(facts, tall, this.map.mostRows);
    const look = `lnb-op-${facts ? family : "unknown"}`;
    bar.className = `lnb-tl-bar ${look}`;
    bar.classList.toggle("lnb-here", isCurrent);
    bar.classList.toggle("lnb-thin", lane.index > 0);
    bar.classList.toggle("lnb-tl-goes", this.retention.goes(lane.branch, version));
    bar.setAttribute("aria-selected", String(isCurrent));
    const checked = this.checks.words(lane.branch, version);
    const label = sentence(lane, version, facts);
    bar.setAttribute("aria-label", checked ? `${label}, ${checked}` : label);
    const mark = this.checks.status(lane.branch, version);
    if (mark) bar.setAttribute("data-check", mark);
    else bar.removeAttribute("data-check");
    setBox(bar, {
      left: this.map.x(version),
      top: lane.top + lane.head,
      width: this.map.slot,
      height: lane.height - lane.head,
    });
    setBox(/** @type {HTMLElement} */ (bar.lastElementChild), { height });
    setText(/** @type {Element} */ (bar.firstElementChild), glyph);
  }

  /** @param {number} first @param {number} last */
  paintAxis(first, last) {
    const every = Math.max(1, Math.ceil(40 / this.map.slot));
    const { a, b } = this.ctx.range.get();
    const taken = [a, b].flatMap((place) => (place ? [this.map.indexOf(place.version)] : []));
    const apart = 35 + 11 * String(this.map.numbers.at(-1)).length; // a handle and half a number
    const key = `${first}:${last}:${this.map.slot}:${taken}:${this.map.numbers.length}`;
    if (key === this.axisKey) return;
    this.axisKey = key;
    for (const old of this.plane.querySelectorAll(".lnb-tl-number")) old.remove();
    for (let index = first; index <= last; index += 1) {
      if (index % every || taken.some((slot) => Math.abs(index - slot) * this.map.slot < apart))
        continue;
      const look = { class: "lnb-tl-number", "aria-hidden": "true" };
      const label = h("span", look, String(this.map.numbers[index]));
      setBox(label, { left: (index + 0.5) * this.map.slot });
      this.plane.append(label);
    }
  }

  /**
   * Lane names, flags and fork edges: drawn once per screen, they do not depend on scrolling.
   * @param {number} wide
   */
  paintFixed(wide) {
    const { map } = this;
    const longest = Math.max(...map.lanes.map((lane) => lane.label.length));
    const least = map.empty ? 118 : 48; // "2 more branches"
    this.labels.paint(Math.max(least, Math.min(wide / 5, longest * 7.2 + 16)), forkWords);
    for (const old of this.scroller.querySelectorAll(".lnb-tl-flag, .lnb-tl-edges, .lnb-tl-gap"))
      old.remove();
    const edges = svg("svg.lnb-tl-edges", { "aria-hidden": "true" });
    for (const layer of [edges, this.merges]) setBox(layer, map);
    for (const lane of map.lanes) {
      edges.append(...laneEdges(lane, map));
      const flags = tagFlags(lane, (version) => this.go(lane, version));
      this.rail.append(...flags, ...gapsOf(lane, map));
    }
    if (map.hidden || map.older || map.empty) this.labels.element.append(this.notShown());
    this.plane.prepend(edges, this.merges);
    this.merges.replaceChildren(...mergeEdges(map));
  }

  /** @param {Lnb.Lane} lane @param {number[]} missing */
  fetchDetails(lane, missing) {
    if (this.ctx.kernel.state === "static") return;
    const line = this.lines.get(lane.index) ?? this.ctx.kernel.line();
    this.lines.set(lane.index, line);
    const numbers = missing.slice(-MAX_ASK);
    const { asked, branch } = lane;
    const markAsked = () => numbers.forEach((number) => asked.add(number));
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      markAsked();
      for (const facts of result.details) lane.details.set(facts.version, facts);
      this.map.measure();
      this.merges.replaceChildren(...mergeEdges(this.map));
      this.paint();
    };
    line("versions", { branch, version: lane.numbers.at(-1), numbers }, done, markAsked);
  }

  /** A line below the names of the lanes for what has no lane and no bar. */
  notShown() {
    const { hidden, empty, older, height } = this.map;
    const number = hidden + (this.isWhole ? 0 : empty);
    const words = [
      number && branches(number).replace(" ", " more "),
      !number && empty && "fewer branches",
      older && `${count(older)} older`,
    ];
    const toggle = () => {
      this.isWhole = !this.isWhole;
      this.show(this.ctx.screen(), true);
    };
    const title = [
      empty && `${branches(empty)} without a version of their own`,
      (hidden || older) && `not shown: ${branches(hidden)}, ${plural(older, "older version")}`,
    ];
    const line = h(
      empty ? "button.lnb-tl-name.lnb-link" : "div.lnb-tl-name.lnb-faint",
      {
        title: title.filter(Boolean).join("; "),
        type: empty ? "button" : null,
        on: { click: empty ? toggle : () => {} },
      },
      words.filter(Boolean).join(" · "),
    );
    setBox(line, { top: height - 19 });
    return line;
  }

  paintReadout() {
    if (this.dropHint) return this.readout.replaceChildren(h("strong", this.dropHint));
    const { a, b } = this.ctx.range.get();
    if (!this.hovered && a && (this.isDragging || this.ctx.range.pinned))
      return this.paintRange(a, b);
    const { here, lanes } = this.map;
    const { lane, version } = this.hovered ?? { lane: lanes[here.lane], version: here.version };
    const facts = lane?.details.get(version);
    const branch = lane?.branch ?? null;
    const words = [
      facts && titleOfOperation(facts.operation),
      facts?.merge?.words,
      facts && rowWords(facts),
      this.checks.words(branch, version),
      facts?.message && `“${facts.message}”`, // it may be long
      this.retention.words(branch, version),
    ];
    const when = facts?.time_ms ? [`${facts.time} · `, ageOf(facts.time_ms)] : "";
    return this.readout.replaceChildren(
      h("strong", `${lane?.label ?? "main"}:${version}`),
      h("span", words.filter(Boolean).join(" · ")),
      h("time", when),
    );
  }

  /**
   * What happened between the handles, from what is known of the versions there.
   * @param {Lnb.Place} a @param {Lnb.Place} b
   */
  paintRange(a, b) {
    const lane = this.map.lanes.find(({ branch }) => (branch ?? null) === (b.branch ?? null));
    const compared = this.ctx.range.compared(a, b);
    let words = `on different branches${compared ? ` · ${comparedWords(compared)}` : ""}`;
    if (samePlace(a, b)) words = "the same version";
    else if (lane && (a.branch ?? null) === (b.branch ?? null)) {
      const [from, to] = [Math.min(a.version, b.version), Math.max(a.version, b.version)];
      words = rangeWords(this.map.changed(lane, from, to), a.version > b.version, compared);
    }
    const reset = button("Unpin A", () => this.ctx.range.set({ a: null }), {
      class: "lnb-button lnb-tl-reset",
      title: "A follows B again",
    });
    this.readout.replaceChildren(
      h("strong", `${placeLabel(a)} → ${placeLabel(b)}`),
      h("span", words),
      this.isDragging ? "" : reset,
    );
  }

  /** @param {Lnb.Lane} lane @param {number} version */
  go(lane, version) {
    this.ctx.announce(sentence(lane, version, lane.details.get(version)));
    this.ctx.travel({ branch: lane.branch, version });
  }

  /** @param {boolean} follow */
  layout(follow) {
    this.room = this.scroller.clientWidth || this.room;
    this.left = this.scroller.scrollLeft;
    const wide = this.frame.clientWidth;
    this.map.fit(this.room, this.slot);
    this.plane.classList.toggle("lnb-tl-narrow", this.map.slot < 12);
    this.frame.classList.toggle("lnb-tl-with-strip", this.strip.offered(this.map.numbers.length));
    const { width, height } = this.map;
    setBox(this.rail, { width });
    setBox(this.plane, { width, height });
    setBox(this.labels.element, { height });
    this.axisKey = "";
    this.paintFixed(wide);
    if (follow) this.reveal();
    this.paint();
  }

  /**
   * Show the versions from one place of the axis to another, as far as bars can be that wide.
   * @param {number} first @param {number} last @param {boolean} keepsLast which of them stays
   */
  resize(first, last, keepsLast) {
    this.slot = this.room / Math.max(1, last - first);
    this.layout(false);
    this.slot = this.map.slot;
    this.scroller.scrollLeft = (keepsLast ? last - this.room / this.slot : first) * this.slot;
    this.left = this.scroller.scrollLeft;
  }

  reveal() {
    const x = this.map.x(this.map.here.version);
    if (x >= this.left && x + this.map.slot + HANDLE <= this.left + this.room) return;
    this.left = Math.max(0, Math.min(this.map.width - this.room, x - this.room * 0.72));
    this.scroller.scrollLeft = this.left;
  }

  /**
   * Count what differs between two versions, as the tab of changes does: what single versions
   * changed does not add up to that where rows came and went.
   * @param {Lnb.Range} range
   */
  compare({ a, b }) {
    const { kernel, range } = this.ctx;
    if (!a || !range.pinned || samePlace(a, b) || range.compared(a, b)) return;
    if (kernel.state !== "live" || !this.ctx.has?.("changes")) return;
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      const rows = result.chips.find((/** @type {Lnb.Json} */ chip) => chip.id === "rows");
      if (rows && !range.compared(a, b)) range.compare(a, b, rows);
    };
    const failed = () => {}; // the sum of the versions between stays
    this.counting("changes.counts", { a, b, key: null }, done, failed);
  }
}

/** @param {Event} event @returns {Bar | null} */
function barOf(event) {
  /** @type {Lnb.Recycled | null} */
  const bar = /** @type {Element} */ (event.target).closest(".lnb-tl-bar");
  return bar?.lnb ?? null;
}

/** @param {Lnb.Lane} lane */
function forkWords({ label, fork }) {
  return fork ? `${label}: forked from ${fork[0] ?? "main"}:${fork[1]}` : label;
}

/**
 * The line under a lane, and the one that leads to it.
 * @param {Lnb.Lane} lane @param {Lnb.LaneMap} map
 */
function laneEdges({ numbers, fork, top, height }, map) {
  const base = top + height - 0.5;
  const edges = [];
  if (numbers.length) {
    const [first, last] = [map.x(numbers[0]), map.x(numbers[numbers.length - 1])];
    const d = `M${first} ${base}H${last + map.slot}`;
    edges.push(svg("path.lnb-tl-base", { d }));
  }
  const parent = fork && map.lanes.find(({ branch }) => branch === fork[0]);
  if (fork && parent) {
    const x = map.x(fork[1]) + 1.5;
    const d = `M${x} ${parent.top + parent.height}V${base - 5}Q${x} ${base} ${x + 5} ${base}`;
    edges.push(svg("path.lnb-tl-fork", { d }));
  }
  return edges;
}

/**
 * What was cleaned up is hatched: nothing stands there any more.
 * @param {Lnb.Lane} lane @param {Lnb.LaneMap} map
 */
function gapsOf(lane, map) {
  const { top, head, height } = lane;
  return map.gaps(lane, MAX_GAPS).map(([left, width, title]) => {
    const gap = h("div.lnb-tl-gap", { title });
    setBox(gap, { left, top: top + head, width, height: height - head });
    return gap;
  });
}

/** @param {number} number */
const branches = (number) => (number === 1 ? "1 branch" : `${count(number)} branches`);

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountTimeline(el, ctx) {
  new Timeline(el, ctx);
}

export default widget(mountTimeline, "versions of the dataset");
