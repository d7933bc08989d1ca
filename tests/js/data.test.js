// Pages of rows, selections, ranges of versions, numbers fetched ahead: the state behind the views.

import "./light_page.js";
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { dragCounts } from "../../lance_nb/explorer/changes/drag_counts.js";
import { decodePage, shortNumber } from "../../lance_nb/explorer/js/columns.js";
import { gridSelection } from "../../lance_nb/explorer/js/grid_selection.js";
import { pageStore } from "../../lance_nb/explorer/js/page_store.js";
import { snapshotModel } from "../../lance_nb/explorer/js/snapshot_kernel.js";
import {
  placeLabel,
  samePlace,
  versionBefore,
  versionRange,
} from "../../lance_nb/explorer/js/version_range.js";
import {
  conditionOf,
  conditionOfOdd,
  slotsOf,
} from "../../lance_nb/explorer/rows/bar_selection.js";
import { fakeContext, fakeKernel, settled, timeline } from "./fake_context.js";

const view = (array) => new DataView(array.buffer, array.byteOffset, array.byteLength);
const plain = { validity: null, type: "t" };

/** A page of one column. */
function cells(column, buffers, numRows) {
  const page = decodePage(
    {
      offset: 100,
      num_rows: numRows,
      first_column: 5,
      columns: [{ name: "a", buffers: [0, 1], ...plain, ...column }],
    },
    buffers,
  );
  return Array.from({ length: numRows }, (_, row) => page.cell(100 + row, 5));
}

test("numbers of every width, at any alignment", () => {
  const shifted = new Uint8Array(17);
  new DataView(shifted.buffer).setBigInt64(1, -5n, true);
  new DataView(shifted.buffer).setBigInt64(9, 2n ** 53n + 1n, true);
  const found = cells({ encoding: "i64" }, [new DataView(shifted.buffer, 1, 16)], 2);
  assert.deepEqual(found, [
    { text: "-5", look: "number" },
    { text: "9007199254740993", look: "number" },
  ]);
  assert.equal(cells({ encoding: "u8" }, [new Uint8Array([255]).buffer], 1)[0].text, "255");
  assert.equal(cells({ encoding: "i16" }, [view(new Int16Array([-2]))], 1)[0].text, "-2");
});

test("32-bit numbers have the shortest digits that mean the same", () => {
  const sevens = cells({ encoding: "f32" }, [view(new Float32Array([16777.21, 1007617.4375]))], 2);
  assert.deepEqual(
    sevens.map((cell) => cell.text),
    ["16777.21", "1007617.44"],
  );
  const numbers = [0.1, 3.4028235e38, -0, 16777216, NaN, 1.17549435e-38];
  const found = cells({ encoding: "f32" }, [view(new Float32Array(numbers))], 6);
  assert.deepEqual(
    found.map((cell) => cell.text),
    ["0.1", "3.4028235e+38", "-0", "16777216", "NaN", "1.1754944e-38"],
  );
  assert.equal(found[4].look, "nan");
  const wide = cells({ encoding: "f64" }, [view(new Float64Array([0.1, -0, NaN]))], 3);
  assert.deepEqual(
    wide.map((cell) => cell.text),
    ["0.1", "-0", "NaN"],
  );
});

test("a long number is short in its cell and whole beside it", () => {
  const shorts = {
    0.30593448644608: "0.3059",
    "-0.0000093361463012": "-0.000009336",
    "1.19e-7": undefined,
    "-1.1920928955078125e-7": "-1.192e-7",
    4.620113372802734: "4.62",
    123456.789012: "123457",
    1234.56: undefined,
    12345678901: undefined,
    "1.2345678901234567e+21": "1.235e+21",
    NaN: undefined,
    "-Infinity": undefined,
  };
  for (const [text, short] of Object.entries(shorts)) assert.equal(shortNumber(text), short, text);
  const page = (encoding, values) => {
    const column = { name: "n", type: "", encoding, buffers: [0], validity: null };
    const sidecar = { offset: 0, num_rows: 1, first_column: 0, columns: [column] };
    return decodePage(sidecar, [new DataView(values.buffer)]).cell(0, 0);
  };
  const text = "0.1234567890123";
  const shown = { text, look: "number", short: "0.1235" };
  assert.deepEqual(page("f64", new Float64Array([0.1234567890123])), shown);
  const whole = { text: "1234567890123", look: "number" }; // integers stay as they are
  assert.deepEqual(page("i64", new BigInt64Array([1234567890123n])), whole);
});

