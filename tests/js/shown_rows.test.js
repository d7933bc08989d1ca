// One place for what is shown and selected in a card.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRows } from "../../lance_nb/explorer/js/shown_rows.js";
import { fakeContext, settled } from "./fake_context.js";

const PART = { num_rows: 10, num_columns: 2, page: null, buffers: [] };

function followed(screen = { rows: PART }) {
  const ctx = fakeContext(screen);
  const heard = [];
  const stop = ctx.rows.on({
    busy: (done, total) => heard.push(["busy", done, total]),
    shown: ({ place, part, result, before }) =>
      heard.push(["shown", place.version, Boolean(part), result?.num_rows ?? null, before]),
    failed: (error) => heard.push(["failed", error.message]),
    selected: () => heard.push(["selected"]),
  });
  return { ctx, rows: ctx.rows, heard, stop, last: () => ctx.kernel.last("rows.look") };
}

test("a search for words adds its condition to the query and ends one for neighbours", async () => {
  const { rows, last } = followed();
  rows.look({ near: { like: 1 } });
  await last().answer({ num_rows: 2, num_columns: 3, arranged: "o1", found_by: "_distance" });
  assert.equal(rows.numFound, 1);
  rows.look({ search: { text: "river", columns: null, any: false } });
  assert.equal(last().args.near, null);
  const condition = "regexp_like(text, 'river', 'i')";
  await last().answer({ num_rows: 2, num_columns: 2, arranged: "p2", filter: condition });
  assert.deepEqual([rows.query.filter, rows.criteria.filter], [condition, null]);
  assert.equal(rows.numFound, 0);
  rows.look({ near: { like: 1 } });
  assert.equal(last().args.search, null);
});

test("a filter of one view is heard of by all, with what was asked before", async () => {
  const { rows, heard, stop, last } = followed();
  assert.deepEqual([rows.numRows, rows.numColumns], [10, 2]);
  rows.look({ filter: "a > 1" });
  assert.deepEqual(heard, [["busy", 0, 0]]);
  assert.equal(rows.criteria.filter, null);
  assert.equal(rows.wanted.filter, "a > 1");
  assert.equal(last().args.version, 3);
  await last().answer({ num_rows: 4, num_columns: 2, arranged: "p1" });
  assert.deepEqual(heard.at(-1), ["shown", 3, false, 4, allRows()]);
  assert.deepEqual(rows.query, { filter: "a > 1", system: false, arranged: "p1", shown: null });
  assert.equal(rows.numRows, 4);
  rows.look({ system: true }); // what is named changes, the rest stays
  assert.deepEqual([last().args.filter, last().args.system], ["a > 1", true]);
  await last().fail({ message: "no" });
  assert.deepEqual(heard.at(-1), ["failed", "no"]);
  assert.equal(rows.criteria.system, false);
  stop();
  rows.look({});
  assert.deepEqual(heard.at(-1), ["failed", "no"]);
});

test("rows that a view chose are shown alone, until another version is", async () => {
  const { ctx, rows, heard, last } = followed();
  const within = { rows: "s1", label: "4 rows of the map" };
  rows.look({ within });
  assert.deepEqual(last().args.within, within);
  await last().answer({ num_rows: 4, num_columns: 2, arranged: "o1" });
  assert.deepEqual(rows.criteria.within, within);
  ctx.show({ version: 2, rows: { ...PART, num_rows: 7 } });
  assert.deepEqual(heard.at(-1), ["shown", 2, true, null, null]);
  assert.equal(rows.criteria.within, null);
  assert.equal(rows.query.arranged, null);
  assert.equal(rows.numRows, 7);
});

test("a selection is heard of, and forgotten when other rows are shown", async () => {
  const { ctx, rows, heard, last } = followed();
  rows.selection.select(2);
  assert.deepEqual(heard, [["selected"]]);
  assert.deepEqual(ctx.kernel.last("select").args.ranges, [[2, 3]]);
  rows.selection.toggleColumn(1);
  rows.look({ filter: "x" });
  await last().answer({ num_rows: 1, num_columns: 2, arranged: null });
  assert.deepEqual([rows.selection.rows, rows.selection.columns], [0, 1]);
  rows.look({ system: true });
  await last().answer({ num_rows: 1, num_columns: 6, arranged: null });
  assert.equal(rows.selection.columns, 0);
});

test("an answer to a question that is no longer asked is not heard of", async () => {
  const { ctx, rows, heard, last } = followed();
  rows.look({ filter: "x" });
  const first = last();
  rows.look({ filter: "y" });
  assert.equal(ctx.kernel.cancelled, 1);
  await first.answer({ num_rows: 1, num_columns: 2, arranged: null });
  assert.deepEqual(heard, [["busy", 0, 0], ["busy", 0, 0]]); // biome-ignore format: pairs
  first.options.progress(1, 2);
  last().options.progress(1, 2);
  assert.deepEqual(heard.slice(2), [["busy", 1, 2]]);
  await last().answer({ num_rows: 2, num_columns: 2, arranged: null });
  assert.equal(rows.query.filter, "y");
});

