// The tables of a database: which are asked for, filter and order, keys, the way into one and back.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { switchingWidget } from "../../lance_nb/explorer/tables/table_switch.js";
import { mountTables } from "../../lance_nb/explorer/tables/tables.js";
import { fakeContext, settled } from "./fake_context.js";
import { nextFrame, observers, send, texts } from "./light_page.js"; // first: it makes the page

afterEach(() => {
  nextFrame();
  document.body.replaceChildren();
  observers.length = 0;
});

const CODE = { python: "lance_nb.explore('db')", magic: "%lance tables db" };
const card = (label, more = {}) => ({
  label,
  state: "ok",
  health: "ok",
  rows: 5,
  columns: 2,
  bytes: 100,
  versions: 1,
  version: 1,
  time: "then",
  time_ms: 1000,
  bars: [[1, "Append", 5]],
  code: { python: `lance_nb.explore('db/${label}.lance')`, magic: "" },
  error: null,
  ...more,
});

function mounted(labels, cards = {}, more = {}) {
  const tables = { name: "db", uri: "/db", listing: 1, num_tables: labels.length, labels, cards };
  const ctx = fakeContext({
    tables: { ...tables, open: null, looked_at: "", ...more },
    code: CODE,
  });
  const el = h("div");
  document.body.append(el);
  mountTables(el, ctx);
  const names = () => texts(el, ".lnb-tb-name strong");
  const find = (text) => {
    const input = el.querySelector(".lnb-tb-filter");
    input.value = text;
    send(input, "input");
  };
  const sort = (value) => {
    const select = el.querySelector("select");
    select.value = value;
    send(select, "change");
  };
  const asked = () => ctx.kernel.asked.filter(({ type }) => type === "tables.describe");
  return { ctx, el, names, find, sort, asked };
}

const many = (count) => [...Array(count).keys()].map((at) => `t${at}`);

test("only tables in sight are asked for, in small batches", async () => {
  const { asked, el, ctx } = mounted(many(100));
  assert.deepEqual(
    asked().map(({ args }) => args.tables),
    [[0, 1, 2, 3]], // 400 pixels of cards, one below the other
  );
  await asked()[0].answer({ listing: 1, cards: { 0: card("t0"), 1: card("t1") } });
  assert.equal(asked().length, 2, "what was not answered is asked for again");
  assert.match(el.querySelector(".lnb-tb-card").getAttribute("aria-label"), /^t0, 5 rows, 2 col/);
  assert.ok(el.querySelectorAll(".lnb-tb-card").length < 12);
  assert.equal(ctx.described.get("tables")().first, 0);
});

test("a batch out of sight is cancelled", async () => {
  const { asked, el, ctx } = mounted(many(100));
  const scroll = el.querySelector(".lnb-tb-scroll");
  scroll.scrollTop = 50 * 128;
  send(scroll, "scroll");
  nextFrame();
  assert.equal(ctx.kernel.cancelled, 1);
  assert.deepEqual(asked()[1].args.tables, [50, 51, 52, 53]);
  await asked()[0].fail({ kind: "CancelledError", message: "cancelled" });
  assert.equal(asked().length, 2);
});

test("a table that spoils its batch is told from the others", async () => {
  const { asked, el } = mounted(["a", "b"]);
  await asked()[0].fail({ kind: "InternalError", title: "Oh", message: "no" });
  assert.deepEqual(
    asked().map(({ args }) => args.tables),
    [[0, 1], [0], [1]],
  );
  await asked()[1].fail({ kind: "InternalError", title: "Oh", message: "no" });
  await asked()[2].answer({ listing: 1, cards: { 1: card("b") } });
  assert.deepEqual(texts(el, ".lnb-tb-health"), ["Oh: no"]);
  assert.match(el.textContent, /5 rows/);
  assert.equal(asked().length, 3);
});

test("tables are found by name and sorted by values, unknown ones last", () => {
  const cards = { 0: card("a", { rows: 1 }), 1: card("B", { rows: 7 }), 2: card("c", { rows: 3 }) };
  const { names, find, sort, el, ctx } = mounted(["a", "B", "c", "ab"], cards);
  sort("rows");
  assert.deepEqual(names(), ["B", "c", "a", "ab"]);
  assert.match(el.querySelector(".lnb-tb-status").textContent, /reading 1 more/);
  sort("name-down");
  assert.deepEqual(names(), ["ab", "c", "B", "a"]);
  sort("name");
  find("b");
  assert.deepEqual(names(), ["B", "ab"]);
  assert.deepEqual(ctx.described.get("tables")(), { filter: "b", order: "name", first: 0 });
  find("x");
  assert.match(el.textContent, /No table matches the filter/);
  send(el.querySelector(".lnb-tb-filter"), "keydown", { key: "Escape" });
  assert.equal(names().length, 4);
});