test("texts, empty texts and pictures", () => {
  const buffers = [view(new Int32Array([0, 2, 2, 5])), view(new TextEncoder().encode("hi€"))];
  const found = cells({ encoding: "text", look: "text", pictures: "001" }, buffers, 3);
  assert.deepEqual(
    found.map((cell) => [cell.text, cell.look, cell.picture]),
    [
      ["hi", "text", false],
      ["empty", "empty", undefined],
      ["€", "text", true],
    ],
  );
  assert.equal(cells({ encoding: "text", look: "json" }, buffers, 2)[1].text, "");
});

test("booleans, vectors and nulls", () => {
  const flags = cells(
    { encoding: "bool", validity: 1 },
    [view(new Uint8Array([1, 0, 1])), view(new Uint8Array([1, 1, 0]))],
    3,
  );
  assert.deepEqual(
    flags.map((cell) => [cell.text, cell.look]),
    [
      ["true", "bool"],
      ["false", "bool"],
      ["null", "null"],
    ],
  );
  const vectors = cells(
    { encoding: "vector", points: 2 },
    [view(new Float32Array([1.23456, 2])), view(new Uint8Array([1, 2, 3, 4]))],
    2,
  );
  assert.equal(vectors[0].text, "1.23");
  assert.deepEqual([...vectors[1].spark], [3, 4]);
  assert.deepEqual([...vectors[0].spark], [1, 2]);
  assert.equal(vectors[1].look, "vector");
});

test("a page tells what it holds", () => {
  const page = decodePage(
    {
      offset: 10,
      num_rows: 2,
      first_column: 3,
      columns: [
        { name: "a", encoding: "i8", buffers: [0], pictures: "01", ...plain },
        { name: "b", raw: "b.c", encoding: "text", look: "plain", buffers: [0, 0], ...plain },
      ],
    },
    [view(new Int8Array([1, 2, 0, 0]))],
  );
  assert.deepEqual(
    [
      page.holds(10, 3),
      page.holds(11, 4),
      page.holds(12, 3),
      page.holds(9, 3),
      page.holds(10, 2),
      page.holds(10, 5),
    ],
    [true, true, false, false, false, false],
  );
  assert.deepEqual(
    page.columns.map(({ name, raw, look, pictures }) => [name, raw, look, pictures]),
    [
      ["a", "a", "number", true],
      ["b", "b.c", "plain", false],
    ],
  );
});

/** A page as `decode` makes it, of rows from `offset`. */
const page = (offset, numRows, firstColumn = 0, numColumns = 2) => ({
  offset,
  numRows,
  firstColumn,
  columns: Array.from({ length: numColumns }, (_, at) => ({ name: `c${firstColumn + at}` })),
  holds: (row, column) =>
    row >= offset &&
    row < offset + numRows &&
    column >= firstColumn &&
    column < firstColumn + numColumns,
  cell: (row, column) => ({ text: `${row}:${column}` }),
});

function store() {
  const kernel = fakeKernel();
  const changes = [];
  const made = pageStore(kernel, (arrived) => changes.push(arrived), {
    decode: (result) => result,
  });
  made.reset({ branch: null, version: 1 }, null);
  return { kernel, changes, store: made, last: () => kernel.last("rows").args };
}

test("what is missing is asked for, with a share of what comes next", () => {
  const { store: pages, kernel, last, changes } = store();
  pages.want([0, 20], [0, 10], true, 1000);
  assert.deepEqual(last(), {
    branch: null,
    version: 1,
    offset: 0,
    limit: 200,
    first_column: 0,
    num_columns: 40,
  });
  assert.equal(pages.waits, true);
  pages.want([0, 20], [0, 10], true, 1000);
  assert.equal(kernel.count("rows"), 1); // under way already
  const arrived = page(0, 200, 0, 40);
  kernel.last("rows").answer(arrived);
  assert.deepEqual(changes, [arrived]);
  assert.equal(pages.waits, false);
  assert.equal(pages.count, 1);
  assert.equal(pages.cell(5, 3).text, "5:3");
  assert.equal(pages.cell(200, 3), undefined);
  assert.equal(pages.column(3).name, "c3");
  assert.equal(pages.column(40), undefined);
  assert.equal(pages.pageOf(199), arrived);
  assert.equal(pages.pageOf(200), undefined);
  pages.want([100, 120], [0, 10], true, 1000);
  assert.equal(kernel.count("rows"), 1);
  pages.want([150, 170], [0, 10], true, 1000); // 170 to 210 come next
  assert.equal(last().offset, 200);
});

