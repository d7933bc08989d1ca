// The strip of a long history: what it draws, the window on it, and how it comes to be there.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mountHistoryStrip, spread } from "../../lance_nb/explorer/history/history_strip.js";
import { mountTimeline } from "../../lance_nb/explorer/history/timeline.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { holdViews } from "../../lance_nb/explorer/js/tab_host.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { fakeContext, fakeKernel, settled, timeline } from "./fake_context.js";
import { nextFrame, observers, send } from "./light_page.js";

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  holdViews("history/history_strip.js", { mount: mountHistoryStrip });
});
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const WIDE = 1000;

async function mounted({ versions = 5000, state = "live", tags = [], lanes = [] } = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const model = timeline();
  model.lanes = [{ ...model.lanes[0], runs: [[1, versions]], details: [] }, ...lanes];
  Object.assign(model, { tags, version: versions });
  const ctx = fakeContext({ timeline: model, version: versions }, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  document.body.append(el);
  mountTimeline(el, ctx);
  const scroller = el.querySelector(".lnb-tl-scroll");
  Object.defineProperty(scroller, "clientWidth", { value: 700, configurable: true });
  scroller.scrollLeft = 0;
  observers.at(-1).fire([]);
  await settled();
  await settled();
  const strip = el.querySelector(".lnb-hs");
  if (strip) {
    Object.defineProperty(strip, "clientWidth", { value: WIDE });
    strip.getBoundingClientRect = () => ({ left: 100, top: 0, width: WIDE, height: 16 });
  }
  const frame = () => {
    nextFrame();
    send(scroller, "scroll");
    nextFrame();
  };
  frame();
  const pane = el.querySelector(".lnb-hs-window");
  const key = (name, held = {}) => {
    const event = send(pane, "keydown", {
      key: name, altKey: false, ctrlKey: false, metaKey: false, ...held,
    }); // biome-ignore format: one event
    frame();
    return event;
  };
  const pointer = (target, type, place) => {
    send(target, type, { clientX: 100 + (place * WIDE) / versions, pointerId: 1, button: 0 });
    frame();
  };
  const sight = () => pane.getAttribute("aria-valuetext");
  const pen = () => el.querySelector(".lnb-hs canvas").getContext("2d");
  return { ctx, el, scroller, strip, pane, key, pointer, sight, frame, pen };
}

test("a history that the bars can show has no strip", async () => {
  const { el, ctx } = await mounted({ versions: 99 });
  assert.equal(el.querySelector(".lnb-tl-strip").hidden, true);
  assert.equal(el.querySelector(".lnb-hs"), null);
  assert.equal(el.querySelector(".lnb-tl-with-strip"), null);
  assert.equal(ctx.kernel.count("versions.outline"), 0);
});

test("where the strip cannot be loaded it leaves no room empty", async () => {
  holdViews("history/history_strip.js", {
    mount() {
      throw new Error("not there");
    },
  });
  const { el } = await mounted();
  assert.equal(el.querySelector(".lnb-tl-strip").hidden, true);
  assert.equal(el.querySelector(".lnb-tl-with-strip"), null);
  assert.ok(el.querySelectorAll(".lnb-tl-bar").length > 0);
});

test("the window is a slider that says which versions the bars show", async () => {
  const { pane, sight, strip } = await mounted();
  assert.equal(pane.getAttribute("role"), "slider");
  assert.equal(sight(), "versions 4,956 to 5,000 of 5,000 versions");
  assert.deepEqual(
    ["aria-valuemin", "aria-valuemax", "aria-valuenow"].map((one) => pane.getAttribute(one)),
    ["1", "5000", "4956"],
  );
  assert.equal(pane.style.width, "10px"); // wide enough to take hold of
  assert.match(strip.getAttribute("title"), /^versions 4,956 to 5,000 of 5,000 versions: drag/);
  assert.equal(strip.querySelectorAll("*").length, 4);
});

test("keys move the window by a part, by all of it, and to the ends", async () => {
  const { key, sight } = await mounted();
  assert.equal(key("Home").defaultPrevented, true);
  assert.equal(sight(), "versions 1 to 50 of 5,000 versions");
  key("PageDown");
  assert.equal(sight(), "versions 51 to 100 of 5,000 versions");
  key("ArrowRight");
  assert.equal(sight(), "versions 56 to 105 of 5,000 versions");
  key("ArrowLeft");
  key("PageUp");
  assert.equal(sight(), "versions 1 to 50 of 5,000 versions");
  key("ArrowLeft");
  assert.equal(sight(), "versions 1 to 50 of 5,000 versions");
  key("End");
  assert.match(sight(), /^versions 4,95\d to 5,000 /);
  assert.equal(key("x").defaultPrevented, false);
  assert.equal(key("Home", { ctrlKey: true }).defaultPrevented, false);
});

test("plus and minus resize the window as far as bars can be told apart", async () => {
  const { key, sight, el } = await mounted();
  key("Home");
  for (let times = 0; times < 20; times += 1) key("-");
  assert.equal(sight(), "versions 1 to 175 of 5,000 versions"); // 4 pixels each
  assert.ok(el.querySelector(".lnb-tl-narrow"));
  for (let times = 0; times < 30; times += 1) key("+");
  assert.match(sight(), /^versions (\d+) to (\d+) of/);
  const [, low, high] = sight().match(/^versions (\d+) to (\d+) of/);
  assert.ok(high - low <= 13); // 56 pixels each
  assert.equal(el.querySelector(".lnb-tl-narrow"), null);
});

test("a click takes the window there, and it is dragged on from where it was taken", async () => {
  const { strip, pane, pointer, sight } = await mounted();
  pointer(strip, "pointerdown", 2500);
  assert.equal(sight(), "versions 2,476 to 2,525 of 5,000 versions");
  pointer(strip, "pointermove", 3000);
  assert.equal(sight(), "versions 2,976 to 3,025 of 5,000 versions");
  pointer(strip, "pointerup", 3000);
  pointer(strip, "pointermove", 100);
  assert.equal(sight(), "versions 2,976 to 3,025 of 5,000 versions");
  pointer(pane, "pointerdown", 3020);
  assert.equal(sight(), "versions 2,976 to 3,025 of 5,000 versions");
  pointer(strip, "pointermove", 3040);
  assert.equal(sight(), "versions 2,996 to 3,045 of 5,000 versions");
  pointer(strip, "pointercancel", 3040);
});

test("an edge is dragged while the other one stays", async () => {
  const { pane, strip, pointer, key, sight } = await mounted();
  key("Home");
  for (let times = 0; times < 40; times += 1) key("PageDown");
  assert.equal(sight(), "versions 2,001 to 2,050 of 5,000 versions");
  const [first, last] = pane.querySelectorAll("i");
  pointer(last, "pointerdown", 2050);
  pointer(strip, "pointermove", 2100);
  assert.equal(sight(), "versions 2,001 to 2,100 of 5,000 versions");
  pointer(strip, "pointerup", 2100);
  pointer(first, "pointerdown", 2000);
  pointer(strip, "pointermove", 2050);
  assert.equal(sight(), "versions 2,051 to 2,100 of 5,000 versions");
  pointer(strip, "pointerup", 2050);
});

test("the rows of versions all over the branch are asked for, piece by piece", async () => {
  const { ctx, pen } = await mounted();
  const first = ctx.kernel.last("versions.outline");
  assert.equal(first.args.numbers.length, 256);
  assert.deepEqual(first.args.numbers.slice(0, 5), [5000, 1, 2501, 1251, 3750]);
  assert.deepEqual([first.args.branch, first.args.version], [null, 5000]);
  assert.equal(first.options.quiet, true);
  const bars = () => pen().drawn.filter(([, , , , tall]) => tall > 1 && tall !== 16);
  const before = bars().length;
  const left = first.args.numbers.slice(2);
  first.answer({
    points: [
      [5000, 100, 1],
      [1, 50, 1],
    ],
    left,
    most: 256,
  });
  assert.equal(bars().length, before + 2);
  const heights = bars().map((box) => box[4]);
  assert.deepEqual(heights.slice(-2), [6, 12]);
  const second = ctx.kernel.last("versions.outline");
  assert.deepEqual(second.args.numbers, left.slice(0, 254));
  second.answer({ points: [[2501, null, null]], left: left.slice(1), most: 3 });
  assert.equal(ctx.kernel.count("versions.outline"), 2); // of a store far away no more than 3
});

test("tags, branches, A and B are marks", async () => {
  const dev = {
    branch: "dev",
    label: "dev",
    runs: [[4, 2]],
    older: 0,
    fork: [null, 1000],
    details: [],
  };
  const { ctx, pen, frame } = await mounted({
    tags: [{ name: "v1", branch: null, version: 2500 }],
    lanes: [dev],
  });
  const marks = () => pen().drawn.filter(([, , , wide]) => wide === 1.5 || wide === 2);
  assert.deepEqual(
    marks().map(([, x, y, , tall]) => [Math.round(x), y, tall]),
    [[199, 8, 8], [499, 0, 8], [999, 0, 16]],
  ); // biome-ignore format: pairs
  ctx.range.set({ a: { branch: null, version: 4000 } });
  frame();
  const places = marks().map(([, x]) => Math.round(x));
  assert.deepEqual(places, [199, 499, 799, 999]);
});

test("a move of the window draws nothing anew", async () => {
  const { key, pen } = await mounted();
  let cleared = 0;
  const { clearRect } = pen();
  pen().clearRect = (...box) => {
    cleared += 1;
    clearRect(...box);
  };
  for (let times = 0; times < 20; times += 1) key("PageUp");
  assert.equal(cleared, 0);
});

test("without a kernel the strip has what the page knows", async () => {
  const { ctx, sight } = await mounted({ state: "static" });
  assert.equal(ctx.kernel.count("versions.outline"), 0);
  assert.match(sight(), /of 5,000 versions$/);
});

test("numbers are spread evenly, the coarse ones first", () => {
  assert.deepEqual(spread([1, 2, 3, 4, 5], 5), [5, 1, 3, 2, 4]);
  assert.deepEqual(spread([7], 5), [7]);
  const numbers = Array.from({ length: 5000 }, (_, at) => at + 1);
  const found = spread(numbers, 256);
  assert.equal(new Set(found).size, 256);
  const sorted = [...found].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((one, at) => one - sorted[at]);
  assert.ok(Math.max(...steps) <= 40);
});
