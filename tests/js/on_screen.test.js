// What is on the screen is told to the kernel when it has been still for a moment, and only then.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { onScreen, STILL_MS } from "../../lance_nb/explorer/js/on_screen.js";
import { fakeKernel } from "./fake_context.js";
import { send } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

/** A screen with one view; `state` is what the view says, `act` is something that a person does. */
function opened(kernel = fakeKernel()) {
  const root = document.createElement("section");
  const state = { row: 0 };
  const said = onScreen(kernel, root, () => ({ version: 3 }));
  said.describe("rows", () => ({ ...state }));
  const act = (change, name = "click") => {
    Object.assign(state, change);
    send(root, name);
  };
  return { kernel, state, act, close: said.close };
}
const still = () => mock.timers.tick(STILL_MS);

test("the first screen is not told, what comes after it is, once", () => {
  const { kernel, act } = opened();
  still();
  assert.equal(kernel.count("shown"), 0);
  act({ row: 200 });
  mock.timers.tick(STILL_MS - 1);
  act({ row: 400 });
  mock.timers.tick(STILL_MS - 1);
  assert.equal(kernel.count("shown"), 0); // not still yet
  still();
  assert.deepEqual(kernel.last("shown").args, { version: { version: 3 }, rows: { row: 400 } });
  assert.equal(kernel.last("shown").options.quiet, true);
  act({});
  still();
  assert.equal(kernel.count("shown"), 1); // nothing else is shown
});

test("what is done before the first screen was still is told", () => {
  const { kernel, act } = opened();
  for (let times = 0; times < 3; times += 1) {
    mock.timers.tick(STILL_MS - 1);
    for (const listener of kernel.costListeners) listener({}); // the kernel is busy
  }
  act({ row: 5 });
  still();
  assert.deepEqual(kernel.last("shown").args.rows, { row: 5 });
});

test("an answer of the kernel may change what is shown, too", () => {
  const { kernel, state } = opened();
  still();
  state.row = 7;
  for (const listener of kernel.costListeners) listener({});
  still();
  assert.equal(kernel.count("shown"), 1);
});

test("nothing is told without a kernel, and nothing after the view was closed", () => {
  const kernel = Object.assign(fakeKernel(), { state: "static" });
  const { act } = opened(kernel);
  still();
  act({ row: 1 });
  still();
  assert.equal(kernel.count("shown"), 0);
  const other = opened();
  still();
  other.act({ row: 9 });
  other.close();
  still();
  assert.equal(other.kernel.count("shown"), 0);
  assert.equal(other.kernel.costListeners.size, 0);
});