test("down, a quarter of a page is before what is wanted; up, three quarters", () => {
  const { store: pages, last, kernel } = store();
  pages.want([500, 520], [50, 60], true, 1000);
  assert.equal(last().offset, 500 - 45);
  assert.equal(last().first_column, 35);
  kernel.last("rows").answer(page(455, 200, 35, 40));
  pages.want([400, 420], [50, 60], false, 1000);
  assert.equal(last().offset, 400 - 135);
  pages.want([3, 20], [50, 60], false, 1000);
  assert.equal(last().offset, 0);
});

test("a page that continues another begins where that ends", () => {
  const { store: pages, last, kernel } = store();
  pages.want([0, 20], [0, 2], true, 1000);
  kernel.last("rows").answer(page(0, 160));
  pages.want([150, 170], [0, 2], true, 1000);
  assert.equal(last().offset, 160);
});

test("scrolling up, rows before are fetched ahead", () => {
  const { store: pages, last, kernel } = store();
  pages.want([500, 520], [0, 2], true, 1000);
  kernel.last("rows").answer(page(480, 200));
  pages.want([500, 520], [0, 2], false, 1000);
  assert.equal(kernel.count("rows"), 2);
  assert.equal(last().offset, 460 - 105);
  pages.want([660, 680], [0, 2], true, 680);
  assert.equal(kernel.count("rows"), 2); // nothing after the last row
});

test("columns that are missing are asked for as well", () => {
  const { store: pages, last, kernel } = store();
  pages.want([0, 10], [0, 5], true, 100);
  kernel.last("rows").answer(page(0, 200, 0, 5));
  pages.want([0, 10], [2, 6], true, 100);
  assert.equal(kernel.count("rows"), 2);
  assert.equal(last().offset, 0);
});

test("pages of another place are dropped when they arrive", () => {
  const { store: pages, kernel, changes } = store();
  pages.want([0, 10], [0, 2], true, 100);
  const old = kernel.last("rows");
  pages.reset({ branch: null, version: 2 }, null);
  pages.want([0, 10], [0, 2], true, 100);
  old.answer(page(0, 100));
  assert.equal(pages.count, 0);
  assert.equal(pages.waits, true);
  old.fail({ message: "late" });
  assert.equal(pages.failure, null);
  assert.deepEqual(changes, []);
});

test("a failure is kept until the place changes", () => {
  const { store: pages, kernel, changes } = store();
  pages.want([0, 10], [0, 2], true, 100);
  kernel.last("rows").fail({ message: "damaged", title: "no" });
  assert.equal(pages.failure.title, "no");
  assert.deepEqual(changes, [undefined]);
  pages.want([50, 60], [0, 2], true, 100);
  assert.equal(kernel.count("rows"), 1);
  pages.reset({ version: 2 }, page(0, 3));
  assert.equal(pages.failure, null);
  assert.equal(pages.count, 1);
  assert.equal(pages.waits, false);
  assert.equal(pages.column(1).name, "c1");
});

test("an error without a card gets one", () => {
  const failing = pageStore(fakeKernel(), () => {}, {
    request: (_type, _args, _done, failed) => failed(new Error("no comm")),
  });
  failing.reset({}, null);
  failing.want([0, 1], [0, 1], true, 1);
  assert.equal(failing.failure.title, "Rows cannot be shown");
  assert.equal(failing.failure.message, "no comm");
});

test("a page without rows is a failure unless it is all there is", () => {
  const { store: pages, kernel } = store();
  pages.want([0, 1], [0, 1], true, 1);
  kernel.last("rows").answer({ ...page(0, 0), isAll: true });
  assert.equal(pages.failure, null);
  pages.reset({}, null);
  pages.want([0, 1], [0, 1], true, 1);
  kernel.last("rows").answer(page(0, 0));
  assert.equal(pages.failure.title, "No rows came back");
});

