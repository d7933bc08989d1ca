// The view of changes: what is compared, counts by level, and the level that is open as a grid.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { ChangeGrid } from "../../lance_nb/explorer/changes/change_grid.js";
import { mountChanges } from "../../lance_nb/explorer/changes/changes.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, nextFrame, observers, send, shown } from "./light_page.js";
import { layOut, press, rowsOf, textPage } from "./row_pages.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const at = (version, branch = null) => ({ branch, version });
const chip = (id, more = {}) => ({
  id, label: id, added: 0, removed: 0, changed: 0, bound: false, note: "", ...more,
}); // biome-ignore format: one chip
const COUNTS = {
  a: "main:2",
  b: "main:3",
  empty: false,
  identity: { kind: "id", label: "stable row id", reason: "rows have ids" },
  fork: null,
  num_columns: 2,
  chips: [
    chip("transactions", { note: "1" }),
    chip("rows", { added: 4, removed: 2, bound: true }),
    chip("schema"),
    chip("drift"),
  ],
  code: { python: "ds.diff(2)", magic: "%lance diff 2..3" },
};

/** A window of changes; `old` are the values that changed, by column: `{name: [values, mask]}`. */
function changes(columns, kinds, { old = {}, offset = 0, ...more } = {}) {
  const { page, buffers } = textPage(columns, { offset });
  const before = Object.entries(old);
  const values = Object.fromEntries(before.map(([name, [texts]]) => [name, texts]));
  const other = textPage(values, { offset });
  const names = Object.keys(columns);
  const marks = before.map(([name, [, mask]], order) => [names.indexOf(name), order, mask]);
  const result = { page, old: other.page, split: buffers.length, marks, kinds, ...more };
  return [result, [...buffers, ...other.buffers]];
}
const found = (more = {}) => ({
  added: 1, removed: 1, changed: 1, is_finished: true, compared: 3, to_compare: 3, cells: [],
  ...more,
}); // biome-ignore format: one count
const THREE = { old: { word: [["a", "", ""], "100"] }, found: found({ cells: [["word", 1]] }) };
const threeRows = (more = {}) =>
  changes({ id: ["1", "2", "3"], word: ["b", "x", "y"] }, "~+-", { ...THREE, ...more });

// --- the tab ---

