// The table of cells in conflict: what counts, what is chosen, with the pointer and with keys.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { ConflictTable } from "../../lance_nb/explorer/refs/conflict_table.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

const PLAN = {
  plan: 7,
  base: { label: "main:3" },
  source: { label: "dev:5" },
  target: { label: "main:7" },
  cells: {
    total: 4, rows: 3, deleted_rows: 1, open: 3, key: "id", hidden: 0,
    columns: [
      { name: "v", label: "v", type: "int64", count: 2 },
      { name: "w", label: "w", type: "string", count: 1 },
    ],
  },
}; // biome-ignore format: one plan
const line = (row, column, base, ours, theirs) => {
  const side = (text) => (text === undefined ? null : { text });
  return {
    row, label: row, column, name: column, base: side(base), ours: side(ours),
    theirs: side(theirs), take: null, value: null,
  };
}; // biome-ignore format: one line
const LINES = [
  line("1", "v", "0", "1", "2"),
  line("1", "w", "a", null, "c"),
  line("2", "v", "0", "3", "4"),
  line("9", null, "{…}", undefined, "{…}"),
];

function mounted(cells = {}, more = {}) {
  const ctx = fakeContext();
  const changes = [];
  const table = new ConflictTable(ctx, (choices) => changes.push(choices));
  document.body.append(table.element);
  const plan = { ...PLAN, ...more, cells: { ...PLAN.cells, ...cells } };
  table.put(plan);
  ctx.kernel.last("refs.cells").answer({ lines: LINES });
  const { element } = table;
  const rows = () => [...element.querySelectorAll("tbody tr")];
  const results = () => texts(element, ".lnb-ct-result");
  const wait = () => {
    mock.timers.tick(300);
    return changes.at(-1);
  };
  const key = (name) => {
    const target = element.querySelector('tbody [tabindex="0"]');
    return send(target, "keydown", { key: name, altKey: false, ctrlKey: false, metaKey: false });
  };
  return { ctx, table, element, rows, results, wait, changes, plan, key };
}

test("both sides and what was before stand beside each other", () => {
  const { element, rows, ctx } = mounted();
  assert.deepEqual(ctx.kernel.last("refs.cells").args, { plan: 7, first: 0, count: 60 });
  assert.match(shown(element), /changed 4 cells in 3 rows, 1 row of them deleted on one side/);
  assert.deepEqual(texts(element, "thead th"), [
    "id", "column", "as before (main:3)", "main:7", "dev:5", "result",
  ]); // biome-ignore format: one line
  const plain = (row) => shown(row).replace(/\{[^}…]*\}/g, "");
  assert.equal(plain(rows()[0]), "1|[base]|[main]|[dev]|v|[0]|[1]|[2]|to choose|[Write…]");
  assert.equal(plain(rows()[1]), "w|[a]|[null]|[c]|to choose|[Write…]");
  assert.match(plain(rows()[3]), /whole row\|.*\[deleted\].*to choose$/);
});

test("a side that cannot be applied to a row is not chosen, also by a wider choice", () => {
  const { element, rows, results, table, ctx, wait, plan, key } = mounted();
  table.put({ ...plan, source: { label: "dev:6" } });
  const lost = { ...line("9", null, "as before", "edited", "deleted"), sides: ["theirs"] };
  ctx.kernel.last("refs.cells").answer({ lines: [lost] });
  button(rows()[0], "edited").click();
  key("o");
  assert.deepEqual(results(), ["to choose"]);
  button(element.querySelector(".lnb-ct-wide > div"), "main").click();
  assert.deepEqual(results(), ["to choose"]);
  button(rows()[0], "deleted").click();
  assert.deepEqual(wait().at(-1), { row: "9", column: null, take: "theirs" });
  assert.deepEqual(results(), ["dev:6"]);
});

test("no choice is offered for all rows that none of them takes", () => {
  const { element, table, ctx, plan } = mounted();
  table.put({ ...plan, sides: ["theirs"], note: "1 row cannot be found" });
  ctx.kernel.last("refs.cells").answer({ lines: [] });
  assert.deepEqual(texts(element, ".lnb-ct-wide > div button"), ["dev", "dev", "dev"]);
  assert.match(shown(element), /1 row cannot be found/);
  assert.doesNotMatch(shown(element), /Both sides changed/);
});

test("the narrowest choice counts, and a wider one replaces those that it covers", () => {
  const { element, rows, results, wait } = mounted();
  const wide = (at, words) =>
    button(element.querySelectorAll(".lnb-ct-wide > div")[at], words).click();
  wide(0, "dev");
  assert.deepEqual(results(), ["dev:5Write…", "dev:5Write…", "dev:5Write…", "dev:5"]);
  button(rows()[2], "3").click();
  wide(1, "base");
  assert.deepEqual(results()[2], "as before (main:3)Write…", "the column covers its cells");
  button(rows()[0], "main").click(); // of row 1
  assert.deepEqual(results()[0], "main:7Write…");
  assert.deepEqual(results()[1], "main:7Write…");
  button(rows()[1], "c").click();
  assert.deepEqual(wait(), [
    { row: null, column: null, take: "theirs" },
    { row: null, column: "v", take: "base" },
    { row: "1", column: null, take: "ours" },
    { row: "1", column: "w", take: "theirs" },
  ]);
  wide(0, "main");
  assert.deepEqual(wait(), [{ row: null, column: null, take: "ours" }]);
  const pressed = [...element.querySelectorAll(".lnb-ct-taken")];
  assert.equal(pressed.length, 4);
});

