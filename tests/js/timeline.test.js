// The timeline: bars of the versions in sight, flags, forks, what a person reads and does there.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mountTimeline } from "../../lance_nb/explorer/history/timeline.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { fakeContext, fakeKernel, timeline } from "./fake_context.js";
import { button, nextFrame, observers, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const fact = (version, more = {}) => ({
  version, time: "then", time_ms: null, operation: "Append", message: "", rows: 10, added: 1,
  removed: 0, ...more,
}); // biome-ignore format: one version

function mounted(screen = {}, { width = 700, state = "live" } = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext(screen, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  document.body.append(el);
  mountTimeline(el, ctx);
  const scroller = el.querySelector(".lnb-tl-scroll");
  Object.defineProperty(scroller, "clientWidth", { value: width, configurable: true });
  Object.defineProperty(el.querySelector(".lnb-tl-frame"), "clientWidth", { value: width + 100 });
  scroller.scrollLeft = 0;
  observers.at(-1).fire([]);
  nextFrame();
  const plane = el.querySelector(".lnb-tl-plane");
  const labels = () =>
    [...el.querySelectorAll(".lnb-tl-bar")].map((one) => one.getAttribute("aria-label"));
  const bar = (label) =>
    [...el.querySelectorAll(".lnb-tl-bar")].find((one) =>
      one.getAttribute("aria-label").startsWith(label),
    );
  const readout = () => shown(el.querySelector(".lnb-tl-readout"));
  const key = (name, held = {}) => {
    const event = send(plane, "keydown", {
      key: name, altKey: false, ctrlKey: false, metaKey: false, ...held,
    }); // biome-ignore format: one event
    nextFrame();
    return event;
  };
  return { ctx, el, plane, scroller, labels, bar, readout, key };
}

test("every version in sight is a bar with its words", () => {
  const { el, plane, labels, bar } = mounted();
  assert.deepEqual(labels(), [
    "main version 1, Rows added (Append), +10 rows",
    "main version 2, tagged v1, v1b, Rows added (Append), +5 rows −1 row",
    "main version 3, Rows added (Append), −2 rows",
    "main version 6",
    "main version 7",
    "dev version 4, Rows added (Append), 10 rows",
    "dev version 5, tagged d",
  ]);
  const here = bar("main version 3");
  assert.equal(here.getAttribute("aria-selected"), "true");
  assert.equal(here.className, "lnb-tl-bar lnb-op-add lnb-here");
  assert.equal(bar("main version 6").className, "lnb-tl-bar lnb-op-unknown");
  assert.equal(bar("dev version 4").className, "lnb-tl-bar lnb-op-add lnb-thin");
  assert.equal(plane.getAttribute("aria-activedescendant"), here.id);
  assert.deepEqual([here.querySelector("i").textContent, shown(here)], ["+", "+"]);
  const left = (one) => Number.parseFloat(one.style.left);
  assert.ok(left(bar("main version 1")) < left(bar("main version 2")));
  assert.equal(left(bar("main version 3")) < left(bar("dev version 4")), true);
  const high = (one) => Number.parseFloat(one.querySelector("b").style.height);
  assert.ok(high(bar("main version 1")) > high(bar("main version 3")));
  assert.deepEqual(texts(el, ".lnb-tl-name"), ["main", "dev"]);
  assert.equal(
    el.querySelectorAll(".lnb-tl-name")[1].title,
    "dev: forked from main:3; drag it onto another branch to merge, or press M",
  );
  assert.equal(el.querySelectorAll(".lnb-tl-fork").length, 1);
  assert.deepEqual(
    [...el.querySelectorAll(".lnb-tl-gap")].map((one) => one.title),
    ["versions 4 to 5 were cleaned up"],
  );
});

test("details of versions without any are requested once, by branch", () => {
  const { ctx, labels } = mounted();
  const asked = ctx.kernel.asked.filter((one) => one.type === "versions");
  assert.deepEqual(
    asked.map((one) => one.args),
    [
      { branch: null, version: 7, numbers: [6, 7] },
      { branch: "dev", version: 5, numbers: [5] },
    ],
  );
  asked[0].answer({ details: [fact(6, { operation: "Delete", added: 0, removed: 3 })] });
  nextFrame();
  assert.ok(labels().includes("main version 6, Rows deleted (Delete), −3 rows"));
  assert.ok(labels().includes("main version 7"));
  asked[1].fail({ message: "lost" });
  nextFrame();
  // Neither what was missing from an answer nor what failed is asked for again.
  const numbers = ctx.kernel.asked
    .filter((one) => one.type === "versions")
    .map((one) => one.args.numbers);
  assert.equal(numbers.filter((one) => one.includes(7) && one.length === 1).length, 0);
});

test("without a kernel nothing is requested, and what is known is shown", () => {
  const { ctx, labels } = mounted({}, { state: "static" });
  assert.equal(ctx.kernel.asked.length, 0);
  assert.equal(labels().length, 7);
});

test("a click travels to a version, with Shift it compares", () => {
  const { ctx, bar } = mounted();
  send(bar("main version 2"), "click");
  assert.deepEqual(ctx.travels, [{ branch: null, version: 2 }]);
  assert.match(ctx.announced[0], /^main version 2, tagged v1, v1b/);
  assert.equal(ctx.range.pinned, false);
  send(bar("dev version 5"), "click", { shiftKey: true });
  assert.deepEqual(ctx.went, [["changes", undefined]]);
  assert.deepEqual(ctx.range.get().a, { branch: null, version: 3 });
  assert.deepEqual(ctx.travels.at(-1), { branch: "dev", version: 5 });
});

test("a click beside the bars does nothing, a flag travels to its tag", () => {
  const { ctx, el, plane } = mounted();
  send(plane, "click");
  assert.deepEqual(ctx.travels, []);
  const flag = [...el.querySelectorAll(".lnb-tl-flag")].find((one) => one.title.includes("tag d"));
  flag.click();
  assert.deepEqual(ctx.travels, [{ branch: "dev", version: 5 }]);
});

test("keys walk from version to version, faster than answers come", () => {
  const { ctx, key } = mounted();
  assert.equal(key("ArrowRight").defaultPrevented, true);
  key("ArrowRight");
  assert.deepEqual(
    ctx.travels.map((one) => one.version),
    [6, 7],
  );
  key("ArrowDown");
  assert.deepEqual(ctx.travels.at(-1), { branch: "dev", version: 5 });
  assert.equal(key("ArrowRight", { ctrlKey: true }).defaultPrevented, false);
  assert.equal(key("x").defaultPrevented, false);
  assert.equal(ctx.travels.length, 3);
  assert.equal(key("[").defaultPrevented, true);
  assert.deepEqual(ctx.range.get().a, { branch: null, version: 1 });
});

test("the line below reads the version shown, or the one under the pointer", () => {
  const { el, plane, bar, readout } = mounted();
  assert.equal(readout(), "main:3|Rows added (Append) · −2 rows");
  send(bar("main version 2"), "pointerover");
  assert.equal(readout(), "main:2|Rows added (Append) · +5 rows −1 row");
  send(bar("main version 7"), "pointerover");
  assert.equal(readout(), "main:7");
  send(plane, "pointerleave");
  assert.equal(readout(), "main:3|Rows added (Append) · −2 rows");
  assert.equal(el.querySelectorAll(".lnb-tl-reset").length, 0);
});

test("a message and the age of a version are read, as text", () => {
  const model = timeline();
  Object.assign(model.lanes[0].details[2], { message: HOSTILE, time: "today", time_ms: 1000 });
  model.lanes[1].label = HOSTILE;
  const { el, readout } = mounted({ timeline: model });
  assert.ok(
    readout().startsWith(`main:3|Rows added (Append) · −2 rows · “${HOSTILE}”|today ·|just now`),
  );
  assert.ok(texts(el, ".lnb-tl-name").includes(HOSTILE));
  assert.equal(el.querySelector("img"), null);
});

test("a range that was chosen is summed up until A is free again", () => {
  const { ctx, el, readout } = mounted();
  ctx.range.set({ a: { branch: null, version: 1 } });
  nextFrame();
  assert.equal(readout(), "main:1 → main:3|2 versions · +5 −3 rows|[Unpin A]{A follows B again}");
  ctx.range.set({ a: { branch: null, version: 7 } });
  nextFrame();
  assert.match(
    readout(),
    /^main:7 → main:3\|2 versions back · .* and 2 not counted yet, without 2/,
  );
  ctx.range.set({ a: { branch: "dev", version: 4 } });
  nextFrame();
  assert.match(readout(), /^dev:4 → main:3\|on different branches\|/);
  ctx.range.set({ a: { branch: null, version: 3 } });
  nextFrame();
  assert.match(readout(), /\|the same version\|/);
  button(el, "Unpin A").click();
  nextFrame();
  assert.equal(readout(), "main:3|Rows added (Append) · −2 rows");
  ctx.range.set({ a: { branch: null, version: 1 } }, { dragging: true });
  nextFrame();
  assert.equal(readout(), "main:1 → main:3|2 versions · +5 −3 rows");
});

test("a range that was chosen is counted as the tab of changes counts it", async () => {
  const { ctx, readout } = mounted();
  ctx.has = () => true;
  const [a, b] = [1, 3].map((version) => ({ branch: null, version }));
  ctx.range.set({ a }, { dragging: true });
  assert.equal(ctx.kernel.count("changes.counts"), 0);
  ctx.range.set({ a });
  assert.equal(ctx.kernel.count("changes.counts"), 0); // the tab of changes may do it
  mock.timers.tick(400);
  const asked = ctx.kernel.last("changes.counts");
  assert.deepEqual([asked.args, asked.options.quiet], [{ a, b, key: null }, true]);
  const rows = { id: "rows", added: 4, removed: 2, changed: 0, bound: true, note: "" };
  await asked.answer({ chips: [{ id: "drift" }, rows] });
  nextFrame();
  assert.match(readout(), /2 versions · ≤ \+4 −2 rows/);
  ctx.range.set({ a }); // known already
  mock.timers.tick(400);
  assert.equal(ctx.kernel.count("changes.counts"), 1);
  ctx.range.set({ a: { branch: null, version: 2 } });
  mock.timers.tick(400);
  ctx.range.compare({ branch: null, version: 2 }, b, { ...rows, bound: false, added: 1 });
  await ctx.kernel.last("changes.counts").answer({ chips: [rows] }); // counted row by row meanwhile
  nextFrame();
  assert.match(readout(), /1 version · \+1 −2 rows/);
  ctx.range.set({ a: { branch: null, version: 1 } });
  ctx.range.set({ a: null }); // A follows B: the bar itself says what changed
  mock.timers.tick(400);
  mock.timers.tick(400);
  assert.equal(ctx.kernel.count("changes.counts"), 2);
});

test("numbers of versions that were compared are told in place of sums", () => {
  const { ctx, readout } = mounted();
  const a = { branch: null, version: 1 };
  const b = { branch: null, version: 3 };
  ctx.range.set({ a });
  const counts = { added: 0, removed: 2, changed: 1500, bound: false, note: "" };
  ctx.range.compare(a, b, counts);
  nextFrame();
  assert.match(readout(), /^main:1 → main:3\|2 versions · −2 ~1,500 rows\|/);
  ctx.range.compare(a, b, { ...counts, bound: true, changed: 0, added: 1 });
  nextFrame();
  assert.match(readout(), /\|2 versions · ≤ \+1 −2 rows\|/);
  ctx.range.compare(a, b, { ...counts, removed: 0, changed: 0, note: "values may differ" });
  nextFrame();
  assert.match(readout(), /\|2 versions · values may differ\|/);
  ctx.range.compare({ branch: "dev", version: 4 }, b, counts);
  nextFrame();
  assert.match(readout(), /\|2 versions · \+5 −3 rows\|/); // of others nothing is told
  ctx.range.set({ a: { branch: "dev", version: 4 } });
  nextFrame();
  assert.match(readout(), /\|on different branches · −2 ~1,500 rows\|/);
});

test("only bars in sight exist, however many versions there are", () => {
  const model = timeline();
  model.lanes = [{ ...model.lanes[0], runs: [[1, 5000]], details: [], older: 3 }];
  Object.assign(model, { tags: [], hidden_branches: 2 });
  const { ctx, el, scroller, labels } = mounted({ timeline: model });
  assert.ok(labels().length < 80);
  assert.equal(labels()[0], "main version 1");
  const asked = ctx.kernel.last("versions").args.numbers;
  assert.ok(asked.length <= 64 && asked.length > 0);
  assert.deepEqual(texts(el, ".lnb-tl-name"), ["main", "2 more branches · 3 older"]);
  assert.equal(
    [...el.querySelectorAll(".lnb-tl-name")][1].title,
    "not shown: 2 branches, 3 older versions",
  );
  scroller.scrollLeft = 14 * 2000;
  send(scroller, "scroll");
  nextFrame();
  assert.ok(!labels().includes("main version 1"));
  assert.ok(labels().includes("main version 2010"));
  assert.ok(labels().length < 80);
});

test("another screen marks another version and keeps the details", () => {
  const { ctx, bar, readout } = mounted();
  ctx.kernel.last("versions").answer({ details: [] });
  ctx.kernel.asked[0].answer({ details: [fact(7, { operation: "Update" })] });
  ctx.show({ version: 7 });
  nextFrame();
  assert.equal(bar("main version 7").getAttribute("aria-selected"), "true");
  assert.equal(bar("main version 3").getAttribute("aria-selected"), "false");
  assert.match(readout(), /^main:7\|Rows changed \(Update\) · \+1 row/);
  ctx.show({ timeline: { error: { title: "Damaged" } } });
  nextFrame();
  assert.match(readout(), /^main:7\|Rows changed/);
  ctx.close();
  assert.equal(observers[0].connected, false);
});

test("the axis has numbers that do not stand in each other's way, nor under a handle", () => {
  const few = mounted();
  assert.deepEqual(texts(few.el, ".lnb-tl-number"), ["1", "4", "5", "6", "7"]); // A at 2, B at 3
  const model = timeline();
  model.lanes = [{ ...model.lanes[0], runs: [[1, 5000]], details: [] }];
  model.tags = [];
  const many = mounted({ timeline: model });
  const numbers = texts(many.el, ".lnb-tl-number").map(Number);
  assert.deepEqual(numbers.slice(0, 3), [10, 13, 16]); // 14 pixels a version, 40 a number
  const numbersAt = (slot) =>
    texts(mounted({}, { width: 72 + 7 * slot }).el, ".lnb-tl-number").map(Number);
  assert.deepEqual(numbersAt(40), [5, 6, 7]); // one for each version, but beside the handles
  assert.deepEqual(numbersAt(23), [5, 7]); // 46 pixels from a handle are enough
});

test("the version shown is scrolled into sight, unless it is there already", () => {
  const model = timeline();
  model.lanes = [{ ...model.lanes[0], runs: [[1, 5000]], details: [] }];
  model.tags = [];
  const { ctx, scroller, labels } = mounted({ timeline: model, version: 4000 });
  const left = scroller.scrollLeft;
  assert.ok(left < 14 * 3999 && left + 700 > 14 * 4000);
  assert.ok(labels().includes("main version 4000"));
  ctx.show({ version: 4001 });
  assert.equal(scroller.scrollLeft, left);
  ctx.show({ version: 5000 });
  assert.equal(scroller.scrollLeft, 14 * 5000 + 72 - 700); // no further than the end
});

const merged = (kind, branch, version, there = true) => ({
  merge: { kind, branch, version, there, words: `${kind} of ${branch ?? "main"}:${version}` },
});

test("branches without a version of their own have no lane until somebody wants all", () => {
  const model = timeline();
  const empty = (branch) => ({
    ...model.lanes[1], branch, label: branch, runs: [[3, 1]], fork: [null, 3], details: [],
  }); // biome-ignore format: one lane
  model.lanes.push(empty("idea"), empty("other"), empty("tagged"));
  model.tags.push({ name: "t", branch: "tagged", version: 3 });
  const { el, ctx } = mounted({ timeline: model });
  const names = () => texts(el, ".lnb-tl-names > *");
  assert.deepEqual(names(), ["main", "dev", "tagged", "2 more branches"]);
  const height = parseFloat(el.querySelector(".lnb-tl-plane").style.height);
  button(el, "2 more branches").click();
  assert.deepEqual(names(), ["main", "dev", "idea", "other", "tagged", "fewer branches"]);
  assert.ok(parseFloat(el.querySelector(".lnb-tl-plane").style.height) > height);
  button(el, "fewer branches").click();
  assert.deepEqual(names(), ["main", "dev", "tagged", "2 more branches"]);
  ctx.show({ branch: "idea", version: 3 }); // it is shown now, and one alone takes little room
  assert.deepEqual(names(), ["main", "dev", "idea", "other", "tagged"]);
});

test("merges are lines between the two versions, picked changes are dashed", () => {
  const model = timeline();
  model.lanes[0].details.push(fact(6, merged("merge", "dev", 4)));
  model.lanes[1].details.push(fact(4, merged("merge", "gone", 5, false)));
  model.lanes[1].details.push(fact(5, merged("cherry-pick", null, 2)));
  const { el, ctx, labels } = mounted({ timeline: model });
  const found = [...el.querySelectorAll(".lnb-tl-merge")];
  assert.equal(found.length, 2, "a branch that was deleted has no line");
  assert.deepEqual(
    found.map((one) => one.getAttribute("class").includes("lnb-tl-picked")),
    [false, true],
  );
  assert.match(found[0].getAttribute("d"), /H.*Q.*V/);
  assert.match(found[1].getAttribute("d"), /C/);
  assert.ok(labels().includes("main version 6, Rows added (Append), merge of dev:4, +1 row"));
  ctx.kernel.asked
    .find((one) => one.type === "versions")
    .answer({
      details: [fact(7, merged("merge", "dev", 9)), fact(3, merged("revert", null, 2))],
    });
  nextFrame();
  assert.equal(el.querySelectorAll(".lnb-tl-merge").length, 3, "dev has no version 9");
});

test("a branch label that is dropped on another lane starts a merge", () => {
  const { ctx, el, readout } = mounted();
  const [main, dev] = el.querySelectorAll(".lnb-tl-name");
  el.querySelector(".lnb-tl-names").getBoundingClientRect = () => ({ top: 100 });
  const at = (y, button = 0) => ({ clientY: 100 + y, button, pointerId: 1 });
  send(dev, "pointerdown", at(90));
  send(dev, "pointermove", at(88));
  assert.ok(!dev.classList.contains("lnb-held"), "a press that hardly moves is none");
  send(dev, "pointermove", at(60));
  assert.ok(main.classList.contains("lnb-aimed") && dev.classList.contains("lnb-held"));
  assert.equal(readout(), "Merge dev into main");
  send(dev, "pointermove", at(400));
  assert.equal(readout(), "Merge dev into…");
  send(dev, "pointerup", at(400));
  assert.deepEqual(ctx.went, [], "let go beside every branch");
  send(dev, "pointerdown", at(90));
  send(dev, "pointermove", at(20));
  send(dev, "pointerup", at(20));
  assert.deepEqual(ctx.went, [["refs", { merge: { source: "dev", into: "main" } }]]);
  assert.ok(!readout().startsWith("Merge"));
  send(dev, "pointerdown", at(90));
  send(dev, "pointerup", at(90));
  assert.deepEqual(ctx.travels, [{ branch: "dev", version: 5 }], "a click goes to its newest");
});

test("a merge is started with the keyboard alone", () => {
  const { ctx, el, readout } = mounted();
  const [main, dev] = el.querySelectorAll(".lnb-tl-name");
  const press = (one, key) =>
    send(one, "keydown", { key, altKey: false, ctrlKey: false, metaKey: false });
  assert.deepEqual(
    [main, dev].map((one) => one.getAttribute("tabindex")),
    ["0", "-1"],
  );
  press(main, "ArrowDown");
  press(dev, "m");
  assert.match(ctx.announced.at(-1), /dev is picked up/);
  press(dev, "ArrowUp");
  assert.equal(readout(), "Merge dev into main");
  assert.equal(ctx.announced.at(-1), "Enter merges into main");
  press(main, "Escape");
  press(main, "Enter");
  assert.deepEqual(ctx.went, []);
  assert.deepEqual(ctx.travels, [{ branch: null, version: 7 }]);
  press(main, " ");
  press(main, "ArrowDown");
  press(dev, "Enter");
  assert.deepEqual(ctx.went, [["refs", { merge: { source: "main", into: "dev" } }]]);
});

test("labels start no merge where there is nothing to merge with", () => {
  const { ctx, el } = mounted({}, { state: "static" });
  const dev = el.querySelectorAll(".lnb-tl-name")[1];
  assert.equal(dev.title, "dev: forked from main:3");
  send(dev, "keydown", { key: "m", altKey: false, ctrlKey: false, metaKey: false });
  assert.deepEqual([ctx.went, ctx.announced], [[], []]);
});
