// The view of rows: the first screen, what is asked for, filters, orders, errors.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { holdViews } from "../../lance_nb/explorer/js/tab_host.js";
import gridPanes from "../../lance_nb/explorer/rows/grid_panes.js";
import { mountRows } from "../../lance_nb/explorer/rows/rows.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, nextFrame, observers, send, shown, texts } from "./light_page.js";
import { layOut, press, rowsOf, textPage } from "./row_pages.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HERE = { branch: null, version: 3 };
const LOOK = { filter: null, system: false, arranged: null, shown: null };
const HOSTILE = "<img src=x onerror=alert(1)>";

const part = (columns, numRows = 3, more = {}) => ({
  ...textPage(columns),
  num_rows: numRows,
  num_columns: Object.keys(columns).length,
  ...more,
});
holdViews("rows/grid_panes.js", gridPanes);
const ROWS = part({ id: ["1", "2", "3"], word: ["a", HOSTILE, "c"] });
const VECTORS = structuredClone(ROWS);
for (const one of VECTORS.page.columns) one.look = "vector";

function rows(screen = { rows: ROWS }) {
  const ctx = fakeContext(screen);
  const el = h("div");
  document.body.append(el);
  const view = mountRows(el, ctx);
  const grid = el.querySelector(".lnb-grid");
  layOut(grid);
  nextFrame();
  const status = () => el.querySelector(".lnb-grid-status").textContent;
  const note = () => shown(el.querySelector(".lnb-grid-note"));
  const filter = (text) => {
    view.open({ filter: text });
    nextFrame();
    return ctx.kernel.last("rows.look");
  };
  return { ctx, el, view, grid, status, note, filter };
}

test("the first rows are shown without a request for rows", () => {
  const { ctx, el, grid, status, note } = rows();
  assert.deepEqual(rowsOf(el), [
    ["0", "1", "a"],
    ["1", "2", HOSTILE],
    ["2", "3", "c"],
  ]);
  assert.equal(el.querySelector("img"), null);
  assert.equal(ctx.kernel.count("rows"), 0);
  assert.equal(status(), "rows 0 – 2 of 3");
  assert.equal(note(), "");
  assert.equal(grid.getAttribute("aria-multiselectable"), "true");
  assert.deepEqual(ctx.shared.window, { offset: 0, first_column: 0 });
  assert.deepEqual(ctx.codes, [null]);
  mock.timers.tick(1000);
  const profiles = ctx.kernel.last("rows.profile").args;
  assert.deepEqual([profiles.branch, profiles.version, profiles.filter], [null, 3, null]);
});

test("rows that are not here are requested for the version shown", async () => {
  const { ctx, el, note } = rows({ rows: { ...ROWS, num_rows: 1000 } });
  const asked = ctx.kernel.last("rows");
  const { offset, limit, ...place } = asked.args;
  assert.deepEqual(place, { ...HERE, ...LOOK, first_column: 0, num_columns: 40 });
  assert.ok(offset <= 3 && offset + limit > 10);
  const next = textPage({ id: ["4", "5"], word: ["d", "e"] }, { offset: 3 });
  await asked.answer(next.page, next.buffers);
  nextFrame();
  assert.deepEqual(rowsOf(el)[4], ["4", "5", "e"]);
  await ctx.kernel.last("rows").fail({ title: "Damaged", message: HOSTILE, where: "", hint: "" });
  nextFrame();
  assert.equal(note(), `!|Damaged|${HOSTILE}`);
  assert.equal(el.querySelector("img"), null);
});

test("a version without rows, or one that cannot be read, says so", () => {
  const { ctx, el, grid, note, status } = rows({ rows: { num_rows: 0, num_columns: 2 } });
  assert.equal(note(), "This version has no rows.");
  assert.equal(status(), "");
  const error = { title: "Damaged", message: "cut short", where: "", hint: "", kind: "" };
  ctx.show({ version: 2, rows: { error } });
  nextFrame();
  assert.equal(note(), "!|Damaged|cut short");
  assert.ok(grid.classList.contains("lnb-broken"));
  ctx.show({ version: 1, rows: ROWS });
  nextFrame();
  assert.equal(note(), "");
  assert.ok(!grid.classList.contains("lnb-broken"));
  assert.equal(rowsOf(el).length, 3);
});