test("keys move among the cards, and one opens by its place in the listing", async () => {
  const labels = many(20);
  const { el, ctx } = mounted(labels, Object.fromEntries(labels.map((one, at) => [at, card(one)])));
  const scroll = el.querySelector(".lnb-tb-scroll");
  const focused = () => document.lastFocused.getAttribute("aria-label").split(",")[0];
  send(el.querySelector(".lnb-tb-filter"), "keydown", { key: "ArrowDown" });
  assert.equal(focused(), "t0");
  send(scroll, "keydown", { key: "ArrowDown" });
  send(scroll, "keydown", { key: "ArrowRight" });
  assert.equal(focused(), "t2");
  send(scroll, "keydown", { key: "ArrowUp" });
  send(scroll, "keydown", { key: "ArrowUp" });
  assert.equal(focused(), "t0");
  send(scroll, "keydown", { key: "ArrowUp" });
  assert.ok(document.lastFocused === el.querySelector(".lnb-tb-filter"));
  send(scroll, "keydown", { key: "End" });
  assert.equal(focused(), "t19");
  send(scroll, "keydown", { key: "PageUp" });
  assert.equal(focused(), "t16", "a page is what fits into 400 pixels");
  assert.match(el.querySelector(".lnb-code-line").textContent, /t16\.lance/);
  document.lastFocused.click();
  assert.deepEqual(ctx.kernel.last("tables.open").args, { listing: 1, table: 16 });
  await ctx.kernel.last("tables.open").fail({ message: "it has gone", kind: "NotFoundError" });
  assert.match(el.querySelector(".lnb-tb-problem").textContent, /it has gone/);
  document.lastFocused = null;
  mounted(labels);
  assert.ok(document.lastFocused === null, "a list that is shown again takes no keyboard");
});

test("more names than one answer holds are loaded behind it", async () => {
  const { ctx, el } = mounted(["a"], {}, { num_tables: 3 });
  assert.deepEqual(ctx.kernel.last("tables.list").args, { listing: 1, first: 1 });
  await ctx.kernel.last("tables.list").answer({ labels: ["b", "c"] });
  await settled();
  assert.deepEqual(texts(el, ".lnb-tb-name strong"), ["a", "b", "c"]);
});

test("a snapshot opens nothing, and says how", () => {
  const { el, ctx } = mounted(["a"], { 0: card("a") });
  ctx.show({ kept: true });
  el.querySelector(".lnb-tb-card").click();
  assert.equal(ctx.kernel.last("tables.open"), undefined);
  assert.match(ctx.announced.at(-1), /snapshot/);
  assert.match(el.querySelector(".lnb-code-line").textContent, /a\.lance/);
});

test("the widget follows the kernel from the tables to one of them and back", () => {
  const heard = new Map();
  const tables = { name: "db", uri: "/db", listing: 1, num_tables: 2, labels: ["a", "b"] };
  const wall = { tables: { ...tables, cards: {}, looked_at: "", open: null }, code: CODE };
  const open = { tables: { name: "db", uri: "/db", open: { table: 1, label: "b" } }, version: 1 };
  const state = { screen: wall, height: 400 };
  const sent = [];
  const model = {
    get: (name) => state[name],
    on: (name, work) => heard.set(name, [...(heard.get(name) ?? []), work]),
    off: (name, work) =>
      heard.set(
        name,
        (heard.get(name) ?? []).filter((one) => one !== work),
      ),
    send: (message) => sent.push(message),
  };
  const go = (screen) => {
    state.screen = screen;
    for (const work of heard.get("change:screen")) work();
  };
  const el = h("div");
  document.body.append(el);
  const painted = [];
  const stop = switchingWidget((place, ctx) => {
    ctx.onScreen((screen) => painted.push(screen.version));
    place.append(h("p", {}, "the explorer"));
  }, "explorer").render({ model, el });
  assert.deepEqual(texts(el, ".lnb-tb-name strong"), ["a", "b"]);
  go(open);
  assert.equal(el.querySelector(".lnb-tb"), null);
  assert.match(el.textContent, /All tables.*db.*b.*the explorer/);
  go({ ...open, version: 2 });
  assert.deepEqual(painted, [1, 2], "a journey within the table mounts nothing anew");
  el.querySelector(".lnb-back button").click();
  assert.equal(sent.at(-1).type, "tables.close");
  go(wall);
  assert.equal(texts(el, ".lnb-tb-card").length, 2);
  assert.deepEqual(painted, [1, 2], "an explorer that has gone paints nothing");
  stop();
  assert.equal(heard.get("change:screen").length, 0);
  assert.equal(el.children.length, 0);
});
