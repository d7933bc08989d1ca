// Edits in the grid: ranges of cells, marks, the editor's box and its keys.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mountRowEditor } from "../../lance_nb/explorer/editing/row_editor.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { holdViews } from "../../lance_nb/explorer/js/tab_host.js";
import { mountRows } from "../../lance_nb/explorer/rows/rows.js";
import { fakeContext, settled } from "./fake_context.js";
import { nextFrame, observers, send } from "./light_page.js";
import { layOut, press, textPage } from "./row_pages.js";

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  holdViews("editing/row_editor.js", { mount: mountRowEditor });
});
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const SUMMARY = { title: "Edits of 1 cell in 1 row", on: "main:3", undo: 1, redo: 0, conflicts: 0 };

async function rows(screen = {}) {
  const page = textPage({ id: ["1", "2", "3"], word: ["a", "b", "c"] });
  const ctx = fakeContext({
    rows: { ...page, num_rows: 3, num_columns: 2 },
    locked: false,
    ...screen,
  });
  const el = h("div");
  document.body.append(el);
  mountRows(el, { ...ctx, has: () => true });
  const grid = el.querySelector(".lnb-grid");
  layOut(grid);
  nextFrame();
  const answer = async (type, result) => {
    await ctx.kernel.last(type).answer(result);
    await settled();
    nextFrame();
  };
  const cell = (row, column) =>
    el.querySelectorAll(".lnb-grid-row")[row].querySelectorAll(".lnb-cell")[column];
  return { ctx, el, grid, answer, cell };
}

async function editing() {
  const made = await rows();
  press(made.grid, "F2");
  await settled();
  await made.answer("edit.marks", { rows: [], added: [], summary: null });
  await made.answer("edit.begin", { why: "", newest: 3 });
  return made;
}

test("a range grows with Shift and the arrows, and is copied as a block", async () => {
  const { ctx, el, grid } = await rows();
  press(grid, "ArrowRight", { shiftKey: true });
  press(grid, "ArrowDown", { shiftKey: true });
  nextFrame();
  assert.equal(el.querySelectorAll(".lnb-in-range").length, 4);
  assert.equal(ctx.announced.at(-1), "2 rows by 2 columns of cells selected");
  press(grid, "c", { ctrlKey: true });
  const { row, rows: count, column, columns } = ctx.kernel.last("edit.copy").args;
  assert.deepEqual([row, count, column, columns], [0, 2, 0, 2]);
  press(grid, "ArrowUp");
  nextFrame();
  assert.equal(el.querySelectorAll(".lnb-in-range").length, 0);
});

test("a block is pasted while the grid has the keyboard, whoever gets the event", async () => {
  const { ctx, grid, cell } = await editing();
  const clipboardData = { getData: () => "7\tx\n8\ty\n" };
  const paste = (target, active) => {
    Object.defineProperty(document, "activeElement", { value: active, configurable: true });
    return send(target, "paste", { clipboardData }).defaultPrevented;
  };
  const elsewhere = h("input");
  document.body.append(elsewhere);
  assert.equal(paste(elsewhere, elsewhere), false);
  assert.equal(ctx.kernel.count("edit.paste"), 0);
  let asked = 0;
  for (const target of [grid, cell(0, 1), document.body]) {
    assert.equal(paste(target, grid), true);
    asked += 1;
    assert.equal(ctx.kernel.count("edit.paste"), asked);
    assert.equal(ctx.kernel.last("edit.paste").args.text, "7\tx\n8\ty\n");
  }
  ctx.close();
  assert.equal(paste(grid, grid), false);
  delete document.activeElement;
});

test("what was edited before is marked, and its text is no markup", async () => {
  const { el, answer, cell } = await rows();
  mock.timers.tick(1000);
  await answer("edit.marks", {
    rows: [
      { at: 1, deleted: false, cells: { word: HOSTILE } },
      { at: 2, deleted: true, cells: {} },
    ],
    added: [],
    summary: SUMMARY,
  });
  await answer("edit.marks", {
    rows: [
      { at: 1, deleted: false, cells: { word: HOSTILE } },
      { at: 2, deleted: true, cells: {} },
    ],
    added: [{ row: 1, cells: { word: HOSTILE, id: null } }],
    summary: SUMMARY,
  });
  assert.equal(cell(1, 1).textContent, HOSTILE);
  assert.match(cell(1, 1).className, /lnb-edited/);
  assert.match(el.querySelectorAll(".lnb-grid-row")[2].className, /lnb-row-gone/);
  assert.equal(el.querySelectorAll("img").length, 0);
  assert.match(el.querySelector(".lnb-edit-words").textContent, /1 cell in 1 row · on main:3/);
  assert.match(el.querySelector(".lnb-edit-new").textContent, /id: null/);
});