test("a snapshot says how many rows it keeps of how many", () => {
  const { status } = rows({ rows: { ...ROWS, whole: { rows: 5000, columns: 2 } } });
  assert.equal(status(), "rows 0 – 2 of 3 kept of 5,000");
});

test("a filter is asked of the kernel, and its rows begin at the top", async () => {
  const { ctx, status, note, filter } = rows();
  const asked = filter("id > 1");
  assert.deepEqual(asked.args, {
    ...HERE, filter: "id > 1", system: false, order: null, near: null, within: null, search: null,
    choice: null,
  }); // biome-ignore format: one place
  const code = { python: "ds.to_table(filter='id > 1')", magic: "%lance head" };
  await asked.answer({ num_rows: 2, num_columns: 2, arranged: null, code });
  nextFrame();
  assert.deepEqual(ctx.codes.at(-1), code);
  assert.equal(ctx.kernel.last("rows").args.filter, "id > 1");
  mock.timers.tick(1000);
  assert.equal(ctx.kernel.last("rows.profile").args.filter, null); // behind those that pass
  assert.deepEqual(ctx.kernel.last("rows.cross").args.conditions, [[null, "id > 1"]]);
  assert.match(status(), /of 2$/);
  const none = filter("id > 9");
  await none.answer({ num_rows: 0, num_columns: 2, arranged: null, code });
  nextFrame();
  assert.equal(note(), "No row passes the filter.");
});

test("a filter that is refused leaves the rows that are shown", async () => {
  const { ctx, el, filter } = rows();
  const asked = filter("nope > 1");
  await asked.fail({ title: "Filter", message: HOSTILE, where: "", hint: "", kind: "" });
  nextFrame();
  assert.equal(rowsOf(el).length, 3);
  assert.match(shown(el.querySelector(".lnb-rows")), /<img src=x onerror=alert\(1\)>/);
  assert.equal(el.querySelector("img"), null);
  assert.deepEqual(ctx.codes, [null]);
});

test("of two filters the newer one counts, whichever is answered first", async () => {
  const { ctx, status, filter } = rows();
  const first = filter("id > 1");
  const second = filter("id > 2");
  assert.equal(ctx.kernel.cancelled, 1);
  const answer = { num_columns: 2, arranged: null, code: { python: "" } };
  await second.answer({ num_rows: 1, ...answer });
  await first.answer({ num_rows: 2, ...answer });
  nextFrame();
  assert.match(status(), /of 1$/);
  assert.equal(ctx.kernel.last("rows").args.filter, "id > 2");
});

test("a filter is asked again of the version that is shown next", async () => {
  const { ctx, filter } = rows();
  const answer = { num_rows: 2, num_columns: 2, arranged: null, code: { python: "" } };
  await filter("id > 1").answer(answer);
  ctx.show({ version: 2, rows: ROWS });
  await settled();
  const asked = ctx.kernel.last("rows.look").args;
  assert.deepEqual([asked.version, asked.filter], [2, "id > 1"]);
});

test("the keyboard selects rows and opens a whole row", async () => {
  const { ctx, el, grid, view, status } = rows();
  press(grid, " ");
  nextFrame();
  assert.equal(status(), "rows 0 – 2 of 3 · 1 selected");
  view.open({ row: 2 });
  nextFrame();
  assert.equal(document.lastFocused, grid);
  button(el, "Whole row").click();
  await settled();
  const asked = ctx.kernel.asked.at(-1);
  assert.equal(asked.args.version, 3);
  assert.equal(asked.args.row, 2);
  await asked.fail({ message: "lost" });
  assert.equal(shown(ctx.details.at(-1).content), "problem: lost");
});