test("the selected rows and that of the keyboard are found again elsewhere", async () => {
  const { ctx, rows, last } = followed();
  const found = [];
  rows.on({ held: (what) => found.push([what.row, what.words]) });
  let row = 6;
  rows.followRow(() => row);
  rows.selection.select(4);
  rows.selection.select(7, { extend: true });
  const before = { branch: null, version: 3, filter: null, system: false };
  ctx.show({ version: 5, rows: PART });
  const held = ctx.kernel.last("rows.hold");
  assert.deepEqual(held.args.before, { ...before, arranged: null, shown: null });
  assert.deepEqual([held.args.version, held.args.ranges, held.args.row], [5, [[4, 8]], 6]);
  assert.equal(rows.selection.rows, 0); // until they are found
  const words = "1 of 4 rows does not exist in version main:5.";
  await held.answer({ row: 1, ranges: [[0, 3]], words });
  assert.deepEqual(found, [[1, words]]);
  assert.deepEqual(ctx.kernel.last("select").args.ranges, [[0, 3]]);
  // A filter: from the place they have now.
  row = 1;
  rows.look({ filter: "x" });
  await last().answer({ num_rows: 1, num_columns: 2, arranged: "p2" });
  assert.deepEqual(ctx.kernel.last("rows.hold").args.before.version, 5);
  assert.equal(ctx.kernel.last("rows.hold").args.arranged, "p2");
  await ctx.kernel.last("rows.hold").answer({ row: 0, ranges: [[0, 1]], words: "" });
  // Another version under a filter: it is asked for the filter first, and then for the rows.
  const asked = ctx.kernel.count("rows.hold");
  ctx.show({ version: 6, rows: PART });
  assert.equal(ctx.kernel.count("rows.hold"), asked);
  await last().answer({ num_rows: 1, num_columns: 2, arranged: "p3" });
  const { args } = ctx.kernel.last("rows.hold");
  assert.deepEqual([args.before.version, args.before.arranged, args.version], [5, "p2", 6]);
  assert.equal(args.arranged, "p3");
  // Who selects something else meanwhile keeps that.
  rows.selection.select(0);
  await ctx.kernel.last("rows.hold").answer({ row: 0, ranges: [[3, 4]], words: "" });
  assert.deepEqual(rows.selection.wanted().ranges, [[0, 1]]);
});

test("without a selection, at the first row or without a kernel nothing is looked for", () => {
  const { ctx, rows } = followed();
  rows.followRow(() => null);
  ctx.show({ version: 5, rows: PART });
  rows.followRow(() => 4);
  ctx.kernel.state = "static";
  ctx.show({ version: 6, rows: PART });
  assert.equal(ctx.kernel.count("rows.hold"), 0);
});

test("rows that cannot be followed are said to be lost", async () => {
  const { ctx, rows } = followed();
  rows.followRow(() => 4);
  ctx.show({ version: 5, rows: PART });
  await ctx.kernel.last("rows.hold").fail({ message: "damaged" });
  assert.equal(ctx.announced.at(-1), "The selected rows were not found again: damaged");
});

test("rows that stay held are looked for once in each version and filter", async () => {
  const { ctx, rows, last } = followed();
  let row = 6;
  const found = [];
  rows.followRow(() => row || null);
  rows.on({
    held: (what) => {
      found.push([what.row, what.words]);
      row = what.row ?? row;
    },
  });
  rows.selection.select(4);
  const held = () => ctx.kernel.count("rows.hold");
  // The same version once more: nothing moved.
  ctx.show({ rows: { ...PART } });
  assert.equal(held(), 0);
  assert.deepEqual(rows.selection.wanted().ranges, [[4, 5]]);
  ctx.show({ version: 5, rows: PART });
  const words = "1 of 1 rows does not exist in version main:5.";
  await ctx.kernel.last("rows.hold").answer({ row: 0, ranges: [], words });
  assert.equal(rows.selection.rows, 0);
  row = 6; // as where the row of the keyboard is not found, and another has its place
  await settled();
  ctx.show({ version: 3, rows: PART });
  assert.equal(held(), 2); // the keyboard is elsewhere: the rows of version 3 are not those of now
  await ctx.kernel.last("rows.hold").answer({ row: 2, ranges: [[8, 9]], words: "" });
  for (const version of [5, 3, 5, 3]) ctx.show({ version, rows: PART });
  assert.equal(held(), 2);
  assert.deepEqual(found.slice(-2), [[6, ""], [2, ""]]); // biome-ignore format: pairs
  assert.deepEqual(rows.selection.wanted().ranges, [[8, 9]]);
  // A filter, and back.
  rows.look({ filter: "x" });
  await last().answer({ num_rows: 3, num_columns: 2, arranged: null });
  await ctx.kernel.last("rows.hold").answer({ row: 1, ranges: [[1, 2]], words: "" });
  rows.look({ filter: null });
  await last().answer({ num_rows: 10, num_columns: 2, arranged: null });
  assert.equal(held(), 3);
  assert.deepEqual([row, rows.selection.wanted().ranges], [2, [[8, 9]]]);
  // Another row of the keyboard is looked for anew.
  row = 7;
  ctx.show({ version: 5, rows: PART });
  assert.equal(held(), 4);
  assert.equal(ctx.kernel.last("rows.hold").args.row, 7);
});

test("a selection that was cleared does not come back when a filter ends", async () => {
  const { ctx, rows, last } = followed();
  rows.followRow(() => 4);
  rows.selection.select(4);
  rows.look({ filter: "a > 1" });
  await last().answer({ num_rows: 4, num_columns: 2, arranged: "p1" });
  await ctx.kernel.last("rows.hold").answer({ row: null, ranges: [], words: "1 row is hidden" });
  rows.selection.clear();
  rows.look({ filter: null });
  await last().answer({ num_rows: 10, num_columns: 2, arranged: null });
  assert.deepEqual(ctx.kernel.last("rows.hold").args.ranges, []);
  assert.equal(rows.selection.rows, 0);
  // Nor does it when it is cleared while the kernel still looks for the rows.
  rows.selection.select(4);
  rows.look({ filter: "a > 2" });
  await last().answer({ num_rows: 3, num_columns: 2, arranged: "p2" });
  const answer = ctx.kernel.last("rows.hold");
  rows.selection.clear();
  await answer.answer({ row: 0, ranges: [[0, 1]], words: "" });
  assert.equal(rows.selection.rows, 0);
});