test("when a page of large rows ends before the row wanted, it begins with that row", () => {
  const { store: pages, kernel, last } = store();
  pages.want([100, 110], [0, 2], true, 1000);
  assert.ok(last().offset < 100);
  kernel.last("rows").answer(page(last().offset, 5));
  pages.want([100, 110], [0, 2], true, 1000);
  assert.equal(last().offset, 100);
  kernel.last("rows").answer(page(100, 10));
  const asked = kernel.count("rows");
  pages.want([100, 110], [0, 2], true, 1000); // nothing ahead
  assert.equal(kernel.count("rows"), asked);
});

test("the pages in sight stay, of others the newest", () => {
  const { store: pages, kernel } = store();
  for (const first of [0, 200, 400, 600, 800]) {
    pages.want([first, first + 10], [0, 2], true, first + 10);
    kernel.last("rows").answer(page(first, 200));
  }
  assert.equal(pages.count, 3);
  assert.ok(pages.pageOf(800));
  assert.ok(pages.pageOf(400));
  assert.equal(pages.pageOf(0), undefined);
  for (const at of [1, 2, 3, 4, 5]) {
    pages.want([2000, 2100], [0, 2], true, 2100);
    kernel.last("rows").answer(page(2000 + 10 * (at - 1), 10));
  }
  assert.equal(pages.count, 5);
});

test("nothing is asked without a place or a kernel", () => {
  const kernel = fakeKernel();
  const pages = pageStore(kernel, () => {});
  pages.want([0, 1], [0, 1], true, 1);
  pages.reset({}, null);
  kernel.state = "static";
  pages.want([0, 1], [0, 1], true, 1);
  assert.equal(kernel.asked.length, 0);
});

test("pinned columns are asked for beside those in sight", () => {
  const { store: pages, kernel, last } = store();
  const want = () => pages.want([0, 20], [62, 68], true, 20, 2);
  want();
  assert.equal(last().first_column, 45); // what was scrolled to first
  kernel.last("rows").answer(page(0, 20, 45, 40));
  want();
  assert.deepEqual([last().first_column, last().offset], [0, 0]);
  kernel.last("rows").answer(page(0, 20, 0, 40));
  const asked = kernel.count("rows");
  want();
  assert.equal(kernel.count("rows"), asked);
});

test("columns known before stay known where they are alike", () => {
  const { store: pages } = store();
  pages.reset({ version: 1 }, page(0, 2));
  pages.reset({ version: 2 }, null, { alike: true });
  assert.equal(pages.column(1).name, "c1");
  pages.reset({ version: 3 }, null);
  assert.equal(pages.column(1), undefined);
});

test("rows and columns are selected", () => {
  const ctx = fakeContext();
  let changed = 0;
  const chosen = gridSelection(
    ctx,
    () => ({ filter: "x" }),
    () => {
      changed += 1;
    },
  );
  const ranges = () => chosen.wanted().ranges;
  chosen.select(5);
  assert.deepEqual(ranges(), [[5, 6]]);
  assert.deepEqual([chosen.row(5), chosen.row(6), chosen.row(4)], [true, false, false]);
  chosen.select(9, { extend: true });
  assert.deepEqual(ranges(), [[5, 10]]);
  chosen.select(2, { extend: true });
  assert.deepEqual(ranges(), [[2, 6]]);
  assert.equal(chosen.rows, 4);
  chosen.select(20, { add: true });
  assert.deepEqual(ranges(), [
    [2, 6],
    [20, 21],
  ]);
  assert.equal(chosen.rows, 5);
  chosen.select(3, { add: true });
  assert.deepEqual(ranges(), [
    [2, 3],
    [4, 6],
    [20, 21],
  ]);
  chosen.select(5, { add: true });
  assert.deepEqual(ranges(), [
    [2, 3],
    [4, 5],
    [20, 21],
  ]);
  chosen.select(20, { add: true });
  assert.deepEqual(ranges(), [
    [2, 3],
    [4, 5],
  ]);
  chosen.select(7);
  assert.deepEqual(ranges(), [[7, 8]]);
  chosen.select(7);
  assert.deepEqual(ranges(), []);
  chosen.toggleColumn(3);
  chosen.toggleColumn(1);
  chosen.toggleColumn(12);
  assert.deepEqual(chosen.wanted().columns, [1, 3, 12]);
  assert.equal(chosen.column(3), true);
  chosen.toggleColumn(3);
  assert.equal(chosen.columns, 2);
  assert.deepEqual(ctx.kernel.last("select").args, { ranges: [], columns: [1, 12], filter: "x" });
  assert.equal(changed, ctx.kernel.count("select"));
  chosen.select(1);
  chosen.reset({ rows: true, columns: true });
  assert.deepEqual([chosen.rows, chosen.columns], [1, 2]);
  const told = ctx.kernel.count("select");
  chosen.reset({ rows: false, columns: true });
  assert.deepEqual([chosen.rows, chosen.columns], [0, 2]);
  assert.deepEqual(ctx.kernel.last("select").args.columns, [1, 12]);
  chosen.reset({ rows: false, columns: false });
  assert.equal(chosen.columns, 0);
  assert.equal(ctx.kernel.count("select"), told + 1);
});