test("a click on a number selects rows, Shift extends, a click on a cell moves there", () => {
  const { el, grid, status } = rows();
  const numbers = () => [...el.querySelectorAll(".lnb-grid-body .lnb-grid-number")];
  send(numbers()[0], "click", { shiftKey: false, ctrlKey: false, metaKey: false });
  send(numbers()[2], "click", { shiftKey: true, ctrlKey: false, metaKey: false });
  nextFrame();
  assert.match(status(), /· 3 selected$/);
  assert.equal(send(numbers()[1], "mousedown").defaultPrevented, true);
  const cell = [...el.querySelectorAll(".lnb-grid-body .lnb-cell")].find(
    (one) => one.textContent === "c",
  );
  send(cell, "click");
  nextFrame();
  assert.match(grid.getAttribute("aria-activedescendant"), /-2-1$/);
});

test("Shift extends from the cell of the keyboard, a plain click and Escape clear", () => {
  const { ctx, el, grid, status } = rows();
  const shift = { shiftKey: true };
  const ranges = () => ctx.kernel.last("select").args.ranges;
  const cells = () => [...el.querySelectorAll(".lnb-grid-body .lnb-cell")];
  const click = (text) =>
    send(
      cells().find((cell) => cell.textContent === text),
      "click",
    );
  const number = (row, held = {}) =>
    send(el.querySelectorAll(".lnb-grid-body .lnb-grid-number")[row], "click", {
      shiftKey: false,
      ctrlKey: false,
      metaKey: false,
      ...held,
    });
  click("c");
  press(grid, "ArrowUp", shift);
  assert.deepEqual(ranges(), [[1, 3]]);
  press(grid, "ArrowUp", shift);
  assert.deepEqual(ranges(), [[0, 3]]);
  press(grid, "ArrowDown", shift);
  assert.deepEqual(ranges(), [[1, 3]]);
  nextFrame();
  assert.match(status(), /· 2 selected$/);
  click("a");
  assert.deepEqual(ranges(), []);
  nextFrame();
  assert.doesNotMatch(status(), /selected/);
  // A click on a number moves the keyboard there; a plain arrow begins another range.
  number(1);
  press(grid, "ArrowDown", shift);
  assert.deepEqual(ranges(), [[1, 3]]);
  press(grid, "ArrowUp");
  press(grid, "ArrowUp", shift);
  assert.deepEqual(ranges(), [[0, 2]]);
  press(grid, "Escape");
  assert.deepEqual(ranges(), []);
  // A row that Ctrl and a click took out is no end of a range.
  number(0);
  number(2, { ctrlKey: true });
  number(2, { ctrlKey: true });
  assert.deepEqual(ranges(), [[0, 1]]);
  number(1, shift);
  assert.deepEqual(ranges(), [[1, 3]]);
  // A block of cells and rows are not selected at once.
  press(grid, "ArrowRight", shift);
  assert.deepEqual(ranges(), []);
  nextFrame();
  assert.ok(el.querySelector(".lnb-in-range"));
  number(0);
  nextFrame();
  assert.equal(el.querySelector(".lnb-in-range"), null);
});

test("a key sorts by the column: ascending, descending, as stored", async () => {
  const { ctx, el, grid } = rows();
  const orders = [];
  const sorted = () =>
    [...el.querySelectorAll("[role=columnheader]")].map((one) => one.getAttribute("aria-sort"));
  const marks = [];
  const answer = { num_rows: 3, num_columns: 2, arranged: 7, code: { python: "" } };
  for (const _turn of [1, 2, 3]) {
    press(grid, "s");
    orders.push(ctx.kernel.last("rows.look").args.order);
    await ctx.kernel.last("rows.look").answer(answer);
    await ctx.kernel.last("rows")?.answer(ROWS.page, ROWS.buffers);
    nextFrame();
    marks.push(sorted().filter(Boolean).join());
  }
  assert.deepEqual(orders, [
    [{ column: "id", ascending: true }],
    [{ column: "id", ascending: false }],
    null,
  ]);
  assert.deepEqual(marks, ["ascending", "descending", ""]);
});

