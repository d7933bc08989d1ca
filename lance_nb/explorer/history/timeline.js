// The timeline: one bar per version, tags as flags, a lane per branch. Only bars in sight exist.

import { ageOf, atOnce, count, h, perFrame, plural, setText, svg } from "../js/dom.js";
import { lookOfOperation } from "../js/operations.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { retentionButton } from "../retention/retention_button.js";
import { branchLabels } from "./branch_labels.js";
import { checkMarks } from "./check_marks.js";
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
let instances = 0;

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountTimeline(el, ctx) {
  const uid = `lnb-tl${(instances += 1)}`;
  const merges = svg("svg", { class: "lnb-tl-edges", "aria-hidden": "true" });
  const plane = h("div", {
    class: "lnb-tl-plane",
    role: "listbox",
    tabindex: "0",
    "aria-orientation": "horizontal",
    "aria-label": "versions",
  });
  const scroller = h("div", { class: "lnb-tl-scroll" });
  const readout = h("div", { class: "lnb-tl-readout" });
  const handles = rangeHandles(ctx, scroller, () => map);
  const rail = handles.element;
  scroller.append(h("div", { class: "lnb-tl-track" }, plane, rail));
  const labels = branchLabels(ctx, {
    map: () => map,
    go: (lane) => lane.numbers.length && go(lane, lane.numbers[lane.numbers.length - 1]),
    hint: (words) => {
      dropping = words;
      paintReadout();
    },
  });
  const names = labels.element;
  const retention = retentionButton(ctx, () => map && paint());
  const checks = checkMarks(
    ctx,
    () => map,
    () => map && paint(),
  );
  const bottom = h(
    "div",
    { class: "lnb-tl-bottom" },
    playButton(ctx, () => map, plane),
    readout,
    checks.element,
    retention.button,
    legendButton(ctx),
  );
  const strip = historyStripPlace(ctx, {
    map: () => map,
    sight: () => [left / map.slot, (left + room) / map.slot],
    move: (first) => {
      scroller.scrollLeft = first * map.slot;
    },
    resize,
    layout: () => layout(false),
  });
  const column = h("div", { class: "lnb-tl-column" }, strip.element, scroller);
  const frame = h("div", { class: "lnb-tl-frame" }, names, column);
  el.append(h("div", { class: "lnb-timeline" }, frame, bottom, retention.panel));

  /** @typedef {{lane: Lnb.Lane, version: number}} Bar */
  /** @type {Map<string, Lnb.Recycled>} */
  const bars = new Map();
  /** @type {Map<number, Lnb.Queue>} */
  const lines = new Map();
  // What paints runs with a map only; before the first screen there is none.
  let map = /** @type {Lnb.LaneMap} */ (/** @type {unknown} */ (null));
  /** @type {Bar | null} */
  let hovered = null;
  let moving = false;
  let dropping = "";
  let shown = "";
  /** @type {(Lnb.Spot & {at: number}) | null} where the last key led */
  let goal = null;
  // The last width that was not nothing: a notebook may take a view away for the length of a frame.
  let room = 0;
  // How far the bars are scrolled: asking the page after something was written lays it out anew.
  let left = 0;
  let slot = 0; // the pixels of one version that were chosen in the strip above, 0: automatic

  const paint = perFrame(() => {
    if (!map || !room) return;
    const [first, last] = map.visible(left, room, OVERSCAN);
    const wantedNumbers = new Set();
    for (const lane of map.lanes) {
      const missing = [];
      const inSight = map.numbersBetween(lane, first, last);
      if (lane.index === map.here.lane) checks.seen(inSight);
      for (const version of inSight) {
        wantedNumbers.add(`${lane.index}:${version}`);
        paintBar(lane, version);
        if (!lane.details.has(version) && !lane.asked.has(version)) missing.push(version);
      }
      if (missing.length) fetchDetails(lane, missing);
    }
    for (const [key, bar] of bars) {
      if (!wantedNumbers.has(key)) {
        bar.remove();
        bars.delete(key);
      }
    }
    paintAxis(first, last);
    handles.paint();
    strip.paint();
    plane.setAttribute("aria-activedescendant", `${uid}-${map.here.lane}-${map.here.version}`);
    paintReadout();
  });

  /** @param {Lnb.Lane} lane @param {number} version */
  function paintBar(lane, version) {
    const key = `${lane.index}:${version}`;
    let bar = bars.get(key);
    if (!bar) {
      bar = h(
        "div",
        { class: "lnb-tl-bar", role: "option", id: `${uid}-${lane.index}-${version}` },
        h("i", {}, ""),
        h("b"),
      );
      bar.lnb = { lane, version };
      bars.set(key, bar);
      plane.append(bar);
    }
    const facts = lane.details.get(version);
    const { family, glyph } = lookOfOperation(facts?.operation ?? "");
    const tall = lane.index ? BAR.branch : BAR.main;
    const isCurrent = lane.index === map.here.lane && version === map.here.version;
    const height = barHeight(facts, tall, map.mostRows);
    const look = `lnb-op-${facts ? family : "unknown"}`;
    const faded = retention.goes(lane.branch, version) ? " lnb-tl-goes" : "";
    const marks = `${isCurrent ? " lnb-here" : ""}${lane.index ? " lnb-thin" : ""}${faded}`;
    bar.className = `lnb-tl-bar ${look}${marks}`;
    bar.setAttribute("aria-selected", String(isCurrent));
    const checkWords = checks.words(lane.branch, version);
    bar.setAttribute(
      "aria-label",
      sentence(lane, version, facts) + (checkWords && `, ${checkWords}`),
    );
    const mark = checks.status(lane.branch, version);
    if (mark) bar.setAttribute("data-check", mark);
    else bar.removeAttribute("data-check");
    bar.style.left = `${map.x(version)}px`;
    bar.style.width = `${map.slot}px`;
    bar.style.top = `${lane.top}px`;
    bar.style.height = `${lane.height}px`;
    /** @type {HTMLElement} */ (bar.lastElementChild).style.height = `${height}px`;
    setText(/** @type {Element} */ (bar.firstElementChild), glyph);
  }

  /** @param {number} first @param {number} last */
  function paintAxis(first, last) {
    const every = Math.max(1, Math.ceil(40 / map.slot));
    const { a, b } = ctx.range.get();
    const taken = [a, b].flatMap((place) => (place ? [map.indexOf(place.version)] : []));
    const key = `${first}:${last}:${map.slot}:${taken}:${map.numbers.length}`;
    if (key === shown) return;
    shown = key;
    for (const old of plane.querySelectorAll(".lnb-tl-number")) old.remove();
    for (let index = first; index <= last; index += 1) {
      if (index % every || taken.some((slot) => Math.abs(index - slot) * map.slot < 46)) continue;
      const label = h(
        "span",
        { class: "lnb-tl-number", "aria-hidden": "true" },
        String(map.numbers[index]),
      );
      label.style.left = `${(index + 0.5) * map.slot}px`;
      plane.append(label);
    }
  }

  /**
   * Lane names, flags and fork edges: drawn once per screen, they do not depend on scrolling.
   * @param {number} wide
   */
  function paintFixed(wide) {
    const longest = Math.max(...map.lanes.map((lane) => lane.label.length));
    labels.paint(Math.max(48, Math.min(wide / 5, longest * 7.2 + 16)), forkWords);
    for (const old of scroller.querySelectorAll(".lnb-tl-flag, .lnb-tl-edges, .lnb-tl-gap"))
      old.remove();
    const edges = svg("svg", { class: "lnb-tl-edges", "aria-hidden": "true" });
    for (const layer of [edges, merges]) {
      layer.style.width = `${map.width}px`;
      layer.style.height = `${map.height}px`;
    }
    for (const lane of map.lanes) {
      const base = lane.top + lane.height - 0.5;
      if (lane.numbers.length) {
        const from = map.x(lane.numbers[0]);
        edges.append(
          svg("path", {
            class: "lnb-tl-base",
            d: `M${from} ${base}H${map.x(lane.numbers[lane.numbers.length - 1]) + map.slot}`,
          }),
        );
      }
      const { fork } = lane;
      const parent = fork && map.lanes.find((other) => other.branch === fork[0]);
      if (fork && parent) {
        const x = map.x(fork[1]) + 1.5;
        edges.append(
          svg("path", {
            class: "lnb-tl-fork",
            d: `M${x} ${parent.top + parent.height}V${base - 5}Q${x} ${base} ${x + 5} ${base}`,
          }),
        );
      }
      rail.append(
        ...tagFlags(
          lane,
          (version) => map.x(version) + map.slot / 2,
          map.width,
          (version) => go(lane, version),
        ),
      );
      paintGaps(lane);
    }
    if (map.hidden || map.older) {
      const words = [
        map.hidden && `+ ${map.hidden} more`,
        map.older && `${count(map.older)} older`,
      ];
      const branches = plural(map.hidden, "branch").replace(/hs$/, "hes");
      const title = `not shown: ${branches}, ${plural(map.older, "older version")}`;
      const more = h(
        "div",
        { class: "lnb-tl-name lnb-faint", title },
        words.filter(Boolean).join(" · "),
      );
      more.style.top = `${map.height - 19}px`;
      names.append(more);
    }
    plane.prepend(edges, merges);
    merges.replaceChildren(...mergeEdges(map));
  }

  /** What was cleaned up is hatched: nothing stands there any more. @param {Lnb.Lane} lane  */
  function paintGaps(lane) {
    for (const [left, width, words] of map.gaps(lane, MAX_GAPS)) {
      const gap = h("div", { class: "lnb-tl-gap", title: words });
      gap.style.left = `${left}px`;
      gap.style.width = `${width}px`;
      gap.style.top = `${lane.top + (lane.tags.length ? FLAG : 4)}px`;
      gap.style.height = `${lane.height - (lane.tags.length ? FLAG : 4)}px`;
      rail.append(gap);
    }
  }

  /** @param {Lnb.Lane} lane  */
  function forkWords(lane) {
    return lane.fork
      ? `${lane.label}: forked from ${lane.fork[0] ?? "main"}:${lane.fork[1]}`
      : lane.label;
  }

  /** @param {Lnb.Lane} lane @param {number[]} missing */
  function fetchDetails(lane, missing) {
    if (ctx.kernel.state === "static") return;
    const line = lines.get(lane.index) ?? ctx.kernel.line();
    lines.set(lane.index, line);
    const numbers = missing.slice(-MAX_ASK);
    const askedNumbers = lane.asked;
    line(
      "versions",
      { branch: lane.branch, version: lane.numbers.at(-1), numbers },
      ({ result }) => {
        numbers.forEach((number) => askedNumbers.add(number));
        for (const facts of result.details) lane.details.set(facts.version, facts);
        map.measure();
        merges.replaceChildren(...mergeEdges(map));
        paint();
      },
      () => numbers.forEach((number) => askedNumbers.add(number)),
    );
  }

  function paintReadout() {
    if (dropping) return readout.replaceChildren(h("strong", {}, dropping));
    const { a, b } = ctx.range.get();
    if (!hovered && a && (moving || ctx.range.pinned)) return paintRange(a, b);
    const { lane, version } = hovered ?? {
      lane: map.lanes[map.here.lane],
      version: map.here.version,
    };
    const facts = lane?.details.get(version);
    const words = facts
      ? [
          facts.operation || "operation not recorded",
          facts.merge?.words,
          rowWords(facts),
          facts.message && `“${facts.message}”`,
        ]
      : [];
    words.push(retention.words(lane?.branch ?? null, version));
    // Before the message, which may be long.
    words.splice(3, 0, checks.words(lane?.branch ?? null, version));
    const when = facts?.time_ms ? [`${facts.time} · `, ageOf(facts.time_ms)] : "";
    return readout.replaceChildren(
      h("strong", {}, `${lane?.label ?? "main"}:${version}`),
      h("span", {}, words.filter(Boolean).join(" · ")),
      h("time", {}, when),
    );
  }

  /**
   * What happened between the handles, from what is known of the versions there.
   * @param {Lnb.Place} a @param {Lnb.Place} b
   */
  function paintRange(a, b) {
    const lane = map.lanes.find((lane_) => (lane_.branch ?? null) === (b.branch ?? null));
    const same = lane && (a.branch ?? null) === (b.branch ?? null);
    const compared = ctx.range.compared(a, b);
    let words = "the same version";
    if (!samePlace(a, b))
      words = `on different branches${compared ? ` · ${comparedWords(compared)}` : ""}`;
    if (same && !samePlace(a, b)) {
      const [from, to] = [Math.min(a.version, b.version), Math.max(a.version, b.version)];
      words = rangeWords(map.changed(lane, from, to), a.version > b.version, compared);
    }
    const reset = h(
      "button",
      {
        class: "lnb-button lnb-tl-reset",
        type: "button",
        title: "A follows B again",
        on: { click: () => ctx.range.set({ a: null }) },
      },
      "Unpin A",
    );
    readout.replaceChildren(
      h("strong", {}, `${placeLabel(a)} → ${placeLabel(b)}`),
      h("span", {}, words),
      moving ? "" : reset,
    );
  }

  /** @param {Lnb.Lane} lane @param {number} version */
  function go(lane, version) {
    ctx.announce(sentence(lane, version, lane.details.get(version)));
    ctx.travel({ branch: lane.branch, version });
  }

  /** @param {Event} event @returns {Bar | null} */
  function barOf(event) {
    /** @type {Lnb.Recycled | null} */
    const bar = /** @type {Element} */ (event.target).closest(".lnb-tl-bar");
    return bar?.lnb ?? null;
  }

  plane.addEventListener("click", (event) => {
    const bar = barOf(event);
    if (!bar) return;
    const { lane, version } = bar;
    if (event.shiftKey) {
      // From where we stand to there: A stays behind.
      ctx.range.set({ a: ctx.range.get().b });
      ctx.go("changes");
    }
    go(lane, version);
    if (!event.shiftKey) checks.clicked(lane.branch, version);
  });
  plane.addEventListener("pointerover", (event) => {
    hovered = barOf(event);
    if (hovered) retention.hovered(hovered.lane.branch, hovered.version);
    if (map) paintReadout();
  });
  plane.addEventListener("pointerleave", () => {
    hovered = null;
    if (map) paintReadout();
  });
  plane.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !map) return;
    // Keys may come faster than answers: the next step starts where the last key led.
    if (event.key === "[" || event.key === "]") {
      if (!handles.step("a", event.key === "[" ? "ArrowLeft" : "ArrowRight")) return;
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const from = goal && performance.now() - goal.at < PATIENCE_MS ? goal : map.here;
    const target = map.step(event.key, from);
    if (!target) return;
    event.preventDefault();
    event.stopPropagation();
    goal = { ...target, at: performance.now() };
    go(map.lanes[target.lane], target.version);
  });
  scroller.addEventListener(
    "scroll",
    () => {
      left = scroller.scrollLeft;
      paint();
    },
    { passive: true },
  );

  /** @param {boolean} follow */
  function layout(follow) {
    room = scroller.clientWidth || room;
    left = scroller.scrollLeft;
    const wide = frame.clientWidth;
    map.fit(room, slot);
    plane.classList.toggle("lnb-tl-narrow", map.slot < 12);
    frame.classList.toggle("lnb-tl-with-strip", strip.offered(map.numbers.length));
    rail.style.width = plane.style.width = `${map.width}px`;
    plane.style.height = names.style.height = `${map.height}px`;
    shown = "";
    paintFixed(wide);
    if (follow) reveal();
    paint();
  }

  /**
   * Show the versions from one place of the axis to another, as far as bars can be that wide.
   * @param {number} first @param {number} last @param {boolean} keepsLast which of them stays
   */
  function resize(first, last, keepsLast) {
    slot = room / Math.max(1, last - first);
    layout(false);
    slot = map.slot;
    scroller.scrollLeft = (keepsLast ? last - room / slot : first) * slot;
    left = scroller.scrollLeft;
  }

  function reveal() {
    const x = map.x(map.here.version);
    if (x >= left && x + map.slot <= left + room) return;
    left = Math.max(0, Math.min(map.width - room, x - room * 0.72));
    scroller.scrollLeft = left;
  }

  const observer = new ResizeObserver(() => map && atOnce(() => layout(true)));
  observer.observe(scroller);
  ctx.onClose(ctx.kernel.onState(paint));
  ctx.onClose(() => {
    observer.disconnect();
    paint.cancel();
  });
  const counting = ctx.kernel.line({ quiet: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let comparing;

  /**
   * Count what differs between two versions, as the tab of changes does: what single versions
   * changed does not add up to that where rows came and went.
   * @param {Lnb.Range} range
   */
  function compare({ a, b }) {
    if (!a || !ctx.range.pinned || samePlace(a, b) || ctx.range.compared(a, b)) return;
    if (ctx.kernel.state !== "live" || !ctx.has?.("changes")) return;
    counting(
      "changes.counts",
      { a, b, key: null },
      ({ result }) => {
        const rows = result.chips.find((/** @type {Lnb.Json} */ chip) => chip.id === "rows");
        if (rows && !ctx.range.compared(a, b)) ctx.range.compare(a, b, rows);
      },
      () => {}, // the sum of the versions between stays
    );
  }

  ctx.onClose(
    ctx.range.on((range, { dragging }) => {
      moving = dragging;
      clearTimeout(comparing);
      // The tab of changes counts at once where it is open.
      if (!dragging) comparing = setTimeout(compare, COUNT_MS, range);
      paint();
    }),
  );
  ctx.onClose(() => clearTimeout(comparing));
  ctx.onClose(ctx.range.onCompared(paint));
  ctx.onScreen(
    (screen, patched) => {
      const model = screen.timeline;
      if (!model || model.error) return;
      map = laneMap(model, screen.branch, screen.version, map, { bar: BAR, flag: FLAG });
      for (const bar of bars.values()) bar.remove();
      bars.clear();
      hovered = null;
      layout(!patched);
    },
    ["timeline"],
  );
}

export default widget(mountTimeline, "versions of the dataset");