function tab(screen = {}, state = "live") {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext(screen, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  document.body.append(el);
  const view = mountChanges(el, ctx);
  const said = () => shown(el.querySelector(".lnb-ch-said"));
  const head = () => shown(el.querySelector(".lnb-ch-line"));
  const chips = () => shown(el.querySelector(".lnb-chips"));
  const counted = (counts = COUNTS) => ctx.kernel.last("changes.counts").answer(counts);
  return { ctx, el, view, said, head, chips, counted };
}

test("the version shown is compared with the one before it", async () => {
  const { ctx, el, head, chips, counted } = tab();
  assert.equal(ctx.kernel.count("changes.counts"), 1);
  assert.deepEqual(ctx.kernel.last("changes.counts").args, { a: at(2), b: at(3), key: null });
  assert.match(head(), /^A\|main:2\|→\|B\|main:3\|\[⇄\]\{swap A and B\}/);
  await counted();
  assert.equal(
    chips(),
    "[transactions|1]|[rows|≤|+4|−2]" +
      "{Upper bound from the manifests: updated or moved rows count on both sides}" +
      "|[schema]|[drift]",
  );
  assert.match(head(), /\{rows have ids\}/);
  assert.match(head(), /✓\|by stable row id/);
  const chosen = el.querySelector('.lnb-chip[aria-selected="true"]');
  assert.equal(chosen.getAttribute("data-level"), "rows"); // the first in which something differs
  assert.equal(el.querySelector("[role=tabpanel]").getAttribute("aria-labelledby"), chosen.id);
  assert.deepEqual(ctx.codes.at(-1), {
    python: "ds.diff(2).rows().read_all()",
    magic: "%lance diff 2..3 --rows",
  });
});

test("a chip opens its level, and the level keeps its line of code", async () => {
  const { ctx, el, counted } = tab();
  await counted();
  button(el, "schema").click();
  assert.deepEqual(ctx.codes.at(-1), {
    python: "ds.diff(2).schema",
    magic: "%lance diff 2..3 --schema",
  });
  const levels = () => [...el.querySelectorAll(".lnb-ch-level")].map((one) => one.hidden);
  assert.deepEqual(levels(), [true, false]);
  button(el, "rows").click();
  assert.deepEqual(levels(), [false, true]);
  assert.equal(ctx.codes.at(-1).magic, "%lance diff 2..3 --rows");
  button(el, "schema").click();
  ctx.show({ version: 2 });
  await counted({ ...COUNTS, a: "main:1", b: "main:2" });
  assert.equal(ctx.codes.at(-1).magic, "%lance diff 2..3 --schema"); // the level that was chosen
});

test("versions without a difference, or without a version before, say so", async () => {
  const { ctx, el, said, counted } = tab();
  await counted({ ...COUNTS, empty: true });
  assert.equal(
    said(),
    "No difference between main:2 and main:3: the same rows, columns, files and settings.",
  );
  assert.equal(el.querySelector(".lnb-chips").hidden, false);
  assert.equal(el.querySelector(".lnb-ch-place").hidden, true);
  const before = ctx.kernel.count("changes.counts");
  ctx.show({ version: 1 });
  assert.equal(
    said(),
    "main:1 is the first version: there is nothing before it to compare with.|" +
      "Go to a later version, or drag handle A on the timeline to another branch.",
  );
  assert.equal(el.querySelector(".lnb-chips").hidden, true);
  assert.equal(ctx.kernel.count("changes.counts"), before);
  ctx.range.set({ a: at(1) });
  assert.match(said(), /^A and B are the same version, main:1\./);
  assert.equal(el.querySelector('button[title="swap A and B"]').disabled, true);
  assert.equal(ctx.codes.at(-1), null);
});

test("an error takes the place of the level, until it is gone", async () => {
  const { ctx, el, said, counted } = tab();
  await ctx.kernel.last("changes.counts").fail({ message: HOSTILE });
  assert.equal(said(), `problem: ${HOSTILE}`);
  assert.equal(el.querySelector("img"), null);
  assert.equal(el.querySelector(".lnb-ch-place").hidden, true);
  ctx.show({ version: 2 });
  await counted();
  assert.equal(said(), "");
  assert.equal(el.querySelector(".lnb-ch-place").hidden, false);
});

test("without a kernel nothing is requested", () => {
  const { ctx, said } = tab({}, "static");
  assert.equal(said(), "Changes are read by the kernel. Run the cell to see them.");
  assert.equal(ctx.kernel.asked.length, 0);
});

test("a kernel that goes and comes back is asked again for what it has not answered", () => {
  const { ctx, said } = tab();
  const turn = (state) => {
    ctx.kernel.state = state;
    for (const listener of ctx.kernel.stateListeners) listener(state);
  };
  turn("static");
  assert.equal(said(), "Changes are read by the kernel. Run the cell to see them.");
  assert.equal(ctx.kernel.count("changes.counts"), 1);
  turn("live");
  assert.equal(ctx.kernel.count("changes.counts"), 2);
});

test("a view that is mounted before the kernel answers asks once", () => {
  const { ctx } = tab({}, "connecting");
  ctx.kernel.state = "live";
  for (const listener of ctx.kernel.stateListeners) listener("live");
  assert.equal(ctx.kernel.count("changes.counts"), 1);
});

test("an answer about versions that are no longer compared is dropped", async () => {
  const { ctx, chips } = tab();
  const before = ctx.kernel.last("changes.counts");
  ctx.show({ version: 2 });
  await before.answer(COUNTS);
  assert.equal(chips(), "");
  assert.deepEqual(ctx.kernel.last("changes.counts").args, { a: at(1), b: at(2), key: null });
});

test("a tab that is not open asks when it is opened", () => {
  const { ctx, view } = tab();
  view.hidden();
  const before = ctx.kernel.count("changes.counts");
  ctx.show({ version: 2 });
  assert.equal(ctx.kernel.count("changes.counts"), before);
  view.shown();
  assert.deepEqual(ctx.kernel.last("changes.counts").args.b, at(2));
});

test("ends are swapped, and come from elsewhere", async () => {
  const { ctx, el, view, counted } = tab();
  await counted();
  button(el, "⇄").click();
  assert.deepEqual(ctx.travels, [at(2)]);
  assert.deepEqual(ctx.range.get().a, at(3));
  view.open({ a: at(4, "dev"), level: "schema" });
  await counted();
  assert.deepEqual(ctx.kernel.last("changes.counts").args.a, at(4, "dev"));
  assert.equal(ctx.codes.at(-1).magic, "%lance diff 2..3 --schema");
});

test("a typed ref becomes A, and its counts need no other request", async () => {
  const { ctx, el, said, chips, counted } = tab();
  await counted();
  const box = el.querySelector('input[aria-label="compare with a version, tag or branch"]');
  const go = async (text) => {
    box.value = text;
    send(box.closest("form"), "submit");
    await settled();
    return ctx.kernel.last("changes.place");
  };
  const before = ctx.kernel.count("changes.counts");
  const asked = await go("v1");
  assert.deepEqual(asked.args, { ref: "v1", b: at(3), key: null });
  await asked.answer({ place: at(1), counts: { ...COUNTS, chips: [chip("rows", { added: 9 })] } });
  assert.deepEqual(ctx.range.get().a, at(1));
  assert.match(chips(), /\[rows\|\+9\]/);
  assert.equal(ctx.kernel.count("changes.counts"), before);
  await (await go("nope")).fail({ message: "no such ref" });
  assert.equal(said(), "problem: no such ref");
});

test("sides of a fork are counted, and B alone is compared with the merge base", async () => {
  const { ctx, el, counted } = tab();
  const fork = () => shown(el.querySelector(".lnb-ch-fork"));
  await counted({ ...COUNTS, fork: { ...at(1), label: "main:1", a_side: 2, b_side: 3 } });
  assert.match(fork(), /^↳\|parted at main:1: A \+2, B \+3 ·\|\[since the fork\]/);
  button(el, "since the fork").click();
  assert.deepEqual(ctx.range.get().a, at(1));
  await counted({ ...COUNTS, fork: { branch: null, version: null } });
  assert.equal(fork(), "no common history");
});

test("rows compared by address have their reason beside an upper bound", async () => {
  const { el, counted } = tab();
  const identity = { kind: "address", label: "row address", reason: HOSTILE };
  await counted({ ...COUNTS, identity });
  const reason = el.querySelector(".lnb-ch-reason");
  assert.deepEqual([reason.hidden, reason.textContent], [false, HOSTILE]);
  assert.equal(el.querySelector("img"), null);
  assert.ok(el.querySelector(".lnb-ch-badge").classList.contains("lnb-ch-weak"));
});

test("while a handle is dragged the numbers follow, the level waits", async () => {
  const { ctx, el, head, counted } = tab();
  await counted();
  const before = ctx.kernel.count("changes.counts");
  ctx.range.set({ a: at(1) }, { dragging: true });
  assert.match(head(), /^A\|main:1\|→\|B\|main:3/);
  assert.ok(el.querySelector(".lnb-ch-place").classList.contains("lnb-ch-stale"));
  const asked = ctx.kernel.asked.at(-1);
  assert.equal(ctx.kernel.count("changes.counts"), before);
  assert.deepEqual([asked.type, asked.args.a ?? asked.args.b], ["changes.near", at(1)]);
  ctx.range.set({ a: at(2) });
  await settled();
  assert.ok(!el.querySelector(".lnb-ch-place").classList.contains("lnb-ch-stale"));
});

test("when all rows are counted the chip has exact numbers", async () => {
  const { ctx, el, chips, counted } = tab();
  await counted();
  layOut(el.querySelector(".lnb-grid"));
  nextFrame();
  await ctx.kernel.last("changes.rows").answer(...threeRows());
  assert.match(chips(), /\[rows\|\+1\|−1\|~1\]/);
});

// --- one level ---

function level(name, screen = {}) {
  const ctx = fakeContext(screen);
  const counted = [];
  const codes = [];
  const part = new ChangeGrid(ctx, {
    level: name,
    pair: () => ({ a: at(2), b: at(3), key: null }),
    counts: () => COUNTS,
    rowsCounted: (known) => counted.push(known),
    code: (...lines) => codes.push(lines),
  });
  document.body.append(part.element);
  const grid = part.element.querySelector(".lnb-grid");
  layOut(grid);
  part.begin();
  nextFrame();
  const type = name === "rows" ? "changes.rows" : "changes.level";
  const answer = async (...of) => {
    await ctx.kernel.last(type).answer(...of);
    nextFrame();
  };
  const foot = () => shown(part.element.querySelector(".lnb-ch-foot"));
  const note = () => shown(part.element.querySelector(".lnb-grid-note"));
  const looks = () =>
    [...part.element.querySelectorAll(".lnb-grid-body > *")]
      .filter((line) => !line.hidden)
      .map((line) => line.className);
  return { ctx, part, grid, counted, codes, answer, foot, note, looks };
}
const FILTERS = "[all]|[+ added]|[− removed]|[~ changed]";

test("changed rows show both values, added and removed ones their sign", async () => {
  const { ctx, part, counted, codes, answer, foot, looks } = level("rows");
  const { offset, limit, ...asked } = ctx.kernel.last("changes.rows").args;
  assert.deepEqual(asked, {
    a: at(2), b: at(3), key: null, kinds: null, first_column: 0, num_columns: 40,
  }); // biome-ignore format: one request
  assert.ok(offset === 0 && limit > 0);
  await answer(...threeRows());
  assert.deepEqual(rowsOf(part.element), [
    ["~", "1", "a→b"],
    ["+", "2", "x"],
    ["−", "3", "y"],
  ]);
  assert.match(looks()[0], /lnb-row-change/);
  assert.match(looks()[1], /lnb-row-add/);
  assert.match(looks()[2], /lnb-row-remove/);
  assert.equal(part.element.querySelector("del").textContent, "a");
  assert.equal(part.element.querySelector("ins").textContent, "b");
  assert.equal(foot(), `${FILTERS}|3 rows`);
  assert.equal(part.element.querySelector(".lnb-sheet-sub em").textContent, "");
  assert.ok(
    [...part.element.querySelectorAll(".lnb-sheet-sub em")].some(
      (one) => one.textContent === "~ 1",
    ),
  );
  assert.equal(counted.at(-1).changed, 1);
  assert.deepEqual(codes, [[".rows().read_all()", " --rows"]]);
});

test("hostile values are text, old ones too", async () => {
  const { part, answer } = level("rows");
  await answer(
    ...changes({ [HOSTILE]: [HOSTILE], id: ["1"] }, "~", {
      old: { [HOSTILE]: [[HOSTILE], "1"] },
      found: found({ added: 0, removed: 0 }),
    }),
  );
  assert.deepEqual(rowsOf(part.element), [["~", `${HOSTILE}→${HOSTILE}`, "1"]]);
  assert.equal(part.element.querySelector("img"), null);
});

test("a filter asks for one kind only, and says when there is none", async () => {
  const { ctx, part, codes, answer, foot, note } = level("rows");
  await answer(...threeRows());
  button(part.element, "+ added").click();
  nextFrame();
  assert.deepEqual(ctx.kernel.last("changes.rows").args.kinds, ["added"]);
  assert.deepEqual(codes.at(-1), ['.rows(kinds="added").read_all()', " --rows"]);
  assert.equal(button(part.element, "+ added").getAttribute("aria-pressed"), "true");
  assert.equal(button(part.element, "all").getAttribute("aria-pressed"), "false");
  await answer(...changes({ id: ["2"], word: ["x"] }, "+", { found: found() }));
  assert.equal(foot(), `${FILTERS}|1 row`);
  button(part.element, "− removed").click();
  nextFrame();
  await answer(...changes({ id: [], word: [] }, "", { found: found({ removed: 0 }) }));
  assert.equal(note(), "Nothing was removed.");
});

test("rows that are not all compared are said so, and can be counted", async () => {
  const { ctx, part, answer, foot, counted } = level("rows");
  assert.doesNotMatch(foot(), /Count all/);
  const some = found({ is_finished: false, compared: 3, to_compare: 90 });
  await answer(...threeRows({ found: some }));
  assert.equal(foot(), `${FILTERS}|1 changed so far · 3 of 90 rows compared|[Count all]`);
  button(part.element, "Count all").click();
  const summary = ctx.kernel.last("changes.summary");
  assert.deepEqual(summary.args, { a: at(2), b: at(3), key: null });
  summary.options.progress(30, 90);
  const bar = part.element.querySelector("progress");
  assert.deepEqual([bar.hidden, bar.max, bar.value], [false, 90, 30]);
  assert.match(foot(), /30 of 90 rows compared\|.*\[Stop\]$/);
  button(part.element, "Stop").click();
  assert.ok(ctx.kernel.cancelled >= 2);
  await summary.answer(found({ added: 7, removed: 0, changed: 2 }));
  assert.equal(foot(), `${FILTERS}|9 rows`);
  assert.equal(counted.at(-1).added, 7);
});

test("counting that fails says why, one that was stopped says nothing", async () => {
  const { ctx, part, answer, note } = level("rows");
  await answer(...threeRows({ found: found({ is_finished: false, to_compare: 90 }) }));
  button(part.element, "Count all").click();
  await ctx.kernel.last("changes.summary").fail({ message: "stopped", kind: "CancelledError" });
  assert.equal(note(), "");
  button(part.element, "Count all").click();
  const place = part.element.querySelector(".lnb-grid-note");
  await ctx.kernel.last("changes.summary").fail({ message: "damaged" });
  assert.equal(place.textContent, "problem: damaged");
});

test("a comparison that was stopped goes on when asked", async () => {
  const { ctx, part, note } = level("rows");
  await ctx.kernel.last("changes.rows").fail({ message: "stopped", kind: "CancelledError" });
  nextFrame();
  assert.equal(note(), "Stopped.|[Continue]");
  const before = ctx.kernel.count("changes.rows");
  button(part.element, "Continue").click();
  nextFrame();
  assert.equal(ctx.kernel.count("changes.rows"), before + 1);
  assert.equal(note(), "");
});

test("a window that cannot be read is an error in place of the rows", async () => {
  const { ctx, part, grid, note } = level("rows");
  const card = { title: "Damaged", message: HOSTILE, where: "", hint: "", kind: "" };
  await ctx.kernel.last("changes.rows").fail(card);
  nextFrame();
  assert.equal(note(), `!|Damaged|${HOSTILE}`);
  assert.equal(part.element.querySelector("img"), null);
  assert.ok(grid.classList.contains("lnb-broken"));
});

test("other levels have their words, and no filter where none fits", async () => {
  const { ctx, part, codes, answer, foot, note } = level("schema");
  assert.equal(ctx.kernel.last("changes.level").args.level, "schema");
  assert.deepEqual(codes, [[".schema", " --schema"]]);
  await answer(...changes({ name: ["x"] }, "+", { num_rows: 1 }));
  assert.deepEqual(rowsOf(part.element), [["+", "x"]]);
  assert.equal(foot(), "1 column");
  const none = level("indices");
  await none.answer(...changes({ index: [] }, "", { num_rows: 0 }));
  assert.equal(none.note(), "No index segment differs.");
  assert.equal(note(), "");
});

test("a transaction has the sign of its operation, also beside the side of a fork", async () => {
  const { part, answer, looks } = level("transactions");
  await answer(...changes({ version: ["main:3"], operation: ["Delete"] }, " ", { num_rows: 1 }));
  assert.equal(rowsOf(part.element)[0][0], "−");
  assert.match(looks()[0], /lnb-op-remove/);
  const fork = level("transactions");
  await fork.answer(
    ...changes({ version: ["dev:4"], side: ["B"], operation: ["Append"] }, " ", { num_rows: 1 }),
  );
  assert.equal(rowsOf(fork.part.element)[0][0], "+");
});

test("a click or Enter opens the change in the pane beside", async () => {
  const { ctx, part, grid, answer } = level("fragments");
  await answer(
    ...changes({ fragment: ["4"], rows: ["10"] }, "~", {
      num_rows: 1,
      places: [{ fragment: 4 }],
    }),
  );
  send(part.element.querySelector(".lnb-grid-body .lnb-cell"), "click");
  const asked = ctx.kernel.last("changes.files");
  assert.deepEqual([asked.args.row, asked.args.a, asked.args.kinds], [0, at(2), null]);
  const file = { kind: "+", columns: HOSTILE, size: "3 KB", format: "2.2", path: "data/x.lance" };
  await asked.answer({ files: [file] });
  assert.equal(ctx.details.at(-1).title, "Fragment 4");
  assert.match(shown(ctx.details.at(-1).content), /Files\|1\|\+\{added\}\|<img src=x/);
  press(grid, "Enter");
  await ctx.kernel.last("changes.files").fail({ message: "lost" });
  assert.equal(shown(ctx.details.at(-1).content), "problem: lost");
});

test("when the last row is in sight and not all are compared, the next are asked for", async () => {
  const { ctx, answer } = level("rows");
  const before = ctx.kernel.count("changes.rows");
  const some = found({ is_finished: false, to_compare: 90 });
  await answer(...changes({ id: ["1"], word: ["b"] }, "~", { found: some }));
  assert.equal(ctx.kernel.count("changes.rows"), before + 1);
  const { offset, limit } = ctx.kernel.last("changes.rows").args;
  assert.ok(offset <= 1 && offset + limit > 1); // one row changed so far, the next is row 1
  const all = level("rows");
  const whole = all.ctx.kernel.count("changes.rows");
  await all.answer(...threeRows());
  assert.equal(all.ctx.kernel.count("changes.rows"), whole);
});

test("a level that is begun again after an error shows rows, and ends with the view", async () => {
  const { ctx, part, grid, note, answer } = level("rows");
  await ctx.kernel.last("changes.rows").fail({ title: "Damaged", message: "m", where: "" });
  nextFrame();
  assert.ok(grid.classList.contains("lnb-broken"));
  part.begin();
  assert.ok(!grid.classList.contains("lnb-broken"));
  await answer(...threeRows());
  assert.equal(note(), "");
  send(part.element.querySelectorAll(".lnb-grid-body .lnb-cell")[1], "click");
  nextFrame();
  assert.match(grid.getAttribute("aria-activedescendant"), /-0-1$/);
  const before = ctx.kernel.cancelled;
  ctx.close();
  assert.ok(ctx.kernel.cancelled > before);
});

test("another key compares the rows anew", async () => {
  const { ctx, el, counted } = tab();
  await counted();
  button(el, "Change").click();
  const columns = [{ name: "id", label: "id", type: "int64" }];
  await ctx.kernel.last("biography.keys").answer({ columns });
  button(el.querySelector(".lnb-key-columns"), "id").click();
  button(el, "Use as key").click();
  assert.deepEqual(ctx.kernel.last("changes.counts").args.key, ["id"]);
});
