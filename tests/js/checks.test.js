// Marks of the expectations on the timeline, and the tab that edits and runs them.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mountExpectations } from "../../lance_nb/explorer/checks/expectations.js";
import { CheckMarks } from "../../lance_nb/explorer/history/check_marks.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, send, shown } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

const RANGE = { name: "range", kind: "check", statement: "score <= 1" };
const STATE = {
  key: "k1", branch: null, version: 40, expectations: [RANGE], problems: [], gate: false,
  is_watched: true, columns: [{ name: "id", label: "id", type: "int64" }],
}; // biome-ignore format: one answer
const OUTCOME = {
  ...RANGE, status: "fail", detail: "false for 2 rows", rows: 2, filter: "(score <= 1) IS FALSE",
}; // biome-ignore format: one answer
const RUN = { key: "k1", outcomes: [OUTCOME], sentence: "main:3: 1 failed", code: { python: "c" } };

// --- check_marks.js ---

/** Marks of a branch of forty versions; `repaints` counts how often the bars were painted. */
function marked({ state = "live", versions = 40, has = () => true } = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = { ...fakeContext({}, kernel), has };
  const lane = { branch: null, numbers: Array.from({ length: versions }, (_, at) => at + 1) };
  const counts = { repaints: 0 };
  const checks = new CheckMarks(
    ctx,
    () => ({ lanes: [lane], here: { lane: 0, version: 1 } }),
    () => {
      counts.repaints += 1;
    },
  );
  document.body.append(checks.element);
  const answer = async (request, bad = []) => {
    const marks = request.args.numbers.map((one) =>
      bad.includes(one) ? [one, "fail", "✗ range fails for 2 rows"] : [one, "pass", "✓ 1 passed"],
    );
    await request.answer({ key: "k1", marks });
    await settled();
  };
  const begin = async (result = STATE) => {
    mock.timers.tick(400);
    await kernel.last("checks.state").answer(result);
    await settled();
  };
  return { kernel, ctx, checks, lane, counts, answer, begin, el: checks.element };
}

test("nothing is asked before the first screen is painted, nor without kernel or tab", () => {
  const { kernel } = marked();
  mock.timers.tick(399);
  assert.equal(kernel.count("checks.state"), 0);
  mock.timers.tick(1);
  assert.equal(kernel.count("checks.state"), 1);
  for (const how of [{ state: "static" }, { has: () => false }]) {
    const other = marked(how);
    other.checks.seen([1]);
    mock.timers.tick(1000);
    assert.equal(other.kernel.asked.length, 0);
  }
});

test("a dataset without expectations has no marks and no line", async () => {
  const { kernel, checks, el, begin } = marked();
  await begin({ ...STATE, expectations: [] });
  assert.equal(kernel.count("checks.marks"), 0);
  assert.equal(el.hidden, true);
  assert.equal(checks.status(null, 3), "");
});

test("versions in sight come first, newest first, then all others", async () => {
  const { kernel, checks, el, begin, answer } = marked();
  checks.seen([3, 4, 5]);
  await begin();
  assert.deepEqual(kernel.last("checks.marks").args, {
    branch: null, numbers: [5, 4, 3], read: false,
  }); // biome-ignore format: one request
  assert.equal(el.textContent, "checking 0 of 40Cancel");
  assert.equal(checks.status(null, 4), "unchecked");
  assert.equal(checks.status("dev", 4), "");
  await answer(kernel.last("checks.marks"), [4]);
  assert.equal(checks.status(null, 4), "fail");
  assert.equal(checks.words(null, 4), "✗ range fails for 2 rows");
  assert.deepEqual(
    kernel.last("checks.marks").args.numbers,
    Array.from({ length: 16 }, (_, at) => 40 - at),
  );
  await answer(kernel.last("checks.marks"));
  await answer(kernel.last("checks.marks"));
  await answer(kernel.last("checks.marks"));
  assert.equal(kernel.count("checks.marks"), 4);
  assert.equal(el.textContent, "✗ 1 version failed");
});

test("a store on the network is read for versions in sight; the others are asked for", async () => {
  const { kernel, checks, el, begin } = marked();
  checks.seen([1, 2]);
  await begin({ ...STATE, is_watched: false });
  const marks = [[2, "unchecked", "not checked yet"], [1, "pass", "✓"]]; // biome-ignore format: -
  await kernel.last("checks.marks").answer({ key: "k1", marks });
  await settled();
  assert.equal(kernel.count("checks.marks"), 1);
  assert.equal(el.textContent, "Check 39 versions");
  button(el, "Check 39 versions").click();
  assert.equal(kernel.last("checks.marks").args.read, true);
  assert.deepEqual(kernel.last("checks.marks").args.numbers, [2]);
});

