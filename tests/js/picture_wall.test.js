// The wall of pictures: where tiles are, which are asked for, and what is done with them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { mountPictureWall } from "../../lance_nb/explorer/pictures/picture_wall.js";
import { WallLayout } from "../../lance_nb/explorer/pictures/wall_layout.js";
import { WallTiles } from "../../lance_nb/explorer/pictures/wall_tiles.js";
import { fakeContext, settled } from "./fake_context.js";
import "./light_page.js";

// --- wall_layout.js ---

const PARTS = [
  { title: "", count: 7 },
  { title: "two", count: 3 },
];

test("tiles stand in lines, section below section", () => {
  const layout = new WallLayout(PARTS, 318, 400, 100);
  assert.equal(layout.across, 3);
  assert.deepEqual(layout.tops, [0, 3 * 124, 3 * 124 + 34 + 124]);
  assert.deepEqual(layout.spot(0, 4), { section: 0, at: 4, x: 106, y: 124 });
  assert.deepEqual(layout.spot(1, 0), { section: 1, at: 0, x: 0, y: 3 * 124 + 34 });
  assert.equal(layout.height, layout.tops[2]);
});

test("only what is in sight is on the wall", () => {
  const layout = new WallLayout([{ title: "all", count: 100_000 }], 318, 400, 100);
  const { spots, titles } = layout.inSight(1240, 1640);
  assert.deepEqual(titles, []);
  assert.deepEqual([spots[0].at, spots.at(-1)?.at], [27, 38]);
  assert.deepEqual(layout.inSight(0, 100).titles, [0]);
  assert.deepEqual(new WallLayout([], 318, 400, 100).inSight(0, 100), { spots: [], titles: [] });
});

test("a wall that is too tall for a browser is scrolled in proportion", () => {
  const layout = new WallLayout([{ title: "", count: 5_000_000 }], 318, 400, 100);
  assert.equal(layout.height, 8_000_000);
  const end = layout.topOf(layout.height - 400);
  assert.ok(Math.abs(end + 400 - layout.tops[1]) < 1);
  const { y } = layout.spot(0, 4_000_000);
  assert.ok(Math.abs(layout.topOf(layout.scrollOf(y)) - y) < 1);
});

test("keys lead to the tile beside, above and below, over sections", () => {
  const layout = new WallLayout(PARTS, 318, 400, 100);
  const step = (section, at, key) => {
    const to = layout.step({ section, at }, key);
    return to && [to.section, to.at];
  };
  assert.deepEqual(step(0, 1, "ArrowRight"), [0, 2]);
  assert.deepEqual(step(0, 6, "ArrowRight"), [1, 0]);
  assert.deepEqual(step(1, 0, "ArrowLeft"), [0, 6]);
  assert.deepEqual(step(0, 0, "ArrowLeft"), [0, 0]);
  assert.deepEqual(step(0, 1, "ArrowDown"), [0, 4]);
  assert.deepEqual(step(0, 5, "ArrowDown"), [0, 6]); // the last line is short
  assert.deepEqual(step(0, 6, "ArrowDown"), [1, 0]);
  assert.deepEqual(step(1, 2, "ArrowUp"), [0, 6]);
  assert.deepEqual(step(1, 2, "ArrowDown"), [1, 2]);
  assert.deepEqual(step(0, 2, "PageDown"), [0, 6]);
  assert.deepEqual(step(1, 1, "Home"), [0, 0]);
  assert.deepEqual(step(0, 0, "End"), [1, 2]);
  assert.equal(step(0, 0, "x"), null);
});

// --- wall_tiles.js ---

const about = (row, more = {}) => ({
  row, kind: "image", label: "PNG 8 × 8", mime: "image/png", why: "", caption: `c${row}`,
  picture: true, later: false, width: 800, height: 400, ...more,
}); // biome-ignore format: one value
const SOURCE = { key: "k", type: "wall.tiles", args: { version: 3 }, first: 0, count: 100 };
const rowsOf = (first, stop) =>
  Array.from({ length: stop - first }, (_, at) => ({ source: SOURCE, row: first + at }));
const buffer = new ArrayBuffer(8);

