// The map: points that arrive in pieces, how they are drawn without WebGL, and what the view asks.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { mountEmbeddingMap } from "../../lance_nb/explorer/map/embedding_map.js";
import { MapCanvas, pointsInTime } from "../../lance_nb/explorer/map/map_canvas.js";
import {
  codeColours,
  colourOf,
  MISSING,
  OTHER,
  parts,
} from "../../lance_nb/explorer/map/map_colours.js";
import { pointCloud, simplified } from "../../lance_nb/explorer/map/point_cloud.js";
import { CHOSEN, paint, sizeFactor } from "../../lance_nb/explorer/map/point_renderer.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, send, shown } from "./light_page.js";

afterEach(() => document.body.replaceChildren());

const HOSTILE = "<img src=x onerror=alert(1)>";
const pairs = (...values) => new Uint16Array(values.flat()).buffer;
const bytes = (...values) => new Uint8Array(values).buffer;

test("pieces of points are samples, and keep the numbers of the kernel", () => {
  const cloud = pointCloud(7, 3);
  assert.equal(cloud.add(0, pairs([0, 0], [3, 3], [6, 6]), bytes(10, 13, 16)), 0);
  assert.equal(cloud.data.count, 3);
  assert.equal(cloud.add(1, pairs([1, 1], [4, 4]), bytes(11, 14)), 3);
  cloud.add(2, pairs([2, 2], [5, 5]), bytes(12, 15));
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(cloud.indexOf), [0, 3, 6, 1, 4, 2, 5]);
  assert.deepEqual([...cloud.data.codes], [10, 13, 16, 11, 14, 12, 15]);
  cloud.recolour(bytes(0, 1, 2, 3, 4, 5, 6));
  assert.deepEqual([...cloud.data.codes], [0, 3, 6, 1, 4, 2, 5]);
  assert.equal(cloud.indexOf(cloud.nearest(4.2, 4.1, 2)), 4);
  assert.equal(cloud.nearest(30, 30, 5), -1);
});

test("sizes come with the pieces, are others or end", () => {
  const cloud = pointCloud(3, 2);
  cloud.add(0, pairs([0, 0], [2, 2]), bytes(1, 1), bytes(10, 30));
  cloud.add(1, pairs([1, 1]), bytes(1), bytes(20));
  assert.deepEqual([...cloud.data.sizes], [10, 30, 20]);
  cloud.resize(bytes(1, 2, 3));
  assert.deepEqual([...cloud.data.sizes], [1, 3, 2]);
  cloud.resize(undefined);
  assert.equal(cloud.data.sizes, null);
});

test("states are set by bit, in the order of the kernel", () => {
  const cloud = pointCloud(10, 2);
  cloud.choose(bytes(0b00000101, 0b00000010), CHOSEN);
  const chosen = () =>
    [...cloud.data.states].flatMap((state, at) => (state & CHOSEN ? [cloud.indexOf(at)] : []));
  assert.deepEqual(
    chosen().sort((a, b) => a - b),
    [0, 2, 9],
  );
  cloud.data.xy.set([5, 6, 1, 1, 9, 2], 0);
  cloud.data.count = 3;
  assert.deepEqual(cloud.boxOf(CHOSEN), { low: [1, 1], high: [5, 6] });
  assert.equal(cloud.boxOf(4), null);
  cloud.mark(bytes(1, 0, 0, 0, 0, 0, 0, 0, 0, 2), 7);
  assert.equal(cloud.data.states[0], CHOSEN | 1);
  cloud.choose(null, CHOSEN);
  assert.deepEqual(chosen(), []);
  assert.equal(cloud.data.states[0], 1);
});

test("a slow frame is followed by one of fewer points, a quick one by more", () => {
  assert.equal(pointsInTime(1000000, 1200), 100000); // not fewer than a tenth at once
  assert.equal(pointsInTime(1000000, 48), 500000);
  assert.equal(pointsInTime(100000, 1200), 60000);
  assert.equal(pointsInTime(5000, 1200), 5000);
  assert.equal(pointsInTime(100000, 22), 100000);
  assert.equal(pointsInTime(100000, 17), 108000);
});