test("the version before a place", () => {
  const lanes = timeline();
  const before = (branch, version) => versionBefore(lanes, { branch, version });
  assert.deepEqual(before(null, 3), { branch: null, version: 2 });
  assert.deepEqual(before(null, 6), { branch: null, version: 3 });
  assert.deepEqual(before(null, 7), { branch: null, version: 6 });
  assert.equal(before(null, 1), null);
  assert.deepEqual(before("dev", 4), { branch: null, version: 3 });
  assert.deepEqual(before("dev", 5), { branch: "dev", version: 4 });
  assert.equal(before("gone", 5), null);
  assert.equal(versionBefore(undefined, { branch: null, version: 2 }), null);
});

test("places are the same by branch and version", () => {
  const main = { branch: null, version: 1 };
  assert.equal(samePlace(main, { version: 1 }), true);
  assert.equal(samePlace({ branch: "dev", version: 1 }, { branch: "dev", version: 1 }), true);
  assert.equal(samePlace({ branch: "dev", version: 1 }, main), false);
  assert.equal(samePlace(main, { branch: "dev", version: 1 }), false);
  assert.equal(samePlace(main, { branch: null, version: 2 }), false);
  assert.equal(samePlace(null, main), false);
  assert.equal(samePlace(main, undefined), false);
  assert.equal(samePlace(null, null), false);
  assert.equal(placeLabel(main), "main:1");
  assert.equal(placeLabel({ branch: "dev", version: 2 }), "dev:2");
  assert.equal(placeLabel(null), "nothing");
});

test("A follows B until it is put somewhere", () => {
  const ctx = fakeContext();
  const range = versionRange(ctx);
  const heard = [];
  const stop = range.on((now, how) => heard.push([now.a?.version, now.b.version, how.dragging]));
  assert.deepEqual(range.get(), {
    a: { branch: null, version: 2 },
    b: { branch: null, version: 3 },
  });
  assert.equal(range.pinned, false);
  range.set({ a: { branch: null, version: 1 } });
  assert.equal(range.pinned, true);
  assert.deepEqual(heard, [[1, 3, false]]);
  ctx.show({ version: 7 });
  assert.deepEqual(heard.at(-1), [1, 7, false]);
  range.set({ a: null });
  assert.deepEqual(heard.at(-1), [6, 7, false]);
  range.set({ b: { branch: "dev", version: 5 } });
  assert.deepEqual(ctx.travels, [{ branch: "dev", version: 5 }]);
  stop();
  range.set({ a: null });
  assert.equal(heard.length, 4);
});

test("A follows B on its branch", () => {
  const range = versionRange(fakeContext({ branch: "dev", version: 5 }));
  const [a, b] = [4, 5].map((version) => ({ branch: "dev", version }));
  assert.deepEqual(range.get(), { a, b });
});

test("while B is dragged A stays, and nothing travels", () => {
  const ctx = fakeContext();
  const range = versionRange(ctx);
  const heard = [];
  range.on((now, how) => heard.push([now.a?.version, now.b.version, how.dragging]));
  range.set({ b: { branch: null, version: 7 } }, { dragging: true });
  range.set({ b: { branch: null, version: 6 } }, { dragging: true });
  assert.deepEqual(heard, [
    [2, 7, true],
    [2, 6, true],
  ]);
  assert.deepEqual(ctx.travels, []);
  range.set({ b: { branch: null, version: 6 } });
  assert.equal(range.pinned, true);
  assert.equal(ctx.travels.length, 1);
  assert.equal(range.get().a.version, 2);
  assert.equal(range.get().b.version, 3); // until the journey is done
});

