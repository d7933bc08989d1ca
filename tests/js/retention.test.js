// The clean-up simulator: the rule that is moved, what it says, and what it stages.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountRetention } from "../../lance_nb/explorer/retention/retention.js";
import { retentionButton } from "../../lance_nb/explorer/retention/retention_button.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, send, shown } from "./light_page.js";
import { press } from "./row_pages.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

const STATE = {
  branch: null, label: "main", versions: 21, oldest_days: 2.5, hidden_tags: 0, damaged: 0,
  tags: [{ name: "v1", label: "v1", version: 7 }],
}; // biome-ignore format: one answer
const MOVE = {
  versions: 14, files: 37, bytes: 14100, size: "14.1 KB", goes: [[1, 6], [8, 15]],
  stays: [[7, 7, "tag v1"], [16, 21, "one of the newest 6"]], code: { python: "ds.clean()" },
}; // biome-ignore format: one answer

async function simulator({ screen = { locked: false }, state = {} } = {}) {
  const kernel = fakeKernel();
  const ctx = fakeContext(screen, kernel);
  const el = h("div");
  document.body.append(el);
  const told = { goes: null, words: null, closed: 0 };
  const link = {
    put: (marks) => Object.assign(told, marks),
    close: () => {
      told.closed += 1;
    },
  };
  mountRetention(el, ctx, link);
  await kernel.last("retention.open").answer({ ...STATE, ...state });
  await settled();
  const slider = (label) => el.querySelector(`[aria-label="${label}"]`);
  const slide = (label, value) => {
    slider(label).value = value;
    send(slider(label), "input");
  };
  return { ctx, kernel, el, told, link, slide };
}

test("nothing is removed at first; each move asks for the rule", async () => {
  const { kernel, el, slide, ctx } = await simulator();
  assert.deepEqual(kernel.last("retention.move").args, { keep: 21, days: null, drop_tags: [] });
  kernel.last("retention.move").answer({ ...MOVE, versions: 0, files: 0, goes: [] });
  assert.match(shown(el), /21 of 21 versions/);
  assert.match(shown(el), /Nothing would be removed/);
  assert.equal(button(el, "Stage this clean-up").disabled, true);
  slide("keep the newest", "6");
  slide("and all younger than", "1");
  assert.deepEqual(kernel.last("retention.move").args, { keep: 6, days: 1, drop_tags: [] });
  kernel.last("retention.move").answer(MOVE);
  assert.match(shown(el), /6 of 21 versions/);
  assert.match(shown(el), /Would remove\|14 versions\|and free\|14\.1 KB\|in 37 files/);
  assert.equal(ctx.codes.at(-1).python, "ds.clean()");
});

test("the timeline is told which bars fade, and why others stay", async () => {
  const { kernel, told } = await simulator();
  kernel.last("retention.move").answer(MOVE);
  assert.deepEqual(
    [1, 7, 15, 16].map((at) => told.goes(null, at)),
    [true, false, true, false],
  );
  assert.equal(told.goes("dev", 1), false);
  assert.equal(told.words(null, 3), "would be removed");
  assert.equal(told.words(null, 7), "stays: tag v1");
  assert.equal(told.words("dev", 7), "");
  assert.equal(told.words(null, 99), "");
});

test("a tag that is switched off counts as deleted, and is staged first", async () => {
  const { ctx, kernel, el, slide } = await simulator();
  slide("keep the newest", "6");
  button(el, "⚑ v1").click();
  assert.deepEqual(kernel.last("retention.move").args.drop_tags, ["v1"]);
  kernel.last("retention.move").answer(MOVE);
  assert.match(shown(el), /Deleting 1 tag is staged as a card of its own/);
  button(el, "Stage this clean-up").click();
  assert.deepEqual(kernel.last("stage.add").args, {
    branch: null, version: 3, verb: "tag", args: { action: "delete", name: "v1" },
  }); // biome-ignore format: one request
  await kernel.last("stage.add").answer({});
  assert.deepEqual(kernel.last("stage.add").args, {
    branch: null, version: 3, verb: "cleanup", args: { keep: 6 },
  }); // biome-ignore format: one request
  await kernel.last("stage.add").answer({});
  await settled();
  assert.deepEqual(ctx.went, [["stage", undefined]]);
});