test("an outline that is given up selects nothing, and the next one begins anew", () => {
  const outlines = [];
  const map = new MapCanvas(fakeContext(), {
    hover: () => {},
    outline: (polygon) => outlines.push(polygon.length),
    clear: () => outlines.push(0),
    moved: () => {},
  });
  const { element } = map;
  element.getBoundingClientRect = () => ({ left: 0, top: 0 });
  document.body.append(element);
  map.lasso = true;
  const draw = (target, end, more = {}) => {
    const at = (type, x, y) =>
      send(element, type, { clientX: x, clientY: y, button: 0, buttons: 1, shiftKey: false });
    at("pointerdown", 0, 0);
    at("pointermove", 10, 0);
    at("pointermove", 10, 10);
    assert.ok(element.classList.contains("lnb-map-held"));
    send(target, end, more);
    assert.equal(element.classList.contains("lnb-map-held"), false);
    at("pointermove", 20, 20); // the button is down still
  };
  draw(element, "pointercancel");
  draw(element, "lostpointercapture");
  draw(document, "keydown", { key: "Escape" });
  assert.deepEqual(outlines, []);
  draw(element, "pointerup");
  assert.deepEqual(outlines, [3]);
});

test("an outline has few corners", () => {
  const corners = Array.from({ length: 1001 }, (_one, at) => [at, at]);
  assert.ok(simplified(corners, 200).length <= 200);
  assert.deepEqual(simplified(corners.slice(0, 5), 200), corners.slice(0, 5));
});

test("colours are those of the legend", () => {
  assert.deepEqual(parts("#3b7dd8"), [59, 125, 216]);
  assert.deepEqual(parts("rgb(1, 2, 3)"), [1, 2, 3]);
  const table = codeColours("category", 0.5);
  assert.deepEqual([...table.slice(0, 4)], [59, 125, 216, 128]);
  assert.equal(colourOf("category", OTHER), colourOf("category", MISSING));
  assert.notEqual(colourOf("number", 0), colourOf("number", 254));
});

test("without WebGL points are squares of pixels, chosen ones above faint ones", () => {
  const cloud = pointCloud(2, 1);
  cloud.add(0, pairs([50, 50], [50, 52]), bytes(0, 1));
  cloud.choose(bytes(0b01), CHOSEN);
  const pixels = new Uint32Array(10000);
  const look = { colours: codeColours("category", 1), byState: false, dims: true, size: 3 };
  const draw = (most = Infinity) => {
    pixels.fill(0);
    paint(pixels, 100, 100, cloud.data, { x: 50, y: 50, scale: 1 }, look, most);
    return pixels.filter(Boolean).length;
  };
  assert.equal(draw(), 15); // two squares of nine, three pixels of them in both
  const alpha = (x, y) => pixels[y * 100 + x] >>> 24;
  assert.equal(alpha(50, 50), 255);
  assert.ok(alpha(50, 47) < 64 && alpha(50, 47) > 0);
  assert.equal(draw(1), 9);
  look.size = 6;
  look.dims = false;
  assert.equal(draw(1), 32); // a circle in a square of 36
});

test("without WebGL points have their own sizes", () => {
  const cloud = pointCloud(2, 1);
  cloud.add(0, pairs([20, 50], [80, 50]), bytes(0, 1), bytes(0, 255));
  const pixels = new Uint32Array(10000);
  const look = { colours: codeColours("category", 1), byState: false, dims: false, size: 4 };
  paint(pixels, 100, 100, cloud.data, { x: 50, y: 50, scale: 1 }, look, Infinity);
  const columns = new Set([...pixels.keys()].filter((at) => pixels[at]).map((at) => at % 100));
  const wide = (from, to) => [...columns].filter((x) => x >= from && x < to).length;
  assert.deepEqual([wide(0, 50), wide(50, 100)], [2, 10]);
  assert.deepEqual([sizeFactor(0), sizeFactor(255)], [0.5, 2.5]);
});