test("who reaches for a handle is heard of", () => {
  const range = versionRange(fakeContext());
  const ends = [];
  const stop = range.onReach((end) => ends.push(end));
  range.reach("a");
  stop();
  range.reach("b");
  assert.deepEqual(ends, ["a"]);
});

const PROFILE = { column: 4, bars: [1, 2, 3, 4], edges: [0, 8], wheres: ["x = 1", ""] };

test("bars of a profile become a condition", async () => {
  const ctx = fakeContext();
  const range = async (from, to) => {
    const condition = conditionOf(ctx, { version: 3 }, PROFILE, from, to);
    const { args } = ctx.kernel.last("rows.range");
    ctx.kernel.last("rows.range").answer({ where: "w" });
    assert.equal(await condition, "w");
    return [args.low, args.high, args.closed, args.column, args.version];
  };
  assert.deepEqual(await range(1, 2), [2, 6, false, 4, 3]);
  assert.deepEqual(await range(0, 1), [null, 4, false, 4, 3]);
  assert.deepEqual(await range(2, 3), [4, null, false, 4, 3]);
  assert.deepEqual(await range(0, 3), [null, null, false, 4, 3]);
  const others = [{ kind: "nan" }, { kind: "inf" }, { kind: "below" }];
  PROFILE.odd = others;
  assert.deepEqual(await range(0, 3), [0, 8, true, 4, 3]);
  assert.deepEqual(await range(1, 2), [2, 6, false, 4, 3]);
  for (const [at, place] of [
    [0, 8],
    [2, 0],
  ]) {
    const condition = conditionOfOdd(ctx, { version: 3 }, PROFILE, others[at]);
    const { args } = ctx.kernel.last("rows.range");
    assert.deepEqual(args, { version: 3, column: 4, odd: others[at].kind, place });
    ctx.kernel.last("rows.range").answer({ where: "odd" });
    assert.equal(await condition, "odd");
  }
  delete PROFILE.odd;
  assert.equal(await conditionOf(ctx, {}, { ...PROFILE, edges: null }, 0, 0), "x = 1");
  assert.equal(await conditionOf(ctx, {}, { ...PROFILE, edges: null }, 7, 7), "");
  assert.equal(slotsOf(PROFILE), 4);
  assert.equal(slotsOf({ bars: [1] }), 4);
  assert.equal(slotsOf({ bars: [1, 2, 3, 4, 5] }), 5);
});

test("numbers near a dragged handle are fetched ahead", () => {
  const ctx = fakeContext();
  const painted = [];
  const numbers = dragCounts(ctx, (counts) => painted.push(counts));
  const pair = (a, b) => ({
    a: { branch: null, version: a },
    b: { branch: null, version: b },
    key: null,
  });
  numbers.soon(pair(1, 3), "a");
  const first = ctx.kernel.last("changes.near");
  assert.equal(first.args.end, "a");
  assert.deepEqual(first.args.versions, [1, 2, 3, 6, 7]);
  assert.equal(first.options.quiet, true);
  first.answer({ near: [1, 2, 3, 6, 7].map((version) => ({ version, counts: `n${version}` })) });
  assert.deepEqual(painted, ["n1"]);
  assert.equal(ctx.kernel.count("changes.near"), 1);
  numbers.at(pair(2, 3)); // known: no journey
  assert.deepEqual(painted, ["n1", "n2"]);
  assert.equal(ctx.kernel.count("changes.near"), 1);
  numbers.at(pair(2, 6)); // B is dragged: it is not where the screen stands
  assert.equal(ctx.kernel.last("changes.near").args.end, "b");
  const late = ctx.kernel.last("changes.near");
  numbers.stop();
  late.answer({ near: [{ version: 6, counts: "late" }] });
  assert.deepEqual(painted, ["n1", "n2"]);
  numbers.at(pair(1, 7));
  ctx.kernel.last("changes.near").fail({ message: "no" });
  assert.equal(ctx.kernel.last("changes.counts").args.b.version, 7);
  ctx.kernel.last("changes.counts").answer("alone");
  assert.deepEqual(painted.at(-1), "alone");
  const gone = { a: { branch: "gone", version: 9 }, b: { branch: null, version: 3 }, key: null };
  numbers.soon(gone, "a");
  assert.deepEqual(ctx.kernel.last("changes.near").args.versions, [9]);
});

