// The menu of a cell: what it offers, its keyboard, and where the keyboard goes afterwards.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { cellMenu } from "../../lance_nb/explorer/rows/cell_menu.js";
import { fakeContext } from "./fake_context.js";
import { send, shown } from "./light_page.js";

afterEach(() => document.body.replaceChildren());

/** A menu for a cell of row 4. */
function menu({
  look = "text",
  canWrite = true,
  pinned = [],
  selected = 0,
  hasBlock = false,
} = {}) {
  const ctx = fakeContext();
  const did = [];
  const note =
    (name) =>
    (...values) =>
      did.push([name, ...values]);
  const element = h("div", { tabindex: "0" });
  const parent = h("section", element);
  document.body.append(parent);
  element.focus = note("focus");
  if (selected) ctx.rows.selection.all(selected);
  globalThis.innerWidth = 1000;
  globalThis.innerHeight = 800;
  cellMenu(
    {
      ctx,
      grid: { element, state: { row: 4, column: 2 } },
      actions: {
        only: note("only"),
        similar: note("similar"),
        copy: note("copy"),
        openColumn: note("column"),
      },
      chooser: { pinned: () => pinned, pin: note("pin"), hide: note("hide"), move: note("move") },
      edits: {
        hasBlock,
        edits: canWrite,
        button: { hidden: false },
        copy: note("copy block"),
        open: note("edit"),
        stageDeletion: note("delete"),
      },
      column: { name: "caption", raw: "caption", look },
      open: note("open"),
      openRow: note("openRow"),
    },
    { x: 990, y: 20 },
  );
  const element_ = parent.querySelector("[role=menu]");
  const items = [...element_.querySelectorAll("[role=menuitem]")];
  const item = (words) => items.find((entry) => entry.textContent.startsWith(words));
  return { ctx, did, parent, element: element_, items, item };
}

test("the entries do what they say, and the keyboard goes back to the grid", () => {
  const cases = [
    ["Only this value", ["only", 4, 2]],
    ["Without this value", ["only", 4, 2, true]],
    ["More like this", ["similar", 4, 2]],
    ["Copy value", ["copy"]],
    ["Copy row as Markdown", ["copy", "markdown"]],
    ["Copy row as code", ["copy", "code"]],
    ["Pin column", ["pin"]],
    ["Hide column", ["hide"]],
    ["Move column left", ["move", -1]],
    ["Move column right", ["move", 1]],
    ["About this column", ["column", 2]],
    ["Whole value", ["open", 4, 2]],
    ["Whole row", ["openRow", 4]],
    ["Edit", ["edit", 4, 2]],
    ["Stage deletion of this row", ["delete", 4]],
  ];
  for (const [words, call] of cases) {
    const { did, parent, item } = menu();
    item(words).click();
    assert.deepEqual(did, [["focus", { preventScroll: true }], call], words);
    assert.equal(parent.querySelector("[role=menu]"), null);
  }
  const { ctx, item } = menu();
  item("History of this row").click();
  const { type, args } = ctx.kernel.asked.at(-1);
  assert.deepEqual([type, args.row, args.version], ["biography.find", 4, 3]);
  const copying = menu();
  copying.item("Copy row as text").click();
  assert.deepEqual(copying.ctx.rows.selection.wanted().ranges, [[4, 5]]); // the row of the cell
});

test("what cannot be done says why, and is not reached by the keyboard", () => {
  const { item } = menu({ look: "binary", canWrite: false });
  for (const words of ["Only this value", "Without this value", "More like this"]) {
    assert.equal(item(words).hasAttribute("disabled"), true, words);
    assert.equal(item(words).getAttribute("title"), "not for values of this type");
  }
  const deletion = item("Stage deletion");
  assert.equal(deletion.getAttribute("title"), "the explorer is read-only");
  assert.equal(item("Copy value").hasAttribute("disabled"), false);
  assert.equal(menu({ look: "vector" }).item("More like this").hasAttribute("disabled"), false);
});

test("what is selected is what is copied and deleted", () => {
  const many = menu({ selected: 1200 });
  assert.match(many.item("Copy 1,200 rows as text").textContent, /1,200/);
  many.item("Stage deletion of 1,200 rows").click();
  assert.deepEqual(many.did.at(-1), ["delete", 4]);
  const block = menu({ hasBlock: true });
  block.item("Copy cells").click();
  assert.deepEqual(block.did.at(-1), ["copy block"]);
  assert.ok(menu({ pinned: ["caption"] }).item("Unpin column"));
});

test("arrows walk over the menu, Escape and Tab close it", () => {
  const { did, parent, element, items } = menu();
  const focused = [];
  for (const entry of items) entry.focus = () => focused.push(entry);
  const key = (name, target) => {
    const event = send(target, "keydown", { key: name });
    return event;
  };
  key("ArrowDown", items[0]);
  key("ArrowUp", items[0]);
  key("End", items[3]);
  key("Home", items[3]);
  assert.deepEqual(focused, [items[1], items.at(-1), items.at(-1), items[0]]);
  assert.match(shown(element), /Only this value/);
  key("x", items[0]);
  assert.ok(parent.querySelector("[role=menu]"));
  key("Escape", items[0]);
  assert.equal(parent.querySelector("[role=menu]"), null);
  assert.deepEqual(did, [["focus", { preventScroll: true }]]);
  const other = menu();
  send(other.element, "focusout", { relatedTarget: null });
  assert.equal(other.parent.querySelector("[role=menu]"), null);
});