const COLUMNS = {
  vectors: [{ raw: "vector", label: "vector" }],
  colours: [
    { raw: "label", label: "label" },
    { raw: "price", label: "price" },
  ],
  sizes: [{ raw: "price", label: "price" }],
  keys: [{ raw: "id", label: "id" }],
  stable: true,
  stored: [],
};
const LEGEND = [{ code: 0, label: HOSTILE, count: 2, x: 10, y: 10 }];
const PLACED = {
  key: "m1", column: "vector", layout: "components",
  num_points: 2, num_rows: 2, divisor: 1, without: 0, pieces: 1,
  low: [0, 0], high: [9, 9], words: "2 points of 2 rows",
  colouring: { column: "label", raw: "label", kind: "category", legend: LEGEND,
    names: LEGEND, low: "", high: "" },
}; // biome-ignore format: one answer

async function map() {
  const kernel = fakeKernel();
  const ctx = fakeContext({ offers: ["map"] }, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  document.body.append(el);
  const view = mountEmbeddingMap(el, ctx);
  await kernel.last("map.columns").answer(COLUMNS);
  await kernel.last("map.place").answer(PLACED);
  await kernel.last("map.piece").answer({ piece: 0 }, [pairs([1, 1], [2, 2]), bytes(0, 0)]);
  await settled();
  return { kernel, ctx, el, view };
}

test("rows are placed, coloured by what looks like a label, and listed", async () => {
  const { kernel, el } = await map();
  assert.deepEqual(kernel.last("map.place").args, {
    branch: null, version: 3, column: "vector", colour: "label", size: null,
    layout: "components",
  }); // biome-ignore format: one line
  assert.match(shown(el), /2 points of 2 rows/);
  assert.ok(shown(el.querySelector(".lnb-map-side")).includes(HOSTILE));
  assert.equal(el.querySelector("img"), null);
});

test("points get sizes by a column, and the legend says so", async () => {
  const { kernel, el, view } = await map();
  const select = el.querySelector("[aria-label='size by']");
  select.value = "price";
  select.dispatchEvent(new Event("change"));
  assert.deepEqual(kernel.last("map.size").args, { key: "m1", size: "price" });
  const words = `${HOSTILE}, 1 to 400`;
  await kernel.last("map.size").answer({ sizing: { raw: "price", words } }, [bytes(1, 255)]);
  await settled();
  assert.ok(shown(el.querySelector(".lnb-map-sizes")).includes(words));
  assert.equal(el.querySelector("img"), null);
  view.shown();
  await kernel.last("map.columns").answer(COLUMNS);
  assert.equal(select.value, "price");
  select.value = "";
  select.dispatchEvent(new Event("change"));
  await kernel.last("map.size").fail({ message: "the file is damaged" });
  await settled();
  assert.match(shown(el), /problem: the file is damaged/);
});

test("a version that was placed is not placed again when its tab is shown", async () => {
  const { kernel, view } = await map();
  view.shown();
  await kernel.last("map.columns").answer(COLUMNS);
  assert.equal(kernel.count("map.place"), 1);
});

test("back at a version before another was placed, the versions are compared again", async () => {
  const { kernel, ctx, el, view } = await map();
  ctx.range.set({ a: { branch: null, version: 3 } });
  button(el, "A → B").click();
  assert.match(shown(el), /no earlier version/);
  assert.equal(kernel.count("map.compare"), 0);
  ctx.range.set({ a: { branch: null, version: 1 } });
  await kernel.last("map.compare").fail({ message: "cancelled" });
  view.shown();
  await kernel.last("map.columns").answer(COLUMNS);
  await settled();
  assert.equal(kernel.count("map.compare"), 2);
  assert.equal(kernel.count("map.place"), 1);
});

test("the rows of a category are shown in the grid", async () => {
  const { kernel, ctx, el } = await map();
  button(el.querySelector(".lnb-map-side"), "Rows").click();
  assert.deepEqual(kernel.last("map.group").args, { key: "m1", kind: "code", code: 0 });
  const result = { branch: null, version: 3, rows: "s1", num_rows: 2, label: "2 rows" };
  await kernel.last("map.group").answer(result);
  await settled();
  assert.deepEqual(ctx.rows.wanted.within, { rows: "s1", label: "2 rows" });
  assert.deepEqual(ctx.went.at(-1)[0], "rows");
});

test("a layout that fails leaves the map as it was", async () => {
  const { kernel, el } = await map();
  const layout = el.querySelector("[aria-label=layout]");
  const choose = async () => {
    layout.selectedIndex = 1;
    layout.value = "neighbours";
    layout.dispatchEvent(new Event("change"));
    await kernel.last("map.columns").answer(COLUMNS);
  };
  await choose();
  assert.equal(kernel.last("map.place").args.layout, "neighbours");
  await kernel.last("map.place").fail({ message: "it needs manifolds-rs" });
  await settled();
  assert.match(shown(el), /it needs manifolds-rs/);
  assert.equal(layout.value, "components");
  await choose();
  await kernel.last("map.place").answer({ ...PLACED, key: "m2", layout: "neighbours" });
  await kernel.last("map.piece").answer({ piece: 0 }, [pairs([1, 1], [2, 2]), bytes(0, 0)]);
  await settled();
  assert.equal(layout.value, "neighbours");
});

test("coordinates are staged as a column, and kept ones are the layout at the start", async () => {
  const { kernel, ctx, el } = await map();
  const form = button(el, "Stage the column").closest(".lnb-tools");
  assert.equal(form.hidden, true);
  button(el, "Keep as column…").click();
  assert.equal(form.hidden, false);
  assert.equal(button(el, "Stage the column").disabled, true); // locked
  ctx.show({ locked: false }, true);
  el.querySelector("[aria-label=branch]").value = " try ";
  button(el, "Stage the column").click();
  assert.deepEqual(kernel.last("map.stage").args, { key: "m1", name: "map_xy", branch: "try" });
  await kernel.last("map.stage").answer({ card: "c1" });
  await settled();
  assert.equal(ctx.went.at(-1)[0], "stage");

  const other = fakeKernel();
  const place = fakeContext({ offers: ["map"] }, other);
  place.range = versionRange(place);
  const again = h("div");
  mountEmbeddingMap(again, place);
  const stored = [{ raw: "xy", label: HOSTILE, vector: "vector" }];
  await other.last("map.columns").answer({ ...COLUMNS, stored });
  assert.equal(other.last("map.place").args.layout, "column:xy");
  await other.last("map.place").answer({ ...PLACED, layout: "column:xy" });
  await other.last("map.piece").answer({ piece: 0 }, [pairs([1, 1], [2, 2]), bytes(0, 0)]);
  await settled();
  assert.equal(button(again, "Keep as column…").hidden, true);
  const offered = [...again.querySelector("[aria-label=layout]").children].at(-1);
  assert.equal(offered.textContent, `coordinates in ${HOSTILE}`);
});

test("changes are counted by label, also of labels that are gone", async () => {
  const { kernel, ctx, el } = await map();
  ctx.range.set({ a: { branch: null, version: 1 } });
  button(el, "A → B").click();
  const counts = { arrived: 3, removed: 5, moved: 0, relabelled: 0, same: 1 };
  const groups = {
    0: { arrived: 3, removed: 4, moved: 0, relabelled: 0 },
    12: { arrived: 0, removed: 1, moved: 0, relabelled: 0 },
  };
  const buffers = [bytes(1, 1), pairs([3, 3]), pairs()];
  const result = { counts, groups, words: "by key", a: "main:1", b: "main:3" };
  await kernel.last("map.compare").answer(result, buffers);
  await settled();
  const [, table] = el.querySelectorAll(".lnb-map-side table");
  const cells = [...table.querySelectorAll("tr")].map((line) =>
    [...line.children].map((cell) => cell.textContent),
  );
  assert.deepEqual(cells, [
    ["", "rows", "+", "−", "→", "≠", ""],
    [HOSTILE, "2", "3", "4", "", "", "Rows"],
    ["other values", "0", "", "1", "", "", "Rows"],
  ]);
});

test("what cannot be placed says why", async () => {
  const kernel = fakeKernel();
  const ctx = fakeContext({}, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  mountEmbeddingMap(el, ctx);
  await kernel.last("map.columns").answer(COLUMNS);
  await kernel.last("map.place").fail({ message: "the file is damaged" });
  await settled();
  assert.match(shown(el), /problem: the file is damaged/);
});