test("a value is typed, refused with its reason, and set", async () => {
  const { ctx, el, answer } = await editing();
  const box = el.querySelector("textarea.lnb-edit-box");
  await answer("edit.cell", {
    editor: "line",
    text: "1",
    null: false,
    nullable: true,
    name: "id",
    type: "int64",
  });
  assert.equal(box.value, "1");
  box.value = "x";
  send(box, "keydown", { key: "Enter" });
  await settled();
  assert.equal(ctx.kernel.last("edit.set").args.text, "x");
  await ctx.kernel.last("edit.set").fail({ title: "", message: "'x' is no value" });
  assert.equal(el.querySelector(".lnb-edit-said").textContent, "'x' is no value");
  box.value = "  ";
  send(box, "keydown", { key: "Enter" });
  await settled();
  assert.equal(ctx.kernel.last("edit.set").args.text, null);
  await answer("edit.set", { summary: SUMMARY, code: null });
  assert.equal(el.querySelectorAll(".lnb-edit-cell").length, 0);
});

test("true, false and null are chosen from a list", async () => {
  const { el, answer } = await editing();
  await answer("edit.cell", {
    editor: "bool",
    text: "true",
    null: false,
    nullable: true,
    name: "b",
    type: "bool",
  });
  const box = el.querySelector("textarea.lnb-edit-box");
  const choices = el.querySelector(".lnb-edit-cell select");
  assert.deepEqual([box.hidden, choices.hidden], [true, false]);
  const names = [...choices.querySelectorAll("option")].map((option) => option.value);
  assert.deepEqual(names, ["true", "false", "null"]);
});

test("keys of a spreadsheet act on the cell or the range", async () => {
  const { ctx, el, grid, answer } = await editing();
  send(el.querySelector("textarea.lnb-edit-box"), "keydown", { key: "Escape" });
  assert.equal(el.querySelectorAll(".lnb-edit-cell").length, 0);
  press(grid, "ArrowDown", { shiftKey: true });
  for (const [key, how, type] of [
    ["Delete", {}, "edit.clear"],
    ["d", { ctrlKey: true }, "edit.fill"],
    ["z", { ctrlKey: true }, "edit.undo"],
    ["z", { metaKey: true }, "edit.undo"],
    ["Z", { ctrlKey: true, shiftKey: true }, "edit.redo"],
  ]) {
    const before = ctx.kernel.count(type);
    press(grid, key, how);
    assert.equal(ctx.kernel.count(type), before + 1, key);
    await answer(type, { summary: SUMMARY, code: null });
  }
  assert.equal(ctx.kernel.last("edit.clear").args.rows, 2);
  press(grid, "Escape"); // the range
  press(grid, "7");
  assert.equal(el.querySelector("textarea.lnb-edit-box").value, "7");
  send(el.querySelector("textarea.lnb-edit-box"), "keydown", { key: "Escape" });
  press(grid, "Escape");
  assert.equal(el.querySelector(".lnb-edit-bar").hidden, true);
});

test("where rows cannot be edited, the reason stands there before anybody types", async () => {
  const { el, grid, answer } = await rows({ locked: true });
  press(grid, "F2");
  await settled();
  await answer("edit.marks", { rows: [], added: [], summary: null });
  await answer("edit.begin", { why: HOSTILE, newest: 4 });
  assert.match(el.querySelector(".lnb-edit-refusal").textContent, /onerror/);
  assert.match(el.querySelector(".lnb-edit-refusal").textContent, /Edit version 4/);
  assert.ok(el.querySelector(".lnb-edit-refusal .lnb-lock"), "the lock can be opened there");
  assert.equal(el.querySelectorAll(".lnb-edit-cell").length, 0);
});