/** A context whose main has versions 1 to 100, and a branch of its own. */
function longHistory(screen = {}) {
  const lanes = timeline();
  lanes.lanes[0].runs = [[1, 100]];
  return fakeContext({ version: 50, timeline: lanes, ...screen });
}
const span = (a, b, branch = null) => ({
  a: { branch, version: a },
  b: { branch, version: b },
  key: null,
});

test("fifteen versions on either side are prefetched when one of six is missing", () => {
  const ctx = longHistory();
  const numbers = dragCounts(ctx, () => {});
  const asked = () => ctx.kernel.last("changes.near").args.versions;
  numbers.soon(span(40, 50), "a");
  assert.deepEqual([Math.min(...asked()), Math.max(...asked()), asked().length], [25, 55, 31]);
  assert.deepEqual(asked().slice(0, 3), [40, 39, 41]);
  ctx.kernel
    .last("changes.near")
    .answer({ near: asked().map((version) => ({ version, counts: 1 })) });
  const count = ctx.kernel.count("changes.near");
  numbers.at(span(49, 50)); // 43 to 55 are known: no journey
  assert.equal(ctx.kernel.count("changes.near"), count);
  numbers.at(span(50, 50));
  assert.equal(asked()[0], 56);
});

test("versions of a branch are its own", () => {
  const ctx = longHistory();
  const numbers = dragCounts(ctx, () => {});
  numbers.soon(span(4, 5, "dev"), "a");
  assert.deepEqual(ctx.kernel.last("changes.near").args.versions, [4, 5]);
});

test("of the numbers the newest five hundred are kept", () => {
  const ctx = longHistory();
  const painted = [];
  const numbers = dragCounts(ctx, (counts) => painted.push(counts));
  const near = Array.from({ length: 600 }, (_, at) => ({ version: at, counts: at }));
  numbers.soon(span(40, 50), "a");
  ctx.kernel.last("changes.near").answer({ near });
  painted.length = 0;
  numbers.at(span(99, 50));
  numbers.at(span(100, 50));
  assert.deepEqual(painted, [100]);
});

test("answers that bring nothing end the fetching ahead", () => {
  const ctx = fakeContext();
  const numbers = dragCounts(ctx, () => assert.fail("nothing to paint"));
  numbers.soon(
    { a: { branch: null, version: 1 }, b: { branch: null, version: 3 }, key: null },
    "a",
  );
  ctx.kernel.last("changes.near").answer({ near: [] });
  assert.equal(ctx.kernel.count("changes.near"), 1);
});

const screen = (version, more = {}) => ({
  label: `main:${version}`,
  branch: null,
  version,
  timeline: timeline(),
  ...more,
});
const SNAPSHOT = {
  height: 300,
  screens: [
    screen(3, { rows: { buffers: [{ $bytes: "AQI=" }] } }),
    screen(2),
    { ...screen(5), label: "dev:5", branch: "dev" },
  ],
  answers: {
    "storage.map||3": { result: "map", buffers: [{ $bytes: "AQ==" }] },
    "storage.fragment||3|7": { result: "seven", buffers: [] },
    "storage.health|dev|5": { result: "fine", buffers: [] },
    "refs.list|tag": { result: "tags", buffers: [] },
    "refs.show|branch|None": { result: "main", buffers: [] },
    "refs.heads": { result: { heads: [{ name: "a" }, { name: "b" }] }, buffers: [] },
    "changes.counts||3": { result: "counts", buffers: [] },
    "changes.counts|dev|5": { result: "dev counts", buffers: [] },
    "rows.profile||3": {
      result: { profiles: [{ column: 1 }, { column: 2 }, { column: 3 }] },
      buffers: [],
    },
  },
  bars: { "": { 2: "two" } },
  choices: [{ ref: "Dev" }, { ref: "main" }],
};