/** Tiles whose pictures are decoded by a stand-in. */
function tilesOf(inSight = () => true) {
  const noted = { decoded: [], closed: 0, most: 0, failed: [] };
  let running = 0;
  globalThis.createImageBitmap = async (_blob, { resizeWidth: width, resizeHeight: height }) => {
    running += 1;
    noted.most = Math.max(noted.most, running);
    await settled();
    running -= 1;
    noted.decoded.push([width, height]);
    return { width, height, close: () => (noted.closed += 1) };
  };
  const context = fakeContext();
  const tiles = new WallTiles(context, {
    size: () => 100,
    inSight,
    changed() {},
    failed: (error) => noted.failed.push(error.message),
    learned() {},
  });
  return { tiles, noted, kernel: context.kernel };
}
const wait = async () => {
  for (let turn = 0; turn < 30; turn += 1) await settled();
};

test("rows in sight are asked for in one run, and decoded small, four at a time", async () => {
  const { tiles, noted, kernel } = tilesOf();
  tiles.want(rowsOf(10, 60));
  assert.deepEqual(kernel.last("wall.tiles").args, { version: 3, row: 10, count: 24 });
  tiles.want(rowsOf(10, 60));
  assert.equal(kernel.count("wall.tiles"), 1);
  const found = rowsOf(10, 34).map(({ row }) => about(row));
  kernel.last("wall.tiles").answer(
    { tiles: found },
    found.map(() => buffer),
  );
  await wait();
  assert.deepEqual(noted.decoded[0], [100, 50]);
  assert.equal(noted.most, 4);
  assert.equal(tiles.spent, 24 * 100 * 50 * 4);
  tiles.want(rowsOf(10, 60));
  assert.equal(kernel.last("wall.tiles").args.row, 34);
  tiles.forget();
  assert.equal(noted.closed, 24);
  assert.equal(tiles.spent, 0);
});

test("pictures that were scrolled away are not decoded, and asked for again", async () => {
  const sight = new Set(["k|0"]);
  const { tiles, noted, kernel } = tilesOf((key) => sight.has(key));
  tiles.want(rowsOf(0, 3));
  kernel
    .last("wall.tiles")
    .answer({ tiles: [about(0), about(1), about(2)] }, [buffer, buffer, buffer]);
  await wait();
  assert.equal(noted.decoded.length, 1);
  assert.equal(tiles.get("k|1"), null);
  tiles.want(rowsOf(0, 3));
  assert.deepEqual(kernel.last("wall.tiles").args, { version: 3, row: 1, count: 2 });
});

test("what is later, missing or no picture ends no loop", async () => {
  const { tiles, kernel } = tilesOf();
  tiles.want(rowsOf(0, 4));
  const sound = about(1, { kind: "audio", label: "WAV", picture: false });
  kernel
    .last("wall.tiles")
    .answer({ tiles: [about(0), sound, about(2, { picture: false, later: true })] }, [buffer]);
  await wait();
  tiles.want(rowsOf(0, 4));
  assert.deepEqual(kernel.last("wall.tiles").args, { version: 3, row: 2, count: 1 });
  const drawn = tiles.draw(/** @type {any} */ (tiles.get("k|1")));
  assert.equal(drawn[0].textContent, "▶ ♪ WAV");
  const none = tiles.draw(/** @type {any} */ (tiles.get("k|3")));
  assert.equal(none[0].textContent, "null"); // a row that did not come
});

// --- picture_wall.js ---

const COLUMNS = {
  pictures: [{ raw: "image", label: "image", at: 2 }],
  captions: [{ raw: "id", label: "id" }, { raw: "label", label: "label" }],
  groups: [{ raw: "label", label: "label" }],
  vectors: [{ raw: "v", label: "v", at: 4, metric: "cosine" }],
  labels: [{ raw: "label", label: "label" }],
}; // biome-ignore format: one value

async function mounted(screen = {}) {
  const context = fakeContext({ rows: { num_rows: 9, num_columns: 5 }, locked: false, ...screen });
  context.range = versionRange(context);
  const el = document.createElement("div");
  document.body.append(el);
  const view = mountPictureWall(el, context);
  await context.kernel.last("wall.columns").answer(COLUMNS);
  const status = () => el.querySelector(".lnb-wall-status").textContent;
  const choose = async (label, value) => {
    const select = el.querySelector(`[aria-label="${label}"]`);
    for (const option of select.querySelectorAll("option"))
      option.toggleAttribute("selected", option.getAttribute("value") === value);
    select.value = value;
    select.dispatchEvent(new Event("change"));
    await settled();
  };
  return { context, kernel: context.kernel, el, view, status, choose };
}