test("the work is cancelled, and taken up again when asked", async () => {
  const { kernel, el, begin, answer } = marked();
  await begin();
  await answer(kernel.last("checks.marks"), [30]);
  button(el, "Cancel").click();
  assert.equal(kernel.cancelled, 1);
  await kernel.last("checks.marks").fail({ message: "cancelled" });
  await settled();
  assert.equal(el.textContent, "✗ 1 version failedCheck 24 versions");
  button(el, "Check 24 versions").click();
  assert.equal(kernel.count("checks.marks"), 3);
});

test("marks of other expectations are void", async () => {
  const { kernel, checks, lane, begin, answer } = marked({ versions: 2 });
  await begin();
  await answer(kernel.last("checks.marks"), [1]);
  lane.numbers.push(3);
  checks.seen([1, 2, 3]);
  await begin();
  assert.deepEqual(kernel.last("checks.marks").args.numbers, [3]);
  await answer(kernel.last("checks.marks"));
  lane.numbers.push(4);
  checks.seen([1, 2, 3, 4]);
  await begin({ ...STATE, key: "k2" });
  assert.equal(checks.status(null, 1), "unchecked");
  assert.deepEqual(kernel.last("checks.marks").args.numbers, [4, 3, 2, 1]);
});

test("a click on the first red bar explains it; one on a later bar does not", async () => {
  const { kernel, checks, ctx, el, begin, answer } = marked({ versions: 9 });
  await begin();
  await answer(kernel.last("checks.marks"), [5, 6, 7]);
  checks.clicked(null, 6);
  checks.clicked("dev", 5);
  checks.clicked(null, 4);
  assert.deepEqual(ctx.went, []);
  checks.clicked(null, 5);
  button(el, "✗ 3 versions failed").click();
  assert.deepEqual(ctx.went, [
    ["checks", { bisect: 5 }],
    ["checks", { bisect: 5 }],
  ]);
});

// --- checks/expectations.js ---

async function panel({ state = {}, screen = { locked: false }, run = RUN } = {}) {
  const kernel = fakeKernel();
  const ctx = fakeContext(screen, kernel);
  const el = h("div");
  document.body.append(el);
  const view = mountExpectations(el, ctx);
  await kernel.last("checks.state").answer({ ...STATE, ...state });
  await settled();
  if (run && kernel.count("checks.run")) await kernel.last("checks.run").answer(run);
  await settled();
  const box = (label) => el.querySelector(`[aria-label="${label}"]`);
  const fill = (label, value) => {
    box(label).value = value;
    send(box(label), "input");
  };
  const one = (name) => el.querySelector(`[data-name="${name}"]`);
  return { kernel, ctx, el, view, box, fill, one };
}

test("the expectations are run at the version shown", async () => {
  const { kernel, ctx, el, one } = await panel();
  assert.deepEqual(kernel.last("checks.run").args, { branch: null, version: 3 });
  assert.match(shown(el), /main:3: 1 failed\|\[Run now\]/);
  assert.match(
    shown(one("range")),
    /✗\|range\|score <= 1\|failed\|false for 2 rows\|\[Show rows\]/,
  );
  assert.equal(ctx.codes.at(-1).python, "c");
  ctx.show({ version: 4 });
  await kernel.last("checks.state").answer(STATE);
  await settled();
  assert.deepEqual(kernel.last("checks.run").args, { branch: null, version: 4 });
});

test("without expectations the tab says what they are for", async () => {
  const { kernel, el } = await panel({ state: { expectations: [], key: "" } });
  assert.equal(kernel.count("checks.run"), 0);
  assert.match(shown(el), /No expectations/);
  assert.match(shown(el), /are marked on the timeline/);
});

test("the first bad version is searched, with the rows that fail", async () => {
  const { kernel, ctx, el, view } = await panel();
  view.open({ bisect: 3 });
  await settled();
  assert.deepEqual(kernel.last("checks.bisect").args, { branch: null, name: "range", bad: 3 });
  await kernel.last("checks.bisect").answer({
    name: "range", branch: null, sentence: "Version 2 is the first.", first_bad: 2, last_good: 1,
    label: "main:2", outcome: OUTCOME, code: { python: "b" },
    tried: [{ version: 2, holds: false, operation: "Append", message: "" }],
    sample: { columns: [{ name: "score", type: "double" }], rows: [["1.5"], [null]], cut: 0 },
  }); // biome-ignore format: one answer
  await settled();
  assert.match(shown(el), /range fails first at main:2/);
  assert.match(shown(el), /2 rows that fail/);
  assert.match(shown(el), /1 version checked/);
  button(el, "Go to main:2").click();
  button(el, "What changed there").click();
  button(el, "Filter the grid for them").click();
  assert.deepEqual(ctx.went, [
    ["changes", { a: { branch: null, version: 1 }, b: { branch: null, version: 2 } }],
    ["rows", { filter: "(score <= 1) IS FALSE" }],
  ]);
  assert.deepEqual(ctx.travels, [
    { branch: null, version: 2 },
    { branch: null, version: 2 },
  ]);
});