test("a version that is hovered names who keeps its files", async () => {
  const { kernel, el, told } = await simulator();
  kernel.last("retention.move").answer(MOVE);
  told.hovered("dev", 3);
  told.hovered(null, 2);
  told.hovered(null, 3);
  mock.timers.tick(200);
  assert.equal(kernel.count("retention.files"), 1);
  assert.equal(kernel.last("retention.files").args.version, 3);
  kernel.last("retention.files").answer({
    version: 3, goes: true, reason: "",
    files: [{ name: "<b>.lance", size: "9 B", goes: false, kept: "kept by main:7" }],
  }); // biome-ignore format: one answer
  assert.match(shown(el), /main:3\|would be removed\|=\|<b>\.lance\|9 B\|kept by main:7/);
  told.hovered(null, 4);
  mock.timers.tick(200);
  kernel.last("retention.files").fail({ message: "lost" });
  assert.match(shown(el), /problem: lost/);
});

test("staging waits for the lock, and for a survey of the dataset as it is now", async () => {
  const { ctx, kernel, el, told } = await simulator({
    screen: { locked: true },
    state: { damaged: 1 },
  });
  kernel.last("retention.move").answer(MOVE);
  assert.equal(button(el, "Stage this clean-up").disabled, true);
  assert.match(shown(el), /1 manifest cannot be read: a clean-up would be refused/);
  ctx.refresh({ locked: false });
  assert.equal(button(el, "Stage this clean-up").disabled, false);
  ctx.refresh({ news: { added: 1 } });
  assert.equal(button(el, "Stage this clean-up").disabled, true);
  assert.match(shown(el), /The dataset changed/);
  ctx.show({ branch: "dev", version: 4 });
  assert.equal(told.closed, 1);
  button(el, "Close").click();
  assert.equal(told.closed, 2);
});

test("a rule that fails says so", async () => {
  const { kernel, el } = await simulator();
  kernel.last("retention.move").fail({ message: "lost" });
  assert.match(shown(el), /problem: lost/);
});

test("the button is there with a kernel and a stage, and says when it cannot load", async () => {
  const kernel = fakeKernel();
  const ctx = fakeContext({}, kernel);
  let [painted, closed] = [0, 0];
  const goes = () => true;
  const repaint = () => {
    painted += 1;
  };
  ctx.shared.retention = { goes, words: () => "x", hovered: null, repaint };
  const cleanUp = retentionButton(ctx, () => {
    closed += 1;
  });
  document.body.append(cleanUp.button, cleanUp.panel);
  assert.equal(cleanUp.button.hidden, false);
  cleanUp.close(); // it is not open
  assert.equal(ctx.shared.retention.goes, goes);
  cleanUp.button.click();
  assert.equal(cleanUp.panel.hidden, false);
  await kernel.last("views.load").fail({ message: "lost" });
  await settled();
  assert.match(shown(cleanUp.panel), /problem: lost/);
  press(cleanUp.panel, "Enter");
  assert.equal(cleanUp.panel.hidden, false);
  press(cleanUp.panel, "Escape");
  assert.equal(cleanUp.panel.hidden, true);
  assert.deepEqual([painted, closed], [1, 1]);
  const { retention } = ctx.shared;
  assert.deepEqual([retention.goes(null, 1), retention.words(null, 1)], [false, ""]);
  retention.hovered(null, 1);
  cleanUp.button.click();
  for (const listener of kernel.stateListeners) listener("static");
  assert.deepEqual([cleanUp.button.hidden, cleanUp.panel.hidden], [true, true]);
});

test("a survey is outdated when the timeline lists other versions", async () => {
  const { ctx, kernel, el } = await simulator();
  kernel.last("retention.move").answer(MOVE);
  ctx.refresh({ card: {} });
  assert.equal(button(el, "Stage this clean-up").disabled, false);
  const timeline = structuredClone(ctx.screen().timeline);
  timeline.lanes[0].runs[1][1] += 1;
  ctx.refresh({ timeline });
  assert.equal(button(el, "Stage this clean-up").disabled, true);
});