test("the wall shows the rows of the grid", async () => {
  const { status, el } = await mounted();
  assert.equal(status(), "9 rows");
  assert.equal(el.querySelector('[aria-label="caption"]').value, "label");
  assert.equal(el.querySelector('[aria-label="by"]').parentElement.hidden, true);
});

test("Ctrl and the wheel change the size of the pictures", async () => {
  const { el } = await mounted();
  const size = () => Number(el.querySelector('[aria-label="size of the pictures"]').value);
  const before = size();
  const turn = (options) => {
    const event = Object.assign(new Event("wheel", { bubbles: true, cancelable: true }), options);
    el.querySelector(".lnb-wall-scroll").dispatchEvent(event);
  };
  turn({ ctrlKey: false, deltaY: -1 });
  assert.equal(size(), before);
  turn({ ctrlKey: true, deltaY: -1 });
  assert.ok(size() > before);
  turn({ ctrlKey: true, deltaY: 1 });
  turn({ ctrlKey: true, deltaY: 1 });
  assert.ok(size() < before);
});

test("a list is found by a job, and all groups but the first rows can be staged", async () => {
  const { kernel, choose, status, el, context } = await mounted();
  await choose("show", "duplicates");
  assert.equal(kernel.last("wall.duplicates").args.vectors, "v");
  const sections = [
    { title: "3 near duplicates", first: 0, count: 3, edit: { keep: 1 } },
    { title: "2 near duplicates", first: 3, count: 2, edit: { keep: 1 } },
  ];
  await kernel.last("wall.duplicates").answer({
    arranged: "w1",
    sections,
    words: "5 rows in 2 groups",
    more: 0,
    code: { python: "p" },
  });
  await settled();
  assert.equal(status(), "5 rows in 2 groups");
  assert.deepEqual(context.codes.at(-1), { python: "p" });
  const button = el.querySelector(".lnb-wall-acts button");
  assert.equal(button.textContent, "Stage: keep the first of 2 groups");
  button.dispatchEvent(new Event("click"));
  const { args } = kernel.last("wall.condition");
  assert.equal(args.arranged, "w1");
  assert.equal(JSON.stringify(args.ranges), "[[1,3],[4,5]]");
  await kernel.last("wall.condition").answer({ where: "_rowid IN (1, 2, 4)", rows: 3 });
  const staged = kernel.last("stage.add");
  assert.deepEqual(staged.args.args, { where: "_rowid IN (1, 2, 4)" });
  assert.equal(staged.args.verb, "delete");
  await staged.answer({});
  await settled();
  assert.deepEqual(context.went.at(-1), ["stage", undefined]);
});

test("a list that is left is cancelled, and its answer is not shown", async () => {
  const { kernel, choose, status } = await mounted();
  await choose("show", "doubts");
  const late = kernel.last("wall.doubts");
  await choose("show", "rows");
  assert.ok(kernel.cancelled >= 1);
  await late.answer({ arranged: "w1", sections: [], words: "late", more: 0 });
  await settled();
  assert.equal(status(), "9 rows");
});

test("an error of a list is shown, and can be tried again", async () => {
  const { kernel, choose, el } = await mounted();
  await choose("show", "groups");
  await kernel.last("wall.groups").fail({ message: "too many rows" });
  await settled();
  assert.match(el.querySelector(".lnb-wall-problem").textContent, /too many rows/);
});

test("changes are sections of two versions", async () => {
  const { kernel, choose, status, context } = await mounted();
  context.range.set({ a: { branch: null, version: 1 }, b: { branch: null, version: 3 } });
  await choose("show", "changes");
  const { args } = kernel.last("wall.changes");
  assert.deepEqual([args.a.version, args.b.version, args.column], [1, 3, "image"]);
  await kernel.last("wall.changes").answer({
    arrived: { arranged: "w1", count: 2 },
    removed: { arranged: "w2", count: 0 },
    changed: { count: 1 },
    words: "2 arrived",
  });
  await settled();
  assert.equal(status(), "2 arrived");
  assert.deepEqual(context.described.get("pictures")().place, { branch: null, version: 3 });
});
