// Which columns are shown, which are pinned, and the order of several columns.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { test } from "node:test";
import { holdViews } from "../../lance_nb/explorer/js/tab_host.js";
import {
  ColumnChooser,
  shortest,
  shownBy,
  withMoved,
  withPinned,
  withShown,
} from "../../lance_nb/explorer/rows/column_chooser.js";
import { nextOrder } from "../../lance_nb/explorer/rows/grid_actions.js";
import gridPanes from "../../lance_nb/explorer/rows/grid_panes.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, send, shown } from "./light_page.js";

holdViews("rows/grid_panes.js", gridPanes);
const USUAL = { pinned: null, shown: null, hidden: [], order: "usual" };

test("columns are hidden, shown and pinned by name", () => {
  let choice = withShown(null, ["b"], false);
  assert.deepEqual(choice, { ...USUAL, hidden: ["b"] });
  assert.deepEqual(["a", "b"].map(shownBy(choice)), [true, false]);
  choice = withPinned(withPinned(choice, "c", []), "a", ["c"]);
  assert.deepEqual(choice.pinned, ["c", "a"]);
  choice = withShown(choice, ["c"], false); // what is hidden is not pinned
  assert.deepEqual(choice, { ...USUAL, pinned: ["a"], hidden: ["b", "c"] });
  choice = withPinned(choice, "a", ["a"]);
  assert.deepEqual(choice.pinned, []); // the key neither
  assert.equal(withShown({ ...choice, pinned: null }, ["b", "c"], true), null); // as at first
  assert.equal(shownBy(null)("x"), true);
});

test("a column takes the place of another one, on its side of the pinned ones", () => {
  const names = ["a", "b", "c", "d"];
  const moved = (...columns) => withMoved(null, names, ["a"], columns);
  assert.deepEqual(moved("b", "d"), { ...USUAL, order: ["a", "c", "d", "b"] });
  assert.deepEqual(moved("d", "b"), { ...USUAL, order: ["a", "d", "b", "c"] });
  assert.equal(moved("b", "a"), null);
  const both = withMoved({ ...USUAL, pinned: ["a", "b"] }, names, ["a", "b"], ["b", "a"]);
  assert.deepEqual(both, { ...USUAL, pinned: ["b", "a"] });
});

test("of columns that are listed, those hidden leave the list", () => {
  const few = { pinned: ["p"], shown: ["a", "b"], hidden: [] };
  assert.deepEqual(["p", "a", "c"].map(shownBy(few)), [true, true, false]);
  assert.deepEqual(withShown(few, ["a"], false).shown, ["b"]);
  assert.deepEqual(withShown(few, ["c", "a"], true).shown, ["b", "c", "a"]);
  assert.deepEqual(withShown(few, ["c"], true).hidden, []);
});

test("a choice names those columns that are fewer", () => {
  const names = ["a", "b", "c", "d"];
  const most = { pinned: ["d"], shown: null, hidden: ["a", "b", "c"] };
  assert.deepEqual(shortest(most, names), { pinned: ["d"], shown: ["d"], hidden: [] });
  const half = { pinned: [], shown: null, hidden: ["a", "b"] };
  assert.equal(shortest(half, names), half);
  assert.equal(shortest(null, names), null);
});

test("an order by one column, and by several", () => {
  const up = { column: "a", ascending: true };
  const down = { column: "a", ascending: false };
  const other = { column: "b", ascending: true };
  assert.deepEqual(nextOrder([], "a", false), [up]);
  assert.deepEqual(nextOrder([up], "a", false), [down]);
  assert.equal(nextOrder([down], "a", false), null);
  assert.deepEqual(nextOrder([up], "b", false), [other]);
  assert.deepEqual(nextOrder([up], "b", true), [up, other]);
  assert.deepEqual(nextOrder([up, other], "a", true), [down, other]);
  assert.deepEqual(nextOrder([down, other], "a", true), [other]);
  assert.deepEqual(nextOrder([down, other], "a", false), null);
});

const HOSTILE = "<b>x</b>";
const KNOWN = {
  columns: [
    { raw: "s_1", name: "s_1", type: "int64", group: 0 },
    { raw: "s_2", name: "s_2", type: "int64", group: 0 },
    { raw: "s_3", name: "s_3", type: "int64", group: 0 },
    { raw: HOSTILE, name: HOSTILE, type: "string", group: null },
  ],
  groups: ["s_…"],
  total: 4,
};

async function chooser(known = KNOWN) {
  const ctx = fakeContext({ rows: { num_rows: 5, num_columns: 4 } });
  const state = { row: 1, column: 0, numColumns: 4 };
  const moved = [];
  const made = new ColumnChooser(ctx, {
    state,
    column: (at) => known.columns[at],
    moveTo: (...place) => moved.push(place),
    fail: (error) => moved.push(error.message),
  });
  const answer = async (more = {}) => {
    await ctx.kernel.last("rows.look").answer({ num_rows: 5, num_columns: 3, ...more });
    await settled();
  };
  const opened = async () => {
    made.open();
    await ctx.kernel.last("rows.names").answer(known);
    await settled();
    return ctx.details.at(-1).content;
  };
  return { ctx, made, state, moved, answer, opened };
}

const choiceOf = (ctx) => ctx.kernel.last("rows.look").args.choice;
const box = (content, label) =>
  [...content.querySelectorAll("label")]
    .find((one) => one.querySelector("span").textContent === label)
    .querySelector("input");