test("choices are sent once, a moment after the last", () => {
  const { rows, wait, changes } = mounted();
  button(rows()[0], "1").click();
  button(rows()[2], "4").click();
  assert.equal(changes.length, 0);
  wait();
  assert.equal(changes.length, 1);
});

test("a value is written by hand, and checked first", async () => {
  const { ctx, element, rows, results, wait } = mounted();
  button(rows()[0], "Write…").click();
  let box = element.querySelector("input");
  assert.equal(box.value, "1");
  box.value = "many";
  send(box, "keydown", { key: "Enter" });
  assert.deepEqual(ctx.kernel.last("refs.value").args, { plan: 7, column: "v", text: "many" });
  await ctx.kernel.last("refs.value").answer({ shown: null, problem: "no int64" });
  await settled();
  assert.equal(element.querySelector("[role=alert]").textContent, "no int64");
  assert.equal(box.getAttribute("aria-invalid"), "true");
  box.value = "12";
  button(element, "Set").click();
  await ctx.kernel.last("refs.value").answer({ shown: "12", problem: "" });
  await settled();
  assert.equal(results()[0], "✎ 12Write…");
  button(rows()[0], "Write…").click();
  box = element.querySelector("input");
  assert.equal(box.value, "12");
  button(element, "Null").click();
  await ctx.kernel.last("refs.value").answer({ shown: null, problem: "" });
  await settled();
  assert.deepEqual(wait(), [{ row: "1", column: "v", take: "value", value: null, shown: null }]);
  button(rows()[0], "Write…").click();
  send(element.querySelector("input"), "keydown", { key: "Escape" });
  assert.equal(element.querySelector("input"), null);
});

test("arrows, B, O, T and E do the same without a pointer", () => {
  const { element, rows, results, key, wait } = mounted();
  rows()[0].querySelectorAll(".lnb-ct-side")[1].focus();
  send(document.lastFocused, "focus");
  key("t");
  assert.equal(results()[0], "dev:5Write…");
  key("ArrowDown");
  key("ArrowDown");
  key("o");
  key("ArrowDown");
  key("b");
  assert.deepEqual(
    wait().map((one) => [one.row, one.column, one.take]),
    [
      ["1", "v", "theirs"],
      ["2", "v", "ours"],
      ["9", null, "base"],
    ],
  );
  key("PageUp");
  key("e");
  assert.ok(element.querySelector("input"));
  assert.equal(element.querySelectorAll('.lnb-ct-side[tabindex="0"]').length, 1);
});

test("a long table is read page by page, and choices stay", () => {
  const { ctx, element, rows, results, table, plan } = mounted({ total: 130 });
  assert.match(shown(element), /cells 1 to 60 of 130/);
  button(rows()[0], "1").click();
  button(element, "Next").click();
  assert.equal(ctx.kernel.last("refs.cells").args.first, 60);
  ctx.kernel.last("refs.cells").answer({ lines: LINES.slice(0, 1) });
  assert.equal(results()[0], "main:7Write…", "it is the same row here");
  table.put({ ...plan, plan: 8 });
  assert.equal(ctx.kernel.count("refs.cells"), 2);
  table.put({ ...plan, plan: 9, target: { label: "main:8" } });
  assert.equal(ctx.kernel.last("refs.cells").args.plan, 9);
  ctx.kernel.last("refs.cells").answer({ lines: LINES.slice(0, 1) });
  assert.equal(results()[0], "to chooseWrite…", "another version has other conflicts");
  table.reset();
});

test("two versions of one branch are told apart", () => {
  const { element } = mounted({}, { source: { label: "main:1" } });
  const group = element.querySelector(".lnb-ct-wide > div");
  assert.deepEqual(texts(group, "button"), ["base", "main:7", "main:1"]);
});

test("a value that is being typed stays while other cells are decided", async () => {
  const { ctx, element, rows, results, wait } = mounted();
  button(rows()[0], "Write…").click();
  element.querySelector("input").value = "77";
  button(rows()[2], "3").click();
  button(element.querySelectorAll(".lnb-ct-wide > div")[0], "dev").click();
  const box = element.querySelector("input");
  assert.equal(box.value, "77");
  send(box, "keydown", { key: "Enter" });
  assert.equal(ctx.kernel.last("refs.value").args.text, "77");
  await ctx.kernel.last("refs.value").answer({ shown: "77", problem: "" });
  await settled();
  assert.equal(results()[0], "✎ 77Write…");
  assert.deepEqual(
    wait().map(({ row, take }) => [row, take]),
    [
      [null, "theirs"],
      ["1", "value"],
    ],
  );
  button(rows()[1], "Write…").click();
  button(rows()[1], "a").click(); // a side of the same cell
  assert.equal(element.querySelector("input"), null);
});
