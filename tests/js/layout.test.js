// Where things stand: lanes of the timeline, the scroll bar, widths of columns, flags of tags.

import "./light_page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { laneMap } from "../../lance_nb/explorer/history/lanes.js";
import { flagSpots, tagFlags } from "../../lance_nb/explorer/history/tag_flags.js";
import { columnWidths, textMeasure } from "../../lance_nb/explorer/js/column_widths.js";
import { scrollMap, scrollSight } from "../../lance_nb/explorer/js/scroll_map.js";
import { timeline } from "./fake_context.js";

const SIZES = { bar: { main: 58, branch: 32 }, flag: 18 };
const mapOf = (branch = null, version = 3, before = null, model = timeline()) =>
  laneMap(model, branch, version, before, SIZES);

test("lanes share one axis of version numbers", () => {
  const map = mapOf("dev", 5);
  assert.deepEqual(map.numbers, [1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(map.here, { lane: 1, version: 5 });
  assert.deepEqual(
    map.lanes.map((lane) => [lane.top, lane.height]),
    [
      [0, 76],
      [80, 50],
    ],
  );
  assert.equal(map.height, 154);
  assert.equal(mapOf("gone", 1).here.lane, 0);
  assert.deepEqual(map.lanes[0].tags, [{ version: 2, names: ["v1", "v1b"], pins: false }]);
  assert.deepEqual(map.lanes[1].tags, [{ version: 5, names: ["d"], pins: false }]);
  assert.equal(map.older, 0);
  const model = timeline();
  model.tags.push({ name: "merged-dev-4", branch: "dev", version: 4, pin: "main:6" });
  assert.deepEqual(
    laneMap(model, null, 3, null, SIZES).lanes[1].tags.map((one) => one.pins),
    [true, false],
  );
  model.lanes[0].older = 3;
  model.lanes[1].older = 4;
  model.hidden_branches = 2;
  assert.equal(mapOf(null, 1, null, model).older, 7);
  assert.equal(mapOf(null, 1, null, model).hidden, 2);
  model.tags = [];
  assert.deepEqual(
    mapOf(null, 1, null, model).lanes.map((lane) => lane.height),
    [62, 36],
  );
});

test("slots fit the room, within bounds", () => {
  const map = mapOf();
  map.fit(72 + 7 * 30);
  assert.deepEqual([map.slot, map.width], [30, 282]);
  map.fit(100);
  assert.deepEqual([map.slot, map.width], [14, 7 * 14 + 72]);
  map.fit(5000);
  assert.deepEqual([map.slot, map.width], [56, 5000]);
  const model = timeline();
  model.lanes = [{ ...model.lanes[0], runs: [[3, 1]] }];
  const one = mapOf(null, 3, null, model);
  one.fit(72 + 40);
  assert.deepEqual([one.slot, one.width], [40, 112]);
});

test("the most rows are those of one version, added and removed", () => {
  const map = mapOf();
  assert.equal(map.mostRows, 10);
  map.lanes[1].details.set(5, { version: 5, added: 8, removed: 9 });
  map.measure();
  assert.equal(map.mostRows, 17);
});

test("positions of versions and what is in sight", () => {
  const map = mapOf();
  map.fit(72 + 7 * 20);
  assert.equal(map.indexOf(4), 3);
  assert.equal(map.x(6), 100);
  assert.deepEqual(map.visible(40, 60, 1), [1, 6]);
  assert.deepEqual(map.visible(60, 20, 1), [2, 5]);
  assert.deepEqual(map.visible(0, 20, 0), [0, 1]);
  const [main] = map.lanes;
  assert.deepEqual(map.numbersBetween(main, 1, 5), [2, 3, 6]);
  assert.deepEqual(map.numbersBetween(main, 3, 2), []);
  assert.deepEqual(map.numbersBetween(main, 2, 2), [3]);
});

test("the nearest version of a lane to a point", () => {
  const map = mapOf();
  map.fit(72 + 7 * 20);
  const [main, dev] = map.lanes;
  assert.equal(map.nearest(main, 25), 2);
  assert.equal(map.nearest(main, 62), 3);
  assert.equal(map.nearest(main, 92), 6);
  assert.equal(map.nearest(main, 65), 3);
  assert.equal(map.nearest(main, 70), 6); // as near to 3: the newer
  assert.equal(map.nearest(main, -50), 1);
  assert.equal(map.nearest(main, 9999), 7);
  assert.equal(map.nearest(dev, 0), 4);
  assert.equal(map.nearest({ ...dev, numbers: [] }, 0), null);
  const sparse = { ...dev, numbers: [1, 6] };
  assert.deepEqual(
    [30, 40, 70].map((x) => map.nearest(sparse, x)),
    [1, 1, 6],
  );
});

test("gaps are what was cleaned up", () => {
  const model = timeline();
  model.lanes[0].runs = [
    [2, 2],
    [5, 1],
    [8, 1],
  ];
  const map = mapOf(null, 8, null, model);
  map.fit(72 + map.numbers.length * 20);
  const [main, dev] = map.lanes;
  assert.deepEqual(map.gaps(main, 10), [
    [0, 5, "version 1 was cleaned up"],
    [37, 26, "version 4 was cleaned up"],
    [77, 6, "versions 6 to 7 were cleaned up"],
  ]);
  assert.equal(map.gaps(main, 1).length, 2);
  assert.deepEqual(map.gaps(dev, 10), []);
  main.older = 3;
  assert.equal(map.gaps(main, 10).length, 2);
});

test("what changed between two versions of a lane", () => {
  const [main, dev] = mapOf().lanes;
  const map = mapOf();
  assert.deepEqual(map.changed(main, 1, 3), {
    versions: 2,
    added: 5,
    removed: 3,
    unknown: 0,
    gone: 0,
  });
  assert.deepEqual(map.changed(main, 0, 6), {
    versions: 4,
    added: 15,
    removed: 3,
    unknown: 1,
    gone: 2,
  });
  assert.deepEqual(map.changed(dev, 3, 5), {
    versions: 2,
    added: 0,
    removed: 0,
    unknown: 2,
    gone: 0,
  });
});

test("keys lead from version to version", () => {
  const map = mapOf();
  const from = { lane: 0, version: 3 };
  const to = (key, start = from) => map.step(key, start);
  assert.deepEqual(to("ArrowLeft"), { lane: 0, version: 2 });
  assert.deepEqual(to("ArrowRight"), { lane: 0, version: 6 });
  assert.deepEqual(to("PageUp"), { lane: 0, version: 1 });
  assert.deepEqual(to("PageDown"), { lane: 0, version: 7 });
  assert.deepEqual(to("Home"), { lane: 0, version: 1 });
  assert.deepEqual(to("End"), { lane: 0, version: 7 });
  assert.deepEqual(to("ArrowDown"), { lane: 1, version: 4 });
  assert.equal(to("ArrowUp"), null);
  assert.deepEqual(to("ArrowUp", { lane: 1, version: 5 }), { lane: 0, version: 6 });
  assert.equal(to("x"), null);
  assert.deepEqual(to("ArrowDown", { lane: 0, version: 7 }), { lane: 1, version: 5 });
  const long = timeline();
  long.lanes = [{ ...long.lanes[0], runs: [[1, 40]] }];
  assert.deepEqual(
    mapOf(null, 20, null, long).step("PageUp", { lane: 0, version: 20 }).version,
    10,
  );
  assert.deepEqual(
    mapOf(null, 20, null, long).step("PageDown", { lane: 0, version: 20 }).version,
    30,
  );
});

test("details that were fetched stay when the screen changes", () => {
  const before = mapOf();
  before.lanes[0].details.set(7, { version: 7, added: 1, removed: 0 });
  before.lanes[0].asked.add(7);
  const after = mapOf(null, 7, before);
  assert.ok(after.lanes[0].details.has(7));
  assert.ok(after.lanes[0].asked.has(7));
  assert.ok(!mapOf().lanes[0].asked.has(7));
});

test("a short scroll bar maps pixels to rows one to one", () => {
  const map = scrollMap(28);
  map.set(1000, 280);
  assert.equal(map.scaled, false);
  assert.equal(map.height, 28000);
  assert.equal(map.lastTop, 990);
  assert.equal(map.topOf(56), 2);
  assert.equal(map.pixelsOf(2), 56);
  assert.equal(map.pixelsOf(5000), 990 * 28);
  assert.equal(map.pixelsOf(-1), 0);
  map.set(3, 280);
  assert.equal(map.lastTop, 0);
});

test("beyond 8 million pixels the scroll bar stands for a share of the rows", () => {
  const map = scrollMap(28);
  const even = scrollMap(32);
  even.set(250_000, 280);
  assert.equal(even.scaled, false);
  map.set(100_000_000, 280);
  assert.equal(map.scaled, true);
  assert.equal(map.height, 8_000_000);
  assert.equal(map.lastTop, 100_000_000 - 10);
  const most = 8_000_000 - 280;
  assert.equal(map.topOf(0), 0);
  assert.equal(map.topOf(most / 2), map.lastTop / 2);
  assert.equal(map.topOf(most), map.lastTop);
  assert.equal(map.topOf(most * 2), map.lastTop);
  assert.equal(map.pixelsOf(map.lastTop / 4), most / 4);
  assert.equal(map.pixelsOf(map.lastTop * 2), most);
  map.set(100_000_000, 8_000_000);
  assert.equal(map.topOf(100), 0);
  for (const pixels of [1, 1000, 4_000_000]) {
    map.set(100_000_000, 280);
    assert.ok(Math.abs(map.pixelsOf(map.topOf(pixels)) - pixels) < 1e-6);
  }
});

const column = (name, look = "text", type = "string", cell = () => ({ text: "x" })) => ({
  name,
  look,
  type,
  cell,
});
const page = (columns, more = {}) => ({ firstColumn: 0, numRows: 2, columns, ...more });
const measure = (text, font) => text.length * ({ bold: 10, mono: 8 }[font] ?? 6);

test("columns are as wide as their titles and longest cells", () => {
  const widths = columnWidths(measure);
  assert.equal(widths.of(0), 132);
  assert.equal(widths.left(2), 264);
  const long = column("ab", "text", "t", (row) => ({ text: "y".repeat(row ? 30 : 2) }));
  widths.learn(
    page([
      column("name"),
      long,
      column("flag", "bool"),
      column("a", "json", "", () => ({ text: "z".repeat(10) })),
    ]),
  );
  assert.equal(widths.of(0), 101); // a histogram has 80 pixels
  assert.equal(widths.of(1), 30 * 6 + 21);
  assert.equal(widths.of(2), 101);
  assert.equal(widths.of(3), 10 * 8 + 21);
  assert.equal(widths.left(2), 101 + 201);
  assert.equal(widths.total(4), 101 + 201 + 101 + 101);
  widths.learn(page([column("i", "number", "i", () => ({ text: "1" }))], { firstColumn: 9 }));
  assert.equal(widths.of(9), 101);
  widths.learn(
    page([column("v", "vector"), column("a_rather_long_name_", "bool")], { firstColumn: 20 }),
  );
  assert.deepEqual([widths.of(20), widths.of(21)], [148, 211]);
});

test("a column is as wide as its short numbers, and as a picture needs", () => {
  const widths = columnWidths(measure);
  const long = { text: "0.1234567890123456789012", short: "0.12345678901234567890" };
  const pictures = {
    ...column("picture", "binary", "", () => ({ text: "z".repeat(60) })),
    pictures: true,
  };
  widths.learn(page([column("n", "number", "", () => long), pictures]));
  assert.deepEqual([widths.of(0), widths.of(1)], [22 * 6 + 21, 101]);
});

test("a later page widens a column, never narrows it, up to 300 pixels", () => {
  const widths = columnWidths(measure);
  const cells = (length) => page([column("a", "text", "", () => ({ text: "x".repeat(length) }))]);
  widths.learn(cells(20));
  assert.equal(widths.of(0), 141);
  widths.learn(cells(5));
  assert.equal(widths.of(0), 141);
  widths.learn(cells(200));
  assert.equal(widths.of(0), 300);
  widths.learn(page([column("other")]));
  assert.equal(widths.of(0), 101);
});

test("a width set by hand stays until the column is another one", () => {
  const widths = columnWidths(measure);
  widths.learn(page([column("a"), column("b")]));
  assert.equal(widths.left(2), 2 * 101);
  widths.set(0, 200.4);
  assert.deepEqual([widths.of(0), widths.left(1), widths.left(2)], [200, 200, 301]);
  widths.learn(page([column("a", "text", "", () => ({ text: "x".repeat(100) })), column("b")]));
  assert.equal(widths.of(0), 200);
  widths.set(0, 3);
  assert.equal(widths.of(0), 48);
  widths.set(0, 9999);
  assert.equal(widths.of(0), 640);
  widths.learn(page([column("new"), column("b")]));
  assert.equal(widths.of(0), 101);
});

test("a column fits the cells in sight", () => {
  const widths = columnWidths(measure);
  widths.fit(0, column("a", "text", ""), [{ text: "x".repeat(60) }, undefined]);
  assert.equal(widths.of(0), 381);
  widths.fit(0, column("a", "text", ""), [{ text: "x".repeat(119) }]);
  assert.equal(widths.of(0), 640);
  widths.fit(1, undefined, []);
  assert.equal(widths.of(1), 132);
  widths.learn(page([column("a")]));
  assert.equal(widths.of(0), 640);
});

test("columns in sight", () => {
  const widths = columnWidths(measure);
  for (const at of [0, 1, 2, 3]) widths.set(at, 100);
  assert.deepEqual(widths.visible(0, 250, 4), [0, 3]);
  assert.deepEqual(widths.visible(100, 100, 4), [1, 2]);
  assert.deepEqual(widths.visible(150, 500, 4), [1, 4]);
  assert.deepEqual(widths.visible(9999, 10, 4), [4, 4]);
});

test("texts are measured in the fonts of the page", () => {
  const fit = textMeasure(document.createElement("p"));
  assert.equal(fit("four", "plain"), 28);
  assert.equal(fit("xx", "bold"), 14);
});

test("what is seen of a scroller is remembered", () => {
  const element = { clientWidth: 0, clientHeight: 5, scrollLeft: 1, scrollTop: 2 };
  const sight = scrollSight(element);
  assert.equal(sight.read(), false);
  assert.equal(sight.width, 0);
  element.clientWidth = 10;
  assert.equal(sight.read(), true);
  assert.deepEqual([sight.width, sight.height, sight.left, sight.top], [10, 5, 1, 2]);
  sight.to({ left: 7 });
  assert.deepEqual([element.scrollLeft, element.scrollTop, sight.left], [7, 2, 7]);
  sight.to({ top: 9 });
  assert.deepEqual([sight.left, sight.top], [7, 9]);
  element.clientWidth = 0;
  assert.equal(sight.read(), false);
  assert.equal(sight.width, 10);
});

const flagsOf = (tags, places, end, gone = []) =>
  tagFlags(
    { label: "main", top: 3, head: 40, tags, flags: flagSpots(tags, places, end) },
    (version) => gone.push(version),
  );

test("a flag has its name, and turns round at the end", () => {
  const gone = [];
  const long = { version: 1, names: ["a_long_name_of_a_tag"] };
  const [flag] = flagsOf([long], [10], 1000, gone);
  const { left, top, height, maxWidth } = flag.style;
  assert.deepEqual([left, top, height, maxWidth], ["10px", "3px", "38px", "172px"]);
  assert.equal(flag.querySelector("em").textContent, "a_long_name_of_a_tag");
  flag.click();
  assert.deepEqual(gone, [1]);
  const [longest] = flagsOf([{ version: 1, names: ["n".repeat(40)] }], [10], 1000);
  assert.equal(longest.style.maxWidth, "210px");
  const [turned] = flagsOf([long], [900], 1000);
  assert.match(turned.className, /lnb-flip/);
  assert.equal(turned.style.maxWidth, "172px");
});

test("crowded flags stand on one another, and each keeps its name", () => {
  const tags = ["baseline", "reviewed", "golden-set", "late"].map((name, index) => ({
    version: index + 1,
    names: [name],
  }));
  const levels = (places) => flagSpots(tags, places, 1000).map(({ level }) => level);
  assert.deepEqual(levels([0, 20, 40, 400]), [0, 1, 2, 0]);
  assert.deepEqual(levels([0, 100, 200, 400]), [0, 0, 0, 0]);
  // Its staff would cross the name below, so that it stands there itself.
  assert.deepEqual(levels([0, 20, 40, 90])[3], 2);
  const flags = flagsOf(tags, [0, 20, 40, 90], 1000);
  assert.deepEqual(
    flags.map((flag) => flag.querySelector("em")?.textContent),
    ["baseline", "reviewed", "golden-set", "late"],
  );
  assert.equal(flags[2].style.maxWidth, "46px"); // shortened by the one beside it
  assert.deepEqual([flags[1].style.top, flags[1].style.height], ["21px", "20px"]);
  const [, , , late] = flagSpots(tags, [0, 20, 40, 110], 140); // no staff crosses its name
  assert.deepEqual([late.flip, late.room], [false, 30]);
  const [, , sign] = flagsOf(tags, [0, 4, 8, 12], 1000);
  assert.equal(sign.querySelector("em"), null); // no room for a letter
  assert.match(sign.title, /^tag golden-set: main:3/);
});

test("several tags of one version are counted where there is no room for all", () => {
  const many = [
    { version: 0, names: ["a"] },
    { version: 1, names: ["b"] },
    { version: 2, names: ["first_name", "second_name"] },
    { version: 3, names: ["x"] },
  ];
  const [, , several] = flagsOf(many, [90, 95, 100, 230], 500);
  assert.equal(several.querySelector("em").textContent, "first_name +1");
  assert.match(several.title, /first_name, second_name: main:2/);
});