test("a search that is asked for before the tab is there begins when it is", async () => {
  const kernel = fakeKernel();
  const el = h("div");
  document.body.append(el);
  mountExpectations(el, fakeContext({}, kernel)).open({ bisect: 2 });
  await kernel.last("checks.state").answer(STATE);
  await settled();
  await kernel.last("checks.run").answer(RUN);
  await settled();
  await kernel.last("checks.run").answer(RUN); // at the version that fails
  await settled();
  assert.deepEqual(kernel.last("checks.bisect").args, { branch: null, name: "range", bad: 2 });
});

test("a form is checked while it is typed, and added", async () => {
  const { kernel, ctx, el, box, fill } = await panel();
  assert.equal(button(el, "Add").disabled, true);
  fill("condition", "id <");
  assert.deepEqual(kernel.last("checks.form").args, {
    branch: null, kind: "check", fields: { sql: "id <" }, name: "",
  }); // biome-ignore format: one request
  kernel.last("checks.form").answer({ problem: "not SQL", code: null });
  assert.equal(button(el, "Add").disabled, true);
  assert.match(shown(el), /not SQL/);
  box("kind of expectation").value = "row_count";
  send(box("kind of expectation"), "change");
  fill("at least", "5");
  fill("at most", "x");
  assert.deepEqual(kernel.last("checks.form").args.fields, { min: 5, max: "x" });
  fill("at most", "");
  kernel.last("checks.form").answer({ problem: "", code: { python: "add" } });
  assert.equal(ctx.codes.at(-1).python, "add");
  button(el, "Add").click();
  assert.deepEqual(kernel.last("checks.add").args, {
    branch: null, kind: "row_count", fields: { min: 5 }, name: "",
  }); // biome-ignore format: one request
  await kernel.last("checks.add").answer({
    words: "Add expectation x", branch: null, version: 8, code: { python: "added" },
  }); // biome-ignore format: one answer
  await settled();
  assert.deepEqual(ctx.travels, [{ branch: null, version: 8 }]);
  assert.match(shown(el), /✓ Add expectation x/);
  assert.equal(box("at least").value, "");
});

test("kinds of expectations send the fields of the table configuration", async () => {
  const { kernel, box, fill } = await panel();
  const choose = (kind) => {
    box("kind of expectation").value = kind;
    send(box("kind of expectation"), "change");
  };
  choose("unique");
  fill("columns of the key, with commas", "a, b");
  assert.deepEqual(kernel.last("checks.form").args.fields, { columns: ["a", "b"] });
  choose("drift");
  fill("column", "a");
  assert.deepEqual(kernel.last("checks.form").args.fields, {
    column: "a", max: 0.25, against: "previous",
  }); // biome-ignore format: one request
  choose("reference");
  fill("the other dataset", "b.lance");
  assert.deepEqual(kernel.last("checks.form").args.fields, { column: "", uri: "b.lance", to: "" });
});

test("removing and the gate wait for the lock", async () => {
  const { kernel, ctx, el, one } = await panel({ screen: { locked: true } });
  assert.equal(button(one("range"), "Remove").disabled, true);
  assert.equal(button(el, "Close the gate").disabled, true);
  ctx.show({ locked: false }, true);
  assert.equal(button(one("range"), "Remove").disabled, false);
  button(one("range"), "Remove").click();
  assert.deepEqual(kernel.last("checks.remove").args, { branch: null, name: "range" });
  button(el, "Close the gate").click();
  assert.deepEqual(kernel.last("checks.gate").args, { branch: null, closed: true });
});

test("a closed gate says whom it does not bind", async () => {
  const { el } = await panel({ state: { gate: true } });
  assert.match(shown(el), /gate of staging: closed/);
  assert.match(shown(el), /pylance, Spark and ds\.insert/);
  assert.ok(button(el, "Open the gate"));
});

test("what the configuration holds and nobody can read is shown and removed", async () => {
  const problems = [{ name: "bad", label: "bad", problem: "it is not JSON" }];
  const { kernel, el } = await panel({ state: { expectations: [], problems } });
  assert.match(shown(el), /bad\|it is not JSON/);
  button(el, "Remove").click();
  assert.deepEqual(kernel.last("checks.remove").args, { branch: null, name: "bad" });
});