function snapshot() {
  const model = snapshotModel(SNAPSHOT);
  const heard = [];
  const listener = (message, buffers) => heard.push({ ...message, buffers });
  model.on("msg:custom", listener);
  const ask = async (type, args = {}) => {
    model.send({ id: "1", type, args });
    await settled();
    return heard.at(-1);
  };
  return { model, ask, heard, listener };
}

test("a snapshot answers what was recorded", async () => {
  const { model, ask, heard, listener } = snapshot();
  assert.equal(model.get("height"), 300);
  assert.equal(model.get("screen").rows.buffers[0].getUint8(1), 2);
  assert.equal((await ask("ready")).ok, true);
  const map = await ask("storage.map", { version: 3, first: 0, stop: 2 ** 52 });
  assert.equal(map.result, "map");
  assert.equal(map.buffers[0].getUint8(0), 1);
  assert.equal((await ask("storage.map", { version: 3, first: 0, stop: 5 })).ok, false);
  assert.equal((await ask("storage.map", { version: 3, first: 1, stop: 2 ** 52 })).ok, false);
  assert.equal((await ask("storage.fragment", { version: 3, fragment: 7 })).result, "seven");
  assert.equal((await ask("storage.health", { branch: "dev", version: 5 })).result, "fine");
  assert.equal((await ask("refs.list", { kind: "tag", first: 0 })).result, "tags");
  assert.equal((await ask("refs.list", { kind: "tag", first: 100 })).ok, false);
  assert.equal((await ask("refs.show", { kind: "branch", name: null })).result, "main");
  assert.deepEqual((await ask("refs.heads", { names: ["b"] })).result.heads, [{ name: "b" }]);
  assert.deepEqual((await ask("versions", { branch: null, numbers: [1, 2] })).result.details, [
    "two",
  ]);
  assert.deepEqual((await ask("refs", { text: "dev" })).result.choices, [{ ref: "Dev" }]);
  const a = { branch: null, version: 2 };
  assert.equal(
    (await ask("changes.counts", { a, b: { branch: null, version: 3 } })).result,
    "counts",
  );
  assert.equal(
    (await ask("changes.counts", { a: { ...a, version: 1 }, b: { version: 3 } })).ok,
    false,
  );
  assert.equal(
    (await ask("changes.counts", { a: { ...a, branch: "dev" }, b: { version: 3 } })).ok,
    false,
  );
  const onDev = (version) => ({ branch: "dev", version });
  assert.equal((await ask("changes.counts", { a: onDev(4), b: onDev(5) })).result, "dev counts");
  const profiles = async (more) =>
    (await ask("rows.profile", { version: 3, first: 2, count: 2, ...more })).result?.profiles.map(
      (one) => one.column,
    );
  assert.deepEqual(await profiles({}), [2, 3]);
  assert.deepEqual(await profiles({ first: 1, count: 1 }), [1]);
  assert.equal(await profiles({ filter: "x" }), undefined);
  const refused = await ask("stage.menu");
  assert.equal(refused.ok, false);
  assert.equal(refused.error.kind, "Snapshot");
  assert.match(refused.error.message, /only what was recorded/);
  assert.equal((await ask("news")).result.latest, 3);
  assert.equal((await ask("select")).result.num_rows, 0);
  model.off("msg:custom", listener);
  const before = heard.length;
  await ask("ready");
  assert.equal(heard.length, before);
});

test("a snapshot travels among what was recorded", async () => {
  const { model, ask } = snapshot();
  let changes = 0;
  model.on("change:screen", () => {
    changes += 1;
  });
  assert.equal((await ask("travel", { branch: "dev", version: 5 })).result.label, "dev:5");
  assert.equal(model.get("screen").version, 5);
  assert.equal((await ask("travel", { ref: "main:2" })).ok, true);
  assert.equal((await ask("travel", { ref: "3" })).ok, true);
  assert.equal((await ask("travel", { ref: "tag:v1" })).result.label, "main:2");
  assert.equal((await ask("travel", { ref: "d" })).result.label, "dev:5");
  assert.equal(changes, 5);
  const missing = await ask("travel", { ref: "2" }); // of dev
  assert.match(
    missing.error.message,
    /^2 is not in this snapshot. It has main:3, main:2, dev:5\.$/,
  );
  assert.match((await ask("travel", { version: 9 })).error.message, /^main:9 is not/);
  assert.equal(changes, 5);
});

beforeEach(() => {});
afterEach(() => mock.timers.reset());
