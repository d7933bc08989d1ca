// The pictures of a cell before and after a change.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { picturePair } from "../../lance_nb/explorer/changes/picture_pair.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, send } from "./light_page.js";

beforeEach(() => {
  globalThis.createImageBitmap = async (_blob, { resizeWidth: width, resizeHeight: height }) => ({
    width,
    height,
    close() {},
  });
});
afterEach(() => delete globalThis.createImageBitmap);
const ARGS = { row: 3, column: 1 };
const about = { at: 3, mime: "image/png", width: 40, height: 30 };
const until = async (ready) => {
  for (let turn = 0; turn < 50 && !ready(); turn += 1) await settled();
};

async function pair(changed, answers) {
  const ctx = fakeContext();
  const element = picturePair(ctx, ARGS, changed);
  const { asked } = ctx.kernel;
  answers.forEach((thumbs, index) =>
    asked[index].answer(
      { thumbs },
      thumbs.map(() => new DataView(new ArrayBuffer(1))),
    ),
  );
  await until(() => element.firstChild);
  return { element, asked };
}

test("both pictures are shown side by side, as a swipe, or as their difference", async () => {
  const { element, asked } = await pair(true, [[about], [about]]);
  assert.deepEqual(
    asked.map(({ type, args }) => [type, args]),
    [
      ["changes.thumbs", { ...ARGS, count: 1, old: true }],
      ["changes.thumbs", { ...ARGS, count: 1 }],
    ],
  );
  const names = [...element.querySelectorAll("canvas")].map((canvas) =>
    canvas.getAttribute("aria-label"),
  );
  assert.deepEqual(names, ["before", "after"]);
  const border = element.querySelector("input");
  assert.deepEqual([element.dataset.mode, border.hidden], ["beside", true]);
  button(element, "Swipe").click();
  assert.deepEqual([element.dataset.mode, border.hidden], ["swipe", false]);
  border.value = "20";
  send(border, "input");
  assert.match(element.querySelector(".lnb-pair-stage").getAttribute("style"), /--lnb-part: ?20%/);
  button(element, "Difference").click();
  assert.deepEqual([element.dataset.mode, border.hidden], ["difference", true]);
  assert.equal(button(element, "Difference").getAttribute("aria-pressed"), "true");
  assert.equal(button(element, "Swipe").getAttribute("aria-pressed"), "false");
});

test("one picture stands alone, none leaves nothing", async () => {
  const { element } = await pair(false, [[about]]);
  assert.equal(element.querySelectorAll("canvas").length, 1);
  assert.equal(element.querySelector("button"), null);
  const added = await pair(true, [[], [about]]); // it was null
  assert.equal(added.element.querySelectorAll("canvas").length, 1);
  const ctx = fakeContext();
  const lost = picturePair(ctx, ARGS, false);
  await ctx.kernel.asked[0].fail({ message: "lost" });
  await settled();
  assert.equal(lost.firstChild, null);
});
