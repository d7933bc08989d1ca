// What is drawn: handles on the timeline, fragments and deleted rows, drift, space, lists of refs.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { driftCards } from "../../lance_nb/explorer/changes/drift_cards.js";
import { laneMap } from "../../lance_nb/explorer/history/lanes.js";
import { rangeHandles } from "../../lance_nb/explorer/history/range_handles.js";
import { hatch, penOf } from "../../lance_nb/explorer/js/canvas.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { branchesWord, RefList } from "../../lance_nb/explorer/refs/ref_list.js";
import { thumbnails } from "../../lance_nb/explorer/rows/thumbnails.js";
import { deletionMap } from "../../lance_nb/explorer/storage/deletion_map.js";
import { FragmentStrip, fragmentSection } from "../../lance_nb/explorer/storage/fragment_strip.js";
import { spaceUse } from "../../lance_nb/explorer/storage/space_use.js";
import { fakeContext, settled, timeline } from "./fake_context.js";
import { button, nextFrame, observers, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

/** Give an element a size and a place: it has none without a layout. */
function sized(element, { width, height = 100, left = 0, top = 0 }) {
  for (const [name, value] of Object.entries({ clientWidth: width, clientHeight: height }))
    Object.defineProperty(element, name, { value, configurable: true });
  element.getBoundingClientRect = () => ({ left, top, right: left + width, width, height });
  return element;
}

test("a canvas has as many pixels as the screen, at most nine for one", () => {
  const canvas = document.createElement("canvas");
  const set = [];
  canvas.getContext("2d").setTransform = (...matrix) => set.push(matrix);
  const sizes = [undefined, 2, 4].map((ratio) => {
    window.devicePixelRatio = ratio;
    penOf(canvas, 100.4, 50);
    return [canvas.width, canvas.height];
  });
  window.devicePixelRatio = undefined;
  assert.deepEqual(sizes, [
    [100, 50],
    [201, 100],
    [301, 150],
  ]);
  assert.deepEqual(set[1], [2, 0, 0, 2, 0, 0]);
  assert.deepEqual([canvas.style.width, canvas.style.height], ["100.4px", "50px"]);
});

test("a hatch is three lines of a tile", () => {
  const tiles = [];
  hatch({ createPattern: (tile, how) => tiles.push([tile, how]) }, "red");
  const [[tile, how]] = tiles;
  assert.equal(how, "repeat");
  assert.deepEqual([tile.width, tile.height], [6, 6]);
  assert.equal(tile.pen.strokeStyle, "red");
  assert.deepEqual(tile.pen.lines, [
    [-6, 6],
    [0, 0],
    [0, 6],
    [6, 0],
    [6, 6],
    [12, 0],
  ]);
});

function handles() {
  const ctx = fakeContext();
  ctx.range = versionRange(ctx);
  const map = laneMap(timeline(), null, 3, null, { bar: { main: 58, branch: 32 }, flag: 18 });
  map.fit(700);
  map.measure();
  const scroller = sized(h("div"), { width: 700, left: 10, top: 0 });
  scroller.scrollLeft = 0;
  const part = rangeHandles(ctx, scroller, () => map);
  document.body.append(part.element);
  const [band, a, b] = part.element.children;
  part.paint();
  return { ctx, map, scroller, part, band, a, b };
}
const at = (map, version) => map.x(version) + map.slot / 2;

test("handles have room for their numbers at the beginning, and beside one another", () => {
  const { ctx, map, part, a, b } = handles();
  map.slot = 6;
  ctx.range.set({ a: { branch: null, version: 1 }, b: { branch: null, version: 2 } });
  part.paint();
  assert.deepEqual([a.style.left, b.style.left], ["33px", "33px"]); // A ends where B begins
  ctx.range.set({ a: { branch: null, version: 7 }, b: { branch: null, version: 1 } });
  part.paint();
  assert.deepEqual([a.style.left, b.style.left], [`${at(map, 7)}px`, "33px"]);
});

test("handles stand at their versions, with a band between them when a range was chosen", () => {
  const { ctx, map, part, band, a, b } = handles();
  assert.equal(b.style.left, `${at(map, 3)}px`);
  assert.equal(a.style.left, `${at(map, 2)}px`);
  assert.equal(shown(b), "B|3{B, the version shown: main:3 – drag it}");
  assert.equal(b.getAttribute("aria-valuetext"), "main:3");
  assert.deepEqual(
    ["aria-valuenow", "aria-valuemin", "aria-valuemax"].map((name) => b.getAttribute(name)),
    ["3", String(map.numbers[0]), String(map.numbers.at(-1))],
  );
  assert.equal(a.classList.contains("lnb-before"), true);
  assert.equal(b.classList.contains("lnb-before"), false);
  assert.equal(band.hidden, true); // A only follows
  ctx.range.set({ a: { branch: null, version: 1 } });
  part.paint();
  assert.equal(band.hidden, false);
  assert.equal(band.style.left, `${at(map, 1)}px`);
  assert.equal(band.style.width, `${at(map, 3) - at(map, 1)}px`);
  ctx.range.set({ a: { branch: null, version: 6 } });
  part.paint();
  assert.equal(a.classList.contains("lnb-before"), false); // A after B: they turn round
  assert.equal(b.classList.contains("lnb-before"), true);
  assert.equal(band.style.left, `${at(map, 3)}px`);
  assert.equal(band.style.top, "18px"); // below the flags
  assert.equal(band.style.height, "116px"); // two lanes, the axis stays free
  ctx.range.set({ a: { branch: null, version: 3 } });
  part.paint();
  assert.equal(band.hidden, true); // both at the same version
  ctx.range.set({ a: { branch: null, version: 1 } });
  ctx.show({ branch: "not shown" });
  part.paint();
  assert.deepEqual([a.hidden, b.hidden, band.hidden], [false, true, true]);
});

test("a handle moves to the lane under the pointer, else it stays on its own", () => {
  const { ctx, map, a, b, part } = handles();
  const [, dev] = map.lanes;
  send(a, "pointerdown", { pointerId: 1 });
  const move = (version, y) => {
    send(a, "pointermove", { clientX: 10 + at(map, version), clientY: y });
    return ctx.range.get().a;
  };
  assert.deepEqual(move(5, dev.top), { branch: "dev", version: 5 });
  assert.deepEqual(move(4, dev.top + dev.height), { branch: "dev", version: 4 });
  const [main] = map.lanes;
  assert.deepEqual(move(5, main.top + main.height), { branch: "dev", version: 5 }); // between them
  assert.deepEqual(move(2, main.top + main.height - 1), { branch: null, version: 2 });
  assert.deepEqual(move(5, dev.top), { branch: "dev", version: 5 });
  send(a, "pointerup");
  part.paint();
  assert.equal(a.style.left, `${at(map, 5)}px`);
  ctx.range.set({ a: { branch: "elsewhere", version: 2 } });
  part.paint();
  assert.equal(a.hidden, true); // its lane is not shown
  assert.equal(b.hidden, false);
  assert.equal(part.step("b", "ArrowLeft"), true);
  assert.equal(part.step("a", "ArrowLeft"), false);
});

test("handles are moved by keys", () => {
  const { ctx, a } = handles();
  const key = (name, held = {}) =>
    send(a, "keydown", { key: name, altKey: false, ctrlKey: false, metaKey: false, ...held });
  assert.equal(key("ArrowLeft").defaultPrevented, true);
  assert.deepEqual(ctx.range.get().a, { branch: null, version: 1 });
  assert.equal(ctx.announced.at(-1), "A at main:1");
  assert.equal(key("ArrowLeft", { ctrlKey: true }).defaultPrevented, false);
  assert.equal(key("x").defaultPrevented, false);
  assert.deepEqual(ctx.range.get().a, { branch: null, version: 1 });
});

test("a handle is dragged to the nearest version, and back when that is cancelled", () => {
  const { ctx, map, scroller, part, band, a } = handles();
  const reached = [];
  ctx.range.onReach((end) => reached.push(end));
  const heard = [];
  ctx.range.on((range, { dragging }) => heard.push([range.a?.version, dragging]));
  send(a, "pointerenter");
  assert.deepEqual(reached, ["a"]);
  const down = () => send(a, "pointerdown", { pointerId: 1, clientX: 0, clientY: 0 });
  assert.equal(down().defaultPrevented, true);
  assert.equal(document.lastFocused, a);
  send(a, "focus"); // while it is dragged nothing new is reached for
  assert.deepEqual(reached, ["a"]);
  const [lane] = map.lanes;
  const move = (version, more = {}) =>
    send(a, "pointermove", { clientX: 10 + at(map, version), clientY: lane.top + 1, ...more });
  move(6);
  move(6);
  assert.deepEqual(heard, [[6, true]]);
  part.paint();
  assert.equal(band.hidden, false);
  send(a, "pointerup");
  assert.deepEqual(heard.at(-1), [6, false]);
  move(1);
  assert.equal(heard.length, 2); // it was let go
  down();
  move(1);
  send(a, "pointercancel");
  assert.deepEqual(heard.at(-1), [6, false]);
  assert.deepEqual(ctx.range.get().a, { branch: null, version: 6 });
  down();
  move(1);
  send(document, "keydown", { key: "Escape" });
  assert.deepEqual(heard.at(-1), [6, false]);
  move(1);
  assert.deepEqual(heard.at(-1), [6, false]);
  down();
  const before = scroller.scrollLeft;
  send(a, "pointermove", { clientX: 705, clientY: 2 });
  assert.equal(scroller.scrollLeft, before + map.slot); // near the end it scrolls
  send(a, "pointermove", { clientX: 12, clientY: 2 });
  assert.equal(scroller.scrollLeft, before);
});

const floats = (...values) => new Float64Array(values).buffer;
const STRIP = {
  num_fragments: 20,
  num_bins: 3,
  first: 4,
  stop: 8,
  totals: { rows: 1300, deleted: 130, bytes: 5000, files: 6, indices: 2, covered: 650 },
};
/** id, count, rows, deleted, bytes, files, covered of three bars: the last is two fragments. */
const BARS = [
  floats(4, 5, 6),
  floats(1, 1, 2),
  floats(1000, 100, 200),
  floats(500, 0, 20),
  floats(4000, 100, 900),
  floats(2, 1, 3),
  floats(1000, 50, 200),
];

function fragments() {
  const ctx = fakeContext();
  const did = [];
  const part = fragmentSection(ctx, {
    placeNow: () => ({ version: 3 }),
    open: (id) => did.push(["open", id]),
    failed: (error) => did.push(["failed", error?.message]),
  });
  document.body.append(part.element);
  const strip = sized(part.element.querySelector(".lnb-fm"), { width: 260 });
  const canvas = sized(strip.firstElementChild, { width: 260 });
  part.load();
  const request = ctx.kernel.last("storage.map");
  request.answer(STRIP, BARS);
  nextFrame();
  const key = (name, held = {}) =>
    send(strip, "keydown", { key: name, altKey: false, ctrlKey: false, metaKey: false, ...held });
  const readout = () => part.element.querySelector(".lnb-st-readout").textContent;
  return { ctx, did, part, strip, canvas, key, readout, request };
}

test("fragments are bars, as wide as their rows", () => {
  const { did, part, canvas, request } = fragments();
  assert.deepEqual(request.args, { version: 3, first: 0, stop: 2 ** 52 });
  assert.deepEqual(did, [["failed", undefined]]);
  assert.equal(
    shown(part.element.querySelector(".lnb-st-summary")),
    "20 fragments · 1,300 stored rows · 10.0\u00a0% deleted · 5.0 KB · 6 data files" +
      " · 50.0\u00a0% covered by every index — showing 4 to 7",
  );
  const [blue, ground, line, fork] = ["replace", "bg", "line", "fork"].map(
    (name) => `var(--lnb-${name})`,
  );
  assert.deepEqual(canvas.pen.drawn, [
    [blue, 0, 10.69, 199, 113.31],
    [ground, 0, 10.69, 199, 56.65],
    ["hatch", 0, 10.69, 199, 56.65],
    [line, 0, 126, 199, 6],
    [fork, 0, 126, 199, 6],
    ["var(--lnb-ink)", 0.25, 10.44, 198.5, 113.31],
    [blue, 200, 65.85, 19, 58.15],
    [line, 200, 126, 19, 6],
    [fork, 200, 126, 9.5, 6],
    [blue, 220, 4, 39, 120],
    [ground, 220, 4, 39, 12],
    ["hatch", 220, 4, 39, 12],
    [line, 220, 126, 39, 6],
    [fork, 220, 126, 39, 6],
  ]);
});

test("a bar is described, opened, and zoomed into when it is several fragments", () => {
  const { ctx, did, part, strip, key, readout } = fragments();
  assert.equal(
    readout(),
    "fragment 4 · 1,000 rows · 50.0 % deleted · 4.0 KB · 4 B per row · 2 files",
  );
  assert.equal(strip.getAttribute("aria-valuemax"), "2");
  assert.equal(key("ArrowRight").defaultPrevented, true);
  assert.equal(
    readout(),
    "fragment 5 · 100 rows · 100 B · 1 B per row · 1 file · not covered by every index",
  );
  assert.equal(strip.getAttribute("aria-valuenow"), "1");
  assert.equal(strip.getAttribute("aria-valuetext"), readout());
  key("Enter");
  assert.deepEqual(did.at(-1), ["open", 5]);
  key("End");
  assert.match(readout(), /^2 fragments from 6 · 200 rows/);
  key("Enter");
  const asked = () => {
    const { first, stop } = ctx.kernel.last("storage.map").args;
    return [first, stop];
  };
  assert.deepEqual(asked(), [6, 8]);
  key("ArrowLeft");
  assert.match(readout(), /^fragment 5/);
  key("Home");
  key("+");
  assert.deepEqual(asked(), [4, 5]);
  key("-");
  assert.deepEqual(asked(), [2, 10]);
  key("PageDown");
  assert.equal(strip.getAttribute("aria-valuenow"), "2");
  key("PageUp");
  assert.equal(strip.getAttribute("aria-valuenow"), "0");
  assert.equal(key("End", { ctrlKey: true }).defaultPrevented, false);
  assert.equal(key("x").defaultPrevented, false);
  send(strip, "pointermove", { clientX: 210 });
  assert.match(readout(), /^fragment 5/);
  send(strip, "pointerleave");
  assert.match(readout(), /^fragment 4/);
  send(strip, "click", { clientX: 210 });
  assert.deepEqual(did.at(-1), ["open", 5]);
  button(part.element, "all").click();
  assert.deepEqual(asked(), [0, 2 ** 52]);
  ctx.kernel.last("storage.map").fail({ message: "lost" });
  assert.deepEqual(did.at(-1), ["failed", "lost"]);
  part.mark(6);
  assert.equal(strip.getAttribute("aria-valuenow"), "2");
});

test("the summary names the part that is shown only where it is a part", () => {
  const { ctx, part } = fragments();
  const summary = (model) => {
    part.load();
    ctx.kernel.last("storage.map").answer({ ...STRIP, ...model }, BARS);
    return shown(part.element.querySelector(".lnb-st-summary"));
  };
  assert.doesNotMatch(summary({ num_fragments: 4 }), /showing/);
  assert.match(summary({ num_fragments: 5 }), / — showing 4 to 7$/);
  const unknown = { ...STRIP.totals, bytes: null, indices: 1 };
  assert.match(summary({ totals: unknown }), /size unknown .* covered by the index/);
  assert.match(summary({ totals: { ...unknown, indices: 0 } }), /6 data files — showing/);
});

test("the map of fragments is painted again in another size, until it is closed", () => {
  const { ctx, strip, canvas } = fragments();
  const resize = (width) => {
    sized(strip, { width });
    for (const observer of observers) observer.fire([]);
    nextFrame();
    return canvas.style.width;
  };
  assert.equal(resize(520), "520px");
  assert.equal(resize(0), "520px"); // hidden: nothing to paint
  ctx.close();
  assert.ok(observers.every((observer) => !observer.connected));
});

test("deleted rows are pixels", () => {
  const ctx = fakeContext();
  const element = sized(deletionMap(ctx, { version: 3 }, 7, 5000), { width: 300 });
  document.body.append(element);
  nextFrame();
  const asked = () => ctx.kernel.last("storage.deletions");
  assert.deepEqual(asked().args, {
    version: 3,
    fragment: 7,
    first: 0,
    rows: 5000,
    pixels: (300 * 60) / 2,
  });
  const answer = {
    first: 0,
    stop: 5000,
    num_rows: 5000,
    num_deleted: 1000,
    rows_per_pixel: 1000,
  };
  asked().answer(answer, [new Uint8Array([0, 255, 51, 0, 0]).buffer]);
  nextFrame();
  const canvas = sized(element.querySelector("canvas"), { width: 297 });
  assert.equal(canvas.getAttribute("aria-label"), "20.0 % of 5,000 rows deleted");
  assert.deepEqual(canvas.pen.drawn, [
    ["var(--lnb-line)", 0, 0, 45, 8],
    ["var(--lnb-remove)", 9, 0, 8, 8],
    ["var(--lnb-remove)", 18, 0, 8, 8],
  ]);
  button(element, "All rows").click();
  asked().answer(answer, [new Uint8Array([255, 0, 0, 0, 255]).buffer]);
  nextFrame();
  assert.deepEqual(
    canvas.pen.drawn.slice(-2).map(([, left]) => left),
    [0, 36], // the first and the last
  );
  asked().answer(answer, [new Uint8Array([0, 255, 51, 0, 0]).buffer]);
  nextFrame();
  const readout = () => shown(element.querySelector(".lnb-dm-readout"));
  assert.equal(readout(), "rows 0 – 4,999 · each square is 1,000 rows · red is deleted");
  assert.equal(
    shown(element.lastElementChild),
    "[Zoom in]{show a quarter of these rows}|(All rows){show all rows of the fragment}",
  );
  send(canvas, "pointermove", { clientX: 12, clientY: 3 });
  assert.equal(readout(), "rows 1,000 – 1,999: 100.0 % deleted");
  send(canvas, "pointermove", { clientX: 120, clientY: 3 });
  assert.match(readout(), /^rows 0 – 4,999/);
  send(canvas, "pointermove", { clientX: 12, clientY: 3 });
  send(canvas, "pointerleave");
  assert.match(readout(), /^rows 0 – 4,999/);
  send(canvas, "click", { clientX: 39, clientY: 3 });
  assert.deepEqual([asked().args.first, asked().args.rows], [3375, 1250]);
  button(element, "Zoom in").click();
  assert.deepEqual([asked().args.first, asked().args.rows], [1875, 1250]);
  asked().answer({ ...answer, first: 8, stop: 11, rows_per_pixel: 1 }, [
    new DataView(new Uint8Array([9, 0, 255, 0]).buffer, 1),
  ]);
  nextFrame();
  assert.equal(readout(), "rows 8 – 10 · each square is a row · red is deleted");
  send(canvas, "pointermove", { clientX: 12, clientY: 3 });
  assert.equal(readout(), "row 9: deleted");
  send(canvas, "pointermove", { clientX: 2, clientY: 3 });
  assert.equal(readout(), "row 8: live");
  assert.match(shown(element.lastElementChild), /^\(Zoom in\).*\[All rows\]/);
  const count = ctx.kernel.asked.length;
  send(canvas, "click", { clientX: 12, clientY: 3 }); // one pixel is one row already
  assert.equal(ctx.kernel.asked.length, count);
  button(element, "All rows").click();
  asked().fail({ message: "lost" });
  assert.equal(shown(element), "problem: lost");
});

const SPACE = {
  total: 10_000,
  files: 12,
  states: [
    { name: "current", bytes: 7500, files: 10 },
    { name: "orphan", bytes: 2500, files: 2 },
    { name: "other", bytes: 0, files: 0 },
  ],
  kinds: [
    { name: "data", files: 1200, bytes: 9000, orphans: 2500 },
    { name: "indices", files: 1, bytes: 1000, orphans: 0 },
  ],
  refs: [
    { kind: "tag", name: "v1", place: "main:2", held: 5000, own: 100, branch: null, version: 2 },
  ],
  hidden_refs: 3,
  versions: [{ place: "main:3", held: 7000, own: 2000, branch: null, version: 3 }],
  hidden_versions: 0,
  damaged: ["main:1"],
};

test("the space of a folder is read when it is asked for", async () => {
  const ctx = fakeContext();
  const element = spaceUse(ctx, () => ({ version: 3 }));
  button(element, "Account").click();
  const asked = () => ctx.kernel.last("storage.space");
  assert.deepEqual(asked().args, { version: 3 });
  assert.match(
    shown(element),
    /^Space\|of all versions, tags and branches\|\(Account for every byte\)/,
  );
  assert.match(shown(element), /Listing the folder…\|\[Cancel\]$/);
  asked().options.progress(1000, 2000);
  assert.match(shown(element), /1,000 of 2,000 manifests\|\[Cancel\]$/);
  const bar = element.querySelector("progress");
  assert.deepEqual([bar.value, bar.max], [1000, 2000]);
  button(element, "Cancel").click();
  assert.equal(ctx.kernel.cancelled, 1);
  await asked().answer(SPACE);
  const text = shown(element);
  assert.match(text, /\[Account for every byte\]/);
  assert.match(text, /10\.0 KB\|in 12 files\|/);
  assert.match(
    text,
    /kind\|files\|bytes\|orphans\|data\|1,200\|9\.0 KB\|2\.5 KB\|indices\|1\|1\.0 KB\|–/,
  );
  assert.match(
    text,
    /Referred to by tags and branches\|ref\|.*\|⚑ v1\|.*main:2.*\|5\.0 KB\|100 B\|and 3 more/,
  );
  assert.match(
    text,
    /bytes of their own\|.*main:3.*\|7\.0 KB\|2\.0 KB\|Manifests that cannot be read\|main:1$/,
  );
  assert.equal(
    element.querySelector(".lnb-su-bar").getAttribute("aria-label"),
    "current 75.0 %, orphan 25.0 %, other 0 %",
  );
  assert.deepEqual(
    [...element.querySelectorAll(".lnb-su-part")].map((part) => [part.title, part.style.flexGrow]),
    [
      ["current: 7.5 KB", "7500"],
      ["orphan: 2.5 KB", "2500"],
    ],
  );
  assert.deepEqual([...element.querySelectorAll(".lnb-su-legend li")].map(shown), [
    "7.5 KB|current|75.0 %",
    "2.5 KB|orphan|25.0 %",
  ]);
  button(element, "main:3").click();
  assert.equal(ctx.travels.length, 1);
  button(element, "Account").click();
  await asked().fail({ message: "denied" });
  assert.match(shown(element), /problem: denied$/);
});

const side = (bars, more = {}) => ({
  bars,
  facts: [
    ["nulls", "0"],
    ["mean", String(bars[0])],
  ],
  nulls: 0,
  sampled: 100,
  rows: 100,
  ...more,
});
const drifted = (name, psi, more = {}) => ({
  name,
  type: "int64",
  psi,
  before: side([500, 1000]),
  after: side([1000, 0]),
  labels: [],
  ...more,
});

function drift() {
  const ctx = fakeContext();
  const codes = [];
  const part = driftCards(ctx, {
    pair: () => ({ a: 1, b: 2 }),
    names: () => ["main:1", "main:2"],
    code: (...lines) => codes.push(lines),
  });
  document.body.append(part.element);
  const asked = () => ctx.kernel.last("changes.drift");
  const foot = () => shown(part.element.querySelector(".lnb-ch-foot"));
  const names = () => texts(part.element, ".lnb-dr-card header b");
  return { ctx, codes, part, asked, foot, names };
}

test("after the first columns more are compared when somebody asks", async () => {
  const { part, asked } = drift();
  part.begin();
  const first = Array.from({ length: 48 }, (_, index) => drifted(`c${index}`, 0.1));
  await asked().answer({ num_columns: 60, columns: first });
  button(part.element, "Compare more").click();
  assert.equal(asked().args.first, 48);
  await asked().answer({ num_columns: 60, columns: [drifted("d", 0.1)] });
  assert.equal(asked().args.first, 49);
});

test("columns are compared twelve at a time, most moved first", async () => {
  const { ctx, codes, part, asked, foot, names } = drift();
  part.begin();
  assert.deepEqual(codes, [[".drift()", ""]]);
  assert.deepEqual(asked().args, { a: 1, b: 2, first: 0, count: 12, exact: false });
  assert.equal(foot(), "main:1|main:2|Comparing column statistics…|[Stop]");
  const nulls = drifted("c", null, {
    after: side([], { nulls: 0.2, sampled: 50 }),
    before: side([]),
  });
  await asked().answer({ num_columns: 5, columns: [drifted("a", 0.05), drifted("b", 0.3), nulls] });
  assert.deepEqual(names(), ["b", "c", "a"]);
  assert.equal(foot(), "main:1|main:2|3 of 5 columns…|[Stop]");
  assert.equal(asked().args.first, 3);
  await asked().answer({ num_columns: 5, columns: [drifted("d", 0.1), drifted("e", 0.25)] });
  assert.equal(foot(), "main:1|main:2|5 columns, a sample of 100 rows|[Use all rows]");
  const [b, e, c, d, a] = [...part.element.querySelectorAll("article")].map(shown);
  const title = "Population stability index: below 0.1 is stable, above 0.25 is a large change";
  assert.equal(b, `b{b}|int64|moved much 0.30{${title}}|nulls|0{0}|0{0}|mean|500{500}|1000{1000}`);
  assert.match(e, /moved much 0\.25/);
  assert.match(d, /moved 0\.10/);
  assert.match(a, /steady 0\.05/);
  assert.match(c, /^c\{c\}\|int64\|No histogram for this type\|/);
  const [first] = part.element.querySelectorAll("svg");
  assert.deepEqual(
    [...first.querySelectorAll("rect")].map((one) =>
      ["x", "y", "width", "height"].map((name) => one.getAttribute(name)).join(" "),
    ),
    ["0.50 2.00 24.00 46.00", "25.50 48.00 24.00 0.00"],
  );
  assert.equal(
    first.querySelector("path").getAttribute("d"),
    "M0 48V25.00L0.00 25.00H25.00L25.00 2.00H50.00V48",
  );
  button(part.element, "Use all rows").click();
  assert.deepEqual(codes.at(-1), [".drift(exact=True)", ""]);
  assert.equal(asked().args.exact, true);
  await asked().answer({ num_columns: 0, columns: [] });
  assert.equal(foot(), "main:1|main:2|0 columns, all rows");
  assert.match(shown(part.element), /The two versions have no column in common\./);
  ctx.close();
});

test("a column without a histogram counts by how much its share of nulls moved", async () => {
  const { part, asked, names } = drift();
  part.begin();
  const nulls = (name, before, after) =>
    drifted(name, null, { before: side([], { nulls: before }), after: side([], { nulls: after }) });
  await asked().answer({
    num_columns: 3,
    columns: [nulls("same", 0.9, 0.9), nulls("less", 0.4, 0.1), nulls("more", 0.1, 0.3)],
  });
  assert.deepEqual(names(), ["less", "more", "same"]);
});

test("comparing columns can be stopped and gone on with", async () => {
  const { ctx, part, asked, foot } = drift();
  part.begin();
  const words = drifted("w", 0.2, { labels: ["x", "y"] });
  await asked().answer({ num_columns: 2, columns: [words] });
  assert.deepEqual(texts(part.element, ".lnb-dr-text span[title]"), ["x", "y"]);
  assert.deepEqual(
    [...part.element.querySelectorAll(".lnb-dr-bars i")].map((one) => one.style.width),
    ["50%", "100%", "100%", "0%"],
  );
  button(part.element, "Stop").click();
  assert.equal(ctx.kernel.cancelled, 1);
  await asked().fail({ kind: "CancelledError", message: "cancelled" });
  assert.equal(foot(), "main:1|main:2|1 of 2 columns, all rows|[Compare more columns]");
  button(part.element, "Compare more").click();
  await asked().fail({ kind: "Other", message: "broken" });
  assert.match(shown(part.element), /^problem: broken/);
  part.begin();
  const old = asked();
  part.begin();
  await old.answer({ num_columns: 1, columns: [drifted("old", 1)] });
  assert.doesNotMatch(shown(part.element), /old/);
  const before = ctx.kernel.cancelled;
  part.stop(); // what the old comparison answers does not take it for ended
  assert.equal(ctx.kernel.cancelled, before + 1);
});

function pictures() {
  const ctx = fakeContext();
  const did = [];
  const cells = (row, column) => ({
    text: `p${row}`,
    look: "lnb-look-binary",
    picture: column === 1 && row < 20,
  });
  const store = { cell: cells, column: (column) => ({ pictures: column === 1, look: "binary" }) };
  const part = thumbnails(ctx, { store, changed: () => did.push("changed"), height: () => 52 });
  const closed = [];
  globalThis.createImageBitmap = async (_blob, { resizeWidth, resizeHeight }) => {
    const picture = { width: resizeWidth, height: resizeHeight, close: () => closed.push(picture) };
    return picture;
  };
  return { ctx, did, part, closed, cells };
}
const until = async (ready) => {
  for (let turn = 0; turn < 50 && !ready(); turn += 1) await settled();
};

test("pictures in sight are asked for, some rows at once, and kept small", async () => {
  const { ctx, did, part, closed, cells } = pictures();
  part.reset({ version: 3 });
  part.want(0, 30, [0]);
  assert.equal(ctx.kernel.asked.length, 0); // no column of pictures is in sight
  part.want(2, 30, [0, 1]);
  part.want(2, 30, [0, 1]); // the same is under way
  assert.equal(ctx.kernel.asked.length, 1);
  const cell = h("div");
  const value = { ...cells(2, 1), text: "PNG · 4 KB" };
  // A grey place stands for a picture that is on its way, with its name for screen readers.
  const coming = part.fill(cell, value, undefined, 2, 1);
  assert.deepEqual([coming.filled, coming.hint], [false, "PNG · 4 KB"]);
  assert.equal(cell.querySelector("i.lnb-thumb").getAttribute("aria-label"), "PNG · 4 KB");
  assert.equal(cell.textContent, "");
  const [asked] = ctx.kernel.asked;
  assert.deepEqual(asked.args, { version: 3, row: 2, count: 12, column: 1 });
  assert.equal(asked.options.quiet, true);
  const thumbs = [
    { at: 2, mime: "image/png", width: 400, height: 100 },
    { at: 3, mime: "image/png", width: 10, height: 480 },
  ];
  asked.answer({ thumbs }, [new ArrayBuffer(1), new ArrayBuffer(1)]);
  await until(() => did.length);
  assert.deepEqual(did, ["changed"]);
  assert.deepEqual(part.fill(cell, value, undefined, 2, 1), {
    filled: true,
    look: "lnb-look-binary lnb-look-picture",
    hint: "PNG · 4 KB",
  });
  assert.equal(cell.textContent, "");
  const canvas = cell.querySelector("canvas");
  const size = (one) => [one.getAttribute("width"), one.getAttribute("height")];
  assert.equal(canvas.getAttribute("role"), "img");
  assert.equal(canvas.getAttribute("aria-label"), "PNG · 4 KB");
  assert.deepEqual(size(canvas), ["154", "38"]); // 1.6 times as wide as high, two for a pixel
  part.fill(cell, value, undefined, 3, 1);
  const narrow = cell.querySelector("canvas");
  assert.deepEqual(size(narrow), ["2", "96"]);
  assert.equal(part.fill(cell, value, undefined, 4, 1).filled, true); // known to have none
  assert.equal(part.fill(cell, value, undefined, 19, 1).filled, false); // still to come
  part.want(2, 30, [0, 1]);
  assert.deepEqual(ctx.kernel.asked[1].args, { version: 3, row: 14, count: 6, column: 1 });
  did.length = 0;
  ctx.kernel.asked[1].fail({ message: "lost" });
  assert.deepEqual(did, ["changed"]); // so that the next ones are asked for
  part.want(2, 30, [0, 1]);
  assert.equal(ctx.kernel.asked.length, 2); // what failed is not asked for again
  part.fill(cell, value, undefined, 4, 1);
  assert.equal(cell.textContent, "PNG · 4 KB"); // one that cannot be decoded says what it is
  ctx.close();
  assert.equal(closed.length, 2);
});

test("what is in sight is asked for once, also where it is more than is kept", () => {
  const ctx = fakeContext();
  const store = { cell: () => ({ picture: true }), column: () => ({ look: "binary" }) };
  const columns = Array.from({ length: 10 }, (_one, at) => at);
  const part = thumbnails(ctx, { store, changed() {}, height: () => 28 });
  part.reset({ version: 3 });
  let asked = 0;
  const ask = () => {
    part.want(0, 60, columns);
    if (ctx.kernel.asked.length === asked) return false;
    asked = ctx.kernel.asked.length;
    ctx.kernel.asked.at(-1).fail({ message: "lost" });
    return true;
  };
  while (asked < 100 && ask());
  assert.equal(asked, 50); // 60 rows of 10 columns, 12 at once
});

test("a failure of another place says nothing of the pictures here", async () => {
  const { ctx, did, part, cells } = pictures();
  part.reset({ version: 3 });
  part.want(0, 2, [1]);
  const [asked] = ctx.kernel.asked;
  part.reset({ version: 4 });
  asked.fail({ message: "lost" });
  assert.deepEqual(did, []);
  assert.equal(part.fill(h("div"), cells(0, 1), undefined, 0, 1).filled, false); // still to come
});

test("pictures of another place are dropped", async () => {
  const { ctx, did, part, closed } = pictures();
  part.reset({ version: 3 });
  part.want(0, 2, [1]);
  part.reset({ version: 4 });
  const thumbs = [{ at: 0, mime: "image/png", width: 4, height: 4 }];
  ctx.kernel.asked[0].answer({ thumbs }, [new ArrayBuffer(1)]);
  await until(() => closed.length);
  assert.equal(closed.length, 1);
  assert.deepEqual(did, []);
  ctx.kernel.state = "static";
  part.want(0, 2, [1]);
  assert.equal(ctx.kernel.asked.length, 1);
});

const branch = (name, more = {}) => ({
  name,
  label: name ?? "main",
  fork: name && { label: "main:3" },
  created_ms: null,
  tags: 0,
  children: 0,
  note: "",
  place: { label: `${name}:1` },
  ...more,
});

function list() {
  const ctx = fakeContext();
  const did = [];
  const part = new RefList(ctx, {
    open: (kind, line) => did.push(["open", kind, line.name]),
    listed: (page) => did.push(["listed", page.matching]),
    failed: (error) => did.push(["failed", error.message]),
  });
  sized(part.element, { width: 400, height: 280 });
  part.element.scrollTop = 0;
  document.body.append(part.element);
  const asked = () => ctx.kernel.last("refs.list");
  const rows = () =>
    [...part.element.querySelectorAll(".lnb-rl-space > .lnb-rl-row")].map((row) =>
      [...row.children].map(shown).join("/"),
    );
  const key = (name) =>
    send(part.element, "keydown", { key: name, altKey: false, ctrlKey: false, metaKey: false });
  return { ctx, did, part, asked, rows, key };
}

test("branches are listed with what is read of their newest versions", () => {
  const { ctx, did, part, asked, rows } = list();
  part.set({ kind: "branch" });
  const all = { kind: "branch", text: "", sort: "name", descending: false };
  assert.deepEqual(asked().args, { ...all, first: 0, count: 120, fresh: false });
  const lines = [
    branch(null),
    branch("dev", { tags: 2, children: 1, note: "n", created_ms: Date.now() - 60000 }),
    branch("odd", { unfinished: true }),
  ];
  asked().answer({ matching: 3, first: 0, lines });
  nextFrame();
  assert.deepEqual(did, [["listed", 3]]);
  assert.deepEqual(ctx.kernel.last("refs.heads").args, { names: [null, "dev", "odd"] });
  const dev = "↳|dev{dev}/main:3{main:3}/…{…}///";
  assert.equal(rows()[1], `${dev}/1 minute ago/⚑ 2  ↳ 1{⚑ 2  ↳ 1}/n{n}`);
  assert.match(rows()[2], /\/unfinished\{unfinished\}\//);
  const heads = [
    { name: null, version: 7, rows: 1200, ahead: null, behind: null, time_ms: Date.now() - 1 },
    { name: "dev", version: 5, rows: 3, ahead: 2, behind: null, time_ms: null },
    { name: "odd", problem: "damaged" },
  ];
  ctx.kernel.last("refs.heads").answer({ heads });
  nextFrame();
  assert.match(rows()[0], /^●\|main\{main\}\/\/7\{main\}\/1,200\{1,200\}\/\/just now\//);
  assert.match(rows()[1], /\/5\{dev\}\/3\{3\}\/\+2 · −\?\{\+2 · −\?\}\//);
  assert.equal(part.element.getAttribute("aria-rowcount"), "4");
  assert.equal(part.element.querySelector(".lnb-rl-space").style.height, "84px");
  assert.match(part.element.getAttribute("aria-activedescendant"), /-0$/);
});

test("a branch that was merged says so, and a guess is marked as one", () => {
  const { ctx, part, asked, rows } = list();
  part.set({ kind: "branch" });
  asked().answer({ matching: 2, first: 0, lines: [branch("dev"), branch("old")] });
  nextFrame();
  const head = { rows: 3, time_ms: null, version: 5, merged: { label: "dev:5" } };
  const heads = [
    { ...head, name: "dev", ahead: 0, behind: 1, exact: true },
    { ...head, name: "old", ahead: 900, behind: 7, exact: false },
  ];
  ctx.kernel.last("refs.heads").answer({ heads });
  nextFrame();
  assert.match(rows()[0], /✓ merged · −1/);
  assert.match(rows()[1], /≤ \+900 · ≤ −7/);
});

test("a list is sorted by its titles and walked by keys", () => {
  const { ctx, did, part, asked, rows, key } = list();
  part.set({ kind: "tag" });
  const lines = Array.from({ length: 120 }, (_one, at) =>
    branch(`t${at}`, { updated_ms: at ? Date.now() - 3600000 : null }),
  );
  asked().answer({ matching: 300, first: 0, lines });
  nextFrame();
  assert.equal(ctx.kernel.count("refs.heads"), 0);
  assert.equal(rows().length, 22); // ten in sight and twelve beside them
  assert.match(rows()[1], /^⚑\|t1\{t1\}\/t1:1\{t1:1\}\/\/1 hour ago\/$/);
  const head = () => shown(part.element.querySelector(".lnb-rl-head"));
  assert.equal(head(), "[tag|↑]|[version]|[created]|[moved]|note");
  const current = () => part.element.getAttribute("aria-activedescendant")?.replace(/.*-/, "");
  key("ArrowDown");
  nextFrame();
  assert.equal(current(), "1");
  key("PageDown");
  nextFrame();
  assert.equal(current(), "9");
  assert.equal(part.element.scrollTop, 28);
  key("Enter");
  assert.deepEqual(did.at(-1), ["open", "tag", "t9"]);
  key("PageUp");
  key("ArrowUp");
  key("ArrowUp");
  nextFrame();
  assert.equal(current(), "0");
  key("End"); // its line is not here
  nextFrame();
  assert.equal(part.element.scrollTop, 299 * 28);
  assert.equal(asked().args.first, 287);
  asked().answer({ matching: 300, first: 287, lines: lines.slice(0, 13) });
  nextFrame();
  assert.equal(current(), "299");
  assert.equal(key("x").defaultPrevented, false);
  button(part.element, "tag").click();
  assert.equal(head(), "[tag|↓]|[version]|[created]|[moved]|note");
  assert.deepEqual([asked().args.sort, asked().args.descending], ["name", true]);
  button(part.element, "version").click();
  assert.deepEqual([asked().args.sort, asked().args.descending], ["place", false]);
  assert.equal(part.element.scrollTop, 0);
  asked().fail({ message: "lost" });
  assert.deepEqual(did.at(-1), ["failed", "lost"]);
});

test("a list whose records are on their way has no lines", () => {
  const { part, rows, key } = list();
  part.set({ kind: "tag" });
  nextFrame();
  assert.deepEqual(rows(), []);
  assert.equal(key("ArrowDown").defaultPrevented, false);
});

test("records that are read again keep the line of the keyboard", () => {
  const { did, part, asked, rows, key } = list();
  part.set({ kind: "tag" });
  asked().answer({ matching: 2, first: 0, lines: [branch("a"), branch("b")] });
  nextFrame();
  key("ArrowDown");
  part.refresh();
  assert.equal(asked().args.fresh, true);
  asked().answer({ matching: 3, first: 0, lines: [branch("a"), branch("aa"), branch("b")] });
  nextFrame();
  assert.equal(rows().length, 3);
  key("Enter");
  assert.deepEqual(did.at(-1), ["open", "tag", "b"]);
  part.refresh();
  const more = ["a", "aa", "b", "c", "d"].map((name) => branch(name));
  asked().answer({ matching: 5, first: 0, lines: more });
  nextFrame();
  key("Enter");
  assert.deepEqual(did.at(-1), ["open", "tag", "b"]);
  part.element.querySelector(".lnb-rl-space").children[0].click();
  assert.deepEqual(did.at(-1), ["open", "tag", "a"]);
  part.refresh();
  asked().answer({ matching: 0, first: 0, lines: [] });
  nextFrame();
  assert.deepEqual(rows(), []);
  assert.equal(key("ArrowDown").defaultPrevented, false);
  assert.equal(branchesWord(1), "1 branch");
  assert.equal(branchesWord(2000), "2,000 branches");
});

test("many small fragments keep a width, and zoom goes to a quarter on either side", () => {
  const ctx = fakeContext();
  const did = [];
  const part = new FragmentStrip(ctx, {
    zoom: (...span) => did.push(span),
    open: () => {},
    describe: () => {},
  });
  const strip = sized(part.element, { width: 300 });
  const canvas = sized(strip.firstElementChild, { width: 300 });
  document.body.append(strip);
  const bins = 30;
  const all = (value) => floats(...Array.from({ length: bins }, () => value));
  const rows = floats(1_000_000, ...Array.from({ length: bins - 1 }, () => 10));
  const ids = floats(...Array.from({ length: bins }, (_one, at) => at));
  const deleted = floats(10_000, ...Array.from({ length: bins - 1 }, () => 5));
  const totals = { ...STRIP.totals, indices: 0 };
  const model = { num_fragments: 30, num_bins: bins, first: 0, stop: 30, totals };
  part.show(model, [ids, all(1), rows, deleted, all(100), all(1), all(10)]);
  nextFrame();
  const blue = canvas.pen.drawn.filter(([style]) => style === "var(--lnb-replace)");
  assert.equal(blue.length, bins);
  assert.deepEqual(blue[0], ["var(--lnb-replace)", 0, 128.6, 276.63, 3.4]);
  assert.deepEqual(blue[1], ["var(--lnb-replace)", 277.63, 4, 0.77, 128]);
  const gone = canvas.pen.drawn.filter(([style]) => style === "var(--lnb-remove)");
  assert.deepEqual(gone[0], ["var(--lnb-remove)", 0, 128.6, 276.63, 1.5]);
  assert.deepEqual(gone[1], ["var(--lnb-remove)", 277.63, 4, 0.77, 64]);
  assert.equal(
    canvas.pen.drawn.some(([style]) => style === "var(--lnb-fork)"),
    false,
  );
  part.mark(1); // the frame of a thin bar is a pixel wide
  nextFrame();
  const frame = canvas.pen.drawn.find(([style]) => style === "var(--lnb-ink)");
  assert.deepEqual(frame, ["var(--lnb-ink)", 277.88, 3.75, 1, 128]);
  part.mark(0);
  const key = (name) =>
    send(strip, "keydown", { key: name, altKey: false, ctrlKey: false, metaKey: false });
  const chosen = () => Number(strip.getAttribute("aria-valuenow"));
  key("PageDown");
  assert.equal(chosen(), 10);
  key("PageDown");
  key("PageUp");
  assert.equal(chosen(), 10);
  key("+");
  key("-");
  assert.deepEqual(did, [
    [2, 18],
    [0, 30],
  ]);
  part.show({ ...model, num_fragments: 100, first: 40, stop: 70 }, [
    ids,
    all(1),
    rows,
    deleted,
    all(100),
    all(1),
    all(10),
  ]);
  key("-");
  assert.deepEqual(did.at(-1), [25, 85]);
  part.mark(29);
  assert.equal(chosen(), 29);
  key("+");
  assert.deepEqual(did.at(-1), [61, 70]);
  const one = [floats(7), floats(1), floats(10), floats(0), floats(9), floats(1), floats(10)];
  part.show({ ...model, num_bins: 1, first: 7, stop: 8 }, one);
  const before = did.length;
  key("+"); // a bar alone is not divided
  assert.equal(did.length, before);
  key("-");
  assert.deepEqual(did.at(-1), [6, 9]);
  ctx.close();
  assert.equal(
    observers.every((observer) => !observer.connected),
    true,
  );
});

test("of the pictures the newest four hundred are kept", async () => {
  const { ctx, did, part, closed } = pictures();
  part.reset({});
  let row = 0;
  const store = { rows: 0 };
  for (let turn = 0; turn < 34; turn += 1) {
    const { length } = did;
    part.want(0, 0, [0, 1]); // the toggle is shown
    const thumbs = [{ at: row, mime: "image/png", width: 4, height: 4 }];
    store.rows += 12;
    part.want(row % 20, (row % 20) + 1, [1]);
    ctx.kernel.asked.at(-1)?.answer({ thumbs }, [new ArrayBuffer(1)]);
    await until(() => did.length > length);
    row += 1;
    if (row === 20) break;
  }
  assert.equal(closed.length, 0);
  assert.equal(did.length, 20);
  const asked = ctx.kernel.asked.at(-1);
  const before = did.length;
  const thumbs = Array.from({ length: 400 }, (_one, at) => ({
    at: 1000 + at,
    mime: "image/png",
    width: 4,
    height: 4,
  }));
  asked.answer(
    { thumbs },
    thumbs.map(() => new ArrayBuffer(1)),
  );
  await until(() => did.length > before);
  assert.equal(closed.length, 20); // those before them
});

test("deleted rows of a part begin at whole rows", () => {
  const ctx = fakeContext();
  const element = sized(deletionMap(ctx, { version: 3 }, 7, 5000), { width: 300 });
  document.body.append(element);
  nextFrame();
  const asked = () => ctx.kernel.last("storage.deletions");
  const part = { first: 9, stop: 4999, num_rows: 5000, num_deleted: 1, rows_per_pixel: 998 };
  asked().answer(part, [new Uint8Array([0, 255, 51, 0, 0]).buffer]);
  nextFrame();
  button(element, "Zoom in").click();
  assert.deepEqual([asked().args.first, asked().args.rows], [1880, 1248]);
  const canvas = element.querySelector("canvas");
  assert.deepEqual([canvas.style.width, canvas.style.height], ["297px", "9px"]);
  const [, closer] = [null, button(element, "Zoom in")];
  assert.equal(closer.disabled, false);
  send(sized(canvas, { width: 297 }), "click", { clientX: 44, clientY: 3 });
  assert.deepEqual([asked().args.first, asked().args.rows], [3377, 1248]);
});

test("a list is named by its kind, its rows by their place", () => {
  const { part, asked, key } = list();
  part.set({ kind: "branch" });
  assert.equal(part.element.getAttribute("aria-label"), "branches");
  assert.equal(part.element.classList.contains("lnb-rl-tags"), false);
  part.set({ kind: "tag" });
  assert.equal(part.element.getAttribute("aria-label"), "tags");
  assert.equal(part.element.classList.contains("lnb-rl-tags"), true);
  assert.equal(part.kind, "tag");
  const lines = Array.from({ length: 100 }, (_one, at) => branch(`t${at}`));
  asked().answer({ matching: 100, first: 0, lines });
  nextFrame();
  const row = part.element.querySelector(".lnb-rl-space").children[3];
  assert.equal(row.getAttribute("aria-rowindex"), "5");
  assert.equal(row.style.top, "84px");
  assert.equal(row.getAttribute("aria-selected"), "false");
  row.click();
  nextFrame();
  assert.equal(row.getAttribute("aria-selected"), "true");
  part.element.scrollTop = 50 * 28;
  send(part.element, "scroll");
  nextFrame();
  assert.equal(row.parentNode, null); // out of sight
  assert.equal(part.element.hasAttribute("aria-activedescendant"), false);
  key("ArrowUp");
  assert.equal(part.element.scrollTop, 2 * 28);
  const other = button(part.element, "tag");
  assert.equal(other.parentElement.getAttribute("aria-sort"), "ascending");
  other.click();
  assert.equal(button(part.element, "tag").parentElement.getAttribute("aria-sort"), "descending");
});