test("the recall of an index is compared on demand, and a search can be exact", async () => {
  const { ctx, grid, el } = rows({ rows: VECTORS });
  press(grid, "n");
  await ctx.kernel.last("rows.like").answer({ like: "7", row: 2, column: "word" });
  const answer = {
    num_rows: 3,
    num_columns: 3,
    arranged: 7,
    code: { python: "" },
    words: "3 rows",
  };
  await ctx.kernel.last("rows.look").answer(answer);
  nextFrame();
  const near = el.querySelector(".lnb-near");
  near.querySelector("button").click();
  const recall = ctx.kernel.last("rows.recall");
  assert.deepEqual([recall.args.near.like, recall.args.filter], ["7", null]);
  await recall.answer({ words: "the index finds 9 of the 10 nearest" });
  await settled();
  assert.match(el.querySelector(".lnb-filter-said").textContent, /9 of the 10/);
  const how = near.querySelector('[aria-label="how neighbours are found"]');
  for (const one of how.querySelectorAll("option"))
    one.toggleAttribute("selected", one.getAttribute("value") === "exact");
  how.value = "exact";
  how.dispatchEvent(new Event("change"));
  assert.equal(ctx.kernel.last("rows.look").args.near.exact, true);
});

test("among neighbors the keyboard goes to the distance, the first column", async () => {
  const { ctx, grid, view } = rows({ rows: VECTORS });
  const place = () => grid.getAttribute("aria-activedescendant").split("-").slice(-2).join(":");
  const answer = {
    num_rows: 3,
    num_columns: 3,
    arranged: 7,
    code: { python: "" },
    found_by: "_distance",
  };
  view.open({ row: 2 });
  press(grid, "ArrowRight");
  nextFrame();
  assert.equal(place(), "2:1");
  press(grid, "n");
  const like = ctx.kernel.last("rows.like");
  assert.deepEqual([like.args.row, like.args.column], [2, 1]);
  await like.answer({ like: "7", row: 2, column: "word" });
  const near = ctx.kernel.last("rows.look");
  assert.deepEqual([near.args.near.like, near.args.near.column], ["7", "word"]);
  await near.answer(answer);
  nextFrame();
  assert.equal(place(), "0:0");
  press(grid, "ArrowRight");
  nextFrame();
  assert.equal(place(), "0:1");
  view.open({ filter: "id > 1" });
  assert.equal(ctx.kernel.last("rows.look").args.filter, "id > 1");
});

test("the gutter fits the number of the last row", () => {
  const gutter = (numRows) => {
    const { el } = rows({ rows: { ...ROWS, num_rows: numRows } });
    return el.querySelector(".lnb-grid-body .lnb-cell").style.transform;
  };
  assert.equal(gutter(3), "translateX(44px)");
  assert.equal(gutter(1_000_000), "translateX(90px)");
});

test("columns of another version are not those of the one before", () => {
  const { ctx, el } = rows();
  const titles = () => texts(el, ".lnb-grid-column b").filter(Boolean);
  assert.deepEqual(titles(), ["id", "word"]);
  ctx.show({ version: 2, rows: { num_rows: 3, num_columns: 2 } });
  nextFrame();
  assert.deepEqual(titles(), ["…", "…"]);
});

test("a search for rows shows that it runs, and ends with the answer", async () => {
  const { ctx, el, view } = rows();
  const running = () => shown(el.querySelector(".lnb-rows-tools")).includes("|…");
  const answer = { num_rows: 3, num_columns: 2, arranged: null, code: { python: "" } };
  const seen = [];
  for (const filter of ["id > 1", ""]) {
    view.open({ filter });
    nextFrame();
    seen.push(running());
    await ctx.kernel.last("rows.look").answer(answer);
    nextFrame();
    seen.push(running());
  }
  assert.deepEqual(seen, [true, false, false, false]);
});