test("keys hide and pin the column of the keyboard, and say so", async () => {
  const { ctx, made, state, moved, answer } = await chooser();
  state.column = 2;
  made.letters.p();
  assert.deepEqual(choiceOf(ctx), { ...USUAL, pinned: ["s_3"] });
  await answer({ pinned: 1 });
  assert.equal(ctx.announced.at(-1), "s_3 is pinned");
  assert.deepEqual(moved, [[1, 0]]); // the keyboard goes with it
  assert.equal(ctx.rows.numPinned, 1);
  state.column = 1;
  made.letters.h();
  assert.deepEqual(choiceOf(ctx), { ...USUAL, pinned: ["s_3"], hidden: ["s_2"] });
  await answer();
  state.numColumns = 1;
  made.letters.h();
  assert.equal(ctx.announced.at(-1), "The last column cannot be hidden.");
  made.reveal("s_2");
  assert.deepEqual(choiceOf(ctx).hidden, []);
});

test("columns are chosen from a list, alone, by group and by search", async () => {
  const { ctx, answer, opened } = await chooser();
  const content = await opened();
  assert.match(shown(content), /4 of 4 columns shown/);
  assert.equal(content.querySelector("li b"), null);
  const group = box(content, "s_…");
  assert.equal(group.checked, true);
  send(group, "change");
  assert.deepEqual(choiceOf(ctx), { ...USUAL, shown: [HOSTILE] });
  await answer();
  assert.match(shown(content), /1 of 4 columns shown/);
  assert.match(shown(content), /0 of 3 columns/);
  send(box(content, HOSTILE), "change"); // the last one
  assert.equal(ctx.announced.at(-1), "At least one column must be shown.");
  button(content, "Unfold").click();
  send(box(content, "s_2"), "change");
  assert.deepEqual(choiceOf(ctx).shown, [HOSTILE, "s_2"]);
  await answer();
  assert.equal(box(content, "s_…").indeterminate, true);
  const find = content.querySelector("input");
  find.value = "S_";
  send(find, "input");
  assert.match(shown(content), /· 3 found/);
  button(content, "Show only these").click();
  assert.deepEqual(choiceOf(ctx), { ...USUAL, shown: ["s_1", "s_2", "s_3"] });
  await answer();
  button(content, "Pin").click();
  assert.deepEqual(choiceOf(ctx).pinned, ["s_1"]);
  await answer();
  button(content, "Show all").click();
  assert.equal(choiceOf(ctx), null);
});

test("keys move the column of the keyboard; the order is remembered for the dataset", async () => {
  const stored = new Map();
  globalThis.localStorage = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => stored.set(key, value),
    removeItem: (key) => stored.delete(key),
  };
  const { ctx, made, state, moved, answer, opened } = await chooser();
  ctx.show({ card: { uri: "photos.lance" } });
  state.column = 2;
  made.letters["<"]();
  await ctx.kernel.last("rows.names").answer(KNOWN);
  assert.deepEqual(choiceOf(ctx), { ...USUAL, order: ["s_1", "s_3", "s_2", HOSTILE] });
  await answer();
  assert.equal(ctx.announced.at(-1), "s_3 is moved");
  assert.deepEqual(moved, [[1, 1]]);
  const key = "lance_nb columns photos.lance";
  const order = ["s_1", "s_3", "s_2", HOSTILE];
  assert.deepEqual(JSON.parse(stored.get(key)), { pinned: null, order });
  const again = await chooser();
  again.ctx.show({ card: { uri: "photos.lance" } });
  again.made.recall();
  assert.deepEqual(choiceOf(again.ctx), { ...USUAL, order });
  const other = await chooser();
  other.ctx.show({ card: { uri: "other.lance" } });
  other.made.recall();
  assert.equal(other.ctx.kernel.last("rows.look"), undefined);
  const content = await opened();
  button(content, "as in the dataset").click();
  assert.deepEqual(choiceOf(ctx), { ...USUAL, pinned: [], order: "stored" });
  await answer();
  assert.equal(button(content, "as in the dataset").getAttribute("aria-pressed"), "true");
  button(content, "what matters first").click();
  assert.equal(choiceOf(ctx), null);
  assert.equal(stored.size, 0);
  globalThis.localStorage.setItem = () => {
    throw new Error("no room");
  };
  made.remember({ ...USUAL, order: "stored" }); // the page works on
  delete globalThis.localStorage;
});

test("of many columns the first are listed", async () => {
  const columns = Array.from({ length: 300 }, (_, at) => ({
    raw: `c${at}`,
    name: `c${at}`,
    type: "x",
    group: null,
  }));
  const { opened } = await chooser({ columns, groups: [], total: 9000 });
  const content = await opened();
  assert.match(shown(content), /4 of 9,000 columns shown · the first 300 are listed/);
  assert.match(shown(content), /and 100 more: find them by name/);
});

test("the list follows the version that is shown", async () => {
  const { ctx, opened } = await chooser();
  const content = await opened();
  document.body.append(content);
  const find = content.querySelector("input");
  find.value = "s_";
  send(find, "input");
  ctx.show({ version: 4 });
  assert.equal(ctx.kernel.last("rows.names").args.version, 4);
  const columns = [...KNOWN.columns, { raw: "s_4", name: "s_4", type: "int64", group: 0 }];
  await ctx.kernel.last("rows.names").answer({ ...KNOWN, columns, total: 5 });
  await settled();
  assert.match(shown(content), /4 found/);
  assert.equal(find.value, "s_");
  content.remove();
  const asked = ctx.kernel.count("rows.names");
  ctx.show({ version: 5 });
  assert.equal(ctx.kernel.count("rows.names"), asked, "a list that is closed is not read");
});
