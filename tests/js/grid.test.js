// The grid: rows and columns in sight, the place of the keyboard, titles, widths, scrolling.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { VirtualGrid } from "../../lance_nb/explorer/js/virtual_grid.js";
import { fakeContext } from "./fake_context.js";
import { nextFrame, observers, send, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const WIDE = 132; // a column before its page has come
const column = (at) => ({ name: `c${at}`, raw: `c${at}`, type: "text", look: "text" });

/** A grid of 400 by 328 pixels: ten rows under a head of 48, three columns beside a gutter. */
function grid({ numRows = 1000, numColumns = 6, cell = undefined, waits = false } = {}) {
  const ctx = fakeContext();
  const wanted = [];
  const painted = [];
  const did = [];
  const store = {
    waits,
    column: (at) => (store.empty ? undefined : column(at)),
    cell: (row, at) => (store.empty ? undefined : { text: `${row}:${at}`, look: "text" }),
    pageOf: () => (store.empty ? undefined : {}),
    want: (...what) => wanted.push(what),
    empty: false,
  };
  const note =
    (name) =>
    (...what) =>
      did.push([name, ...what]);
  const part = new VirtualGrid(ctx, {
    label: "rows",
    store,
    gutter: 40,
    head: 48,
    titles: {
      corner: { text: "#", label: "row" },
      parts: (at) => [h("small"), h("button", { on: { click: () => did.push(["title", at()]) } })],
      clicked: (at) => did.push(["clicked", at]),
      draw: (_cell, at) => (at === 1 ? "words" : ""),
    },
    row: (row) => ({ text: String(row), look: "lnb-even", chosen: row === 2 }),
    isChosen: (at) => at === 2,
    ...(cell && { cell }),
    painted: (span) => painted.push(span),
    said: (row, at) => `row ${row} column ${at}`,
    keys: {
      select: note("select"),
      chooseColumn: note("choose"),
      open: note("open"),
      openRow: note("openRow"),
      letters: {},
    },
  });
  const { element } = part;
  for (const [name, value] of Object.entries({ clientWidth: 400, clientHeight: 328 }))
    Object.defineProperty(element, name, { value, configurable: true, writable: true });
  Object.assign(element, { scrollTop: 0, scrollLeft: 0 });
  document.body.append(element);
  part.size(numRows, numColumns);
  nextFrame();
  const rows = () =>
    [...part.body.children]
      .filter((line) => !line.hidden)
      .sort((one, other) => one.lnb - other.lnb)
      .map((line) => [...line.children].filter((one) => !one.hidden).map((one) => one.textContent));
  const key = (name, held = {}) => {
    send(element, "keydown", {
      key: name,
      altKey: false,
      ctrlKey: false,
      metaKey: false,
      shiftKey: false,
      ...held,
    });
    nextFrame();
  };
  const scrollTo = (place) => {
    Object.assign(element, place);
    send(element, "scroll");
    nextFrame();
  };
  const place = () => element.getAttribute("aria-activedescendant").split("-").slice(-2).join(":");
  return { ctx, part, element, store, wanted, painted, did, rows, key, scrollTo, place };
}

test("only rows and columns in sight are painted and asked for", () => {
  const { part, element, wanted, painted, rows } = grid();
  assert.deepEqual(wanted.at(-1), [[0, 10], [0, 3], true, 1000, 0]);
  assert.deepEqual(painted.at(-1), { first: 0, last: 10, from: 0, to: 3, columns: [0, 1, 2] });
  assert.equal(rows().length, 10);
  assert.deepEqual(rows()[2], ["2", "2:0", "2:1", "2:2"]);
  assert.equal(element.getAttribute("aria-rowcount"), "1001");
  assert.equal(element.getAttribute("aria-colcount"), "7");
  const [layer, spacer] = element.children;
  assert.deepEqual([layer.style.width, layer.style.height], ["400px", "328px"]);
  assert.deepEqual(
    [spacer.style.width, spacer.style.height],
    [`${40 + 6 * WIDE}px`, `${28000 + 48 - 328}px`],
  );
  const line = part.body.children[2];
  assert.equal(line.getAttribute("aria-rowindex"), "4");
  assert.equal(line.getAttribute("aria-selected"), "true");
  assert.equal(line.style.transform, "translateY(56px)");
  const cell = line.children[3];
  assert.equal(cell.getAttribute("aria-colindex"), "4");
  assert.equal(cell.className, "lnb-cell lnb-look-text lnb-chosen");
  assert.equal(cell.style.transform, `translateX(${40 + 2 * WIDE}px)`);
  assert.equal(cell.style.width, `${WIDE}px`);
  assert.equal(part.body.children[0].children[1].className, "lnb-cell lnb-look-text lnb-here");
  assert.equal(part.body.children[0].className, "lnb-grid-row lnb-even lnb-current");
});

test("scrolling moves what is in sight, rows are used again", () => {
  const { element, wanted, rows, scrollTo } = grid();
  const lines = element.querySelectorAll(".lnb-grid-row").length;
  scrollTo({ scrollTop: 280 + 14 });
  assert.deepEqual(wanted.at(-1), [[10, 21], [0, 3], true, 1000, 0]);
  assert.deepEqual(rows()[0].slice(0, 2), ["10", "10:0"]);
  const first = [...element.querySelectorAll(".lnb-grid-row")].find((line) => line.lnb === 10);
  assert.equal(first.style.transform, "translateY(-14px)");
  assert.equal(element.querySelectorAll(".lnb-grid-row").length, lines + 1);
  scrollTo({ scrollTop: 0, scrollLeft: 2 * WIDE });
  assert.deepEqual(wanted.at(-1), [[0, 10], [2, 5], false, 1000, 0]);
  assert.equal(rows().length, 10);
  assert.deepEqual(rows()[0], ["0", "0:2", "0:3", "0:4"]);
  assert.deepEqual(texts(element, ".lnb-grid-column b"), ["c2", "c3", "c4"]);
});

test("keys move the place of the keyboard and bring it into sight", () => {
  const { ctx, element, did, key, place } = grid();
  assert.equal(place(), "0:0");
  key("ArrowDown");
  key("ArrowRight");
  assert.equal(place(), "1:1");
  assert.equal(ctx.announced.at(-1), "row 1 column 1");
  key("PageDown");
  assert.equal(place(), "10:1");
  assert.equal(element.scrollTop, 28);
  key("ArrowUp", { ctrlKey: true });
  assert.equal(place(), "0:1");
  key("ArrowDown", { metaKey: true });
  assert.equal(place(), "999:1");
  key("ArrowUp", { metaKey: true });
  assert.equal(element.scrollTop, 0);
  key("End");
  assert.equal(place(), "0:5");
  assert.equal(element.scrollLeft, 6 * WIDE - 360);
  key("Home");
  assert.equal(element.scrollLeft, 0);
  key("End", { ctrlKey: true });
  assert.equal(place(), "999:5");
  assert.equal(element.scrollTop, 28000 - 280);
  key("ArrowDown");
  key("ArrowRight");
  assert.equal(place(), "999:5");
  key("Enter");
  assert.deepEqual(did, [["open", 999, 5]]);
});

test("the place of the keyboard stays in sight when the grid gets smaller", () => {
  const { part, element, key } = grid();
  const resize = (height, width = 400) => {
    Object.assign(element, { clientHeight: height, clientWidth: width });
    observers[0].fire();
    nextFrame();
  };
  for (let turn = 0; turn < 9; turn += 1) key("ArrowDown");
  assert.equal(element.scrollTop, 0);
  resize(188); // five rows
  assert.equal(element.scrollTop, 5 * 28);
  resize(328);
  element.scrollTop = 2800;
  send(element, "scroll");
  nextFrame();
  resize(188); // it was out of sight before
  assert.equal(element.scrollTop, 2800);
  element.scrollTop = 9 * 28;
  send(element, "scroll");
  nextFrame();
  key("ArrowRight");
  key("ArrowRight");
  assert.equal(element.scrollLeft, 3 * WIDE - 360);
  resize(188, 300);
  assert.equal(element.scrollLeft, 3 * WIDE - 260);
  element.scrollTop = 9 * 28 + 14; // half of its row is above
  send(element, "scroll");
  nextFrame();
  key("ArrowUp");
  assert.equal(element.scrollTop, 8 * 28);
  part.moveTo(12, 0);
  assert.equal(element.scrollTop, 8 * 28);
  part.moveTo(13, 0);
  assert.equal(element.scrollTop, 9 * 28);
});

test("a place just out of sight is not brought back by another size", () => {
  const { part, element } = grid();
  const resize = (height, width) => {
    Object.assign(element, { clientHeight: height, clientWidth: width });
    observers[0].fire();
    nextFrame();
  };
  const scrollBack = () => {
    Object.assign(element, { scrollTop: 0, scrollLeft: 0 });
    send(element, "scroll");
    nextFrame();
  };
  part.moveTo(10, 0);
  assert.equal(element.scrollTop, 28);
  scrollBack();
  resize(300, 400);
  assert.equal(element.scrollTop, 0);
  part.moveTo(0, 3);
  assert.equal(element.scrollLeft, 4 * WIDE - 360);
  scrollBack();
  resize(328, 380);
  assert.equal(element.scrollLeft, 0);
  part.moveTo(0, 0);
  element.scrollLeft = 60;
  send(element, "scroll");
  nextFrame();
  resize(328, 400);
  assert.equal(element.scrollLeft, 60);
});

test("titles say what a column is; a grip widens it", () => {
  const { element, did, key } = grid();
  const titles = () =>
    [...element.querySelectorAll(".lnb-grid-column")].filter((one) => !one.hidden);
  assert.equal(element.querySelector(".lnb-grid-corner").getAttribute("aria-label"), "row");
  assert.equal(element.querySelector(".lnb-grid-corner").style.width, "40px");
  const [first, second, third] = titles();
  assert.equal(first.className, "lnb-grid-column lnb-look-text lnb-here");
  assert.equal(third.className, "lnb-grid-column lnb-look-text lnb-chosen");
  assert.equal(second.title, "c1: text\nwords");
  assert.equal(first.title, "c0: text");
  assert.equal(second.getAttribute("aria-colindex"), "3");
  assert.equal(second.style.transform, `translateX(${40 + WIDE}px)`);
  send(second, "click");
  second.querySelector("button").click();
  assert.deepEqual(did, [
    ["clicked", 1],
    ["title", 1],
    ["clicked", 1],
  ]);
  const grip = second.querySelector(".lnb-grid-grip");
  did.length = 0;
  send(grip, "click");
  assert.deepEqual(did, []);
  send(grip, "pointerdown", { pointerId: 1, clientX: 300 });
  send(grip, "pointermove", { clientX: 340 });
  nextFrame();
  assert.equal(second.style.width, `${WIDE + 40}px`);
  send(grip, "pointerup");
  send(grip, "pointermove", { clientX: 500 });
  nextFrame();
  assert.equal(second.style.width, `${WIDE + 40}px`);
  for (const end of ["pointercancel", "lostpointercapture"]) {
    send(grip, "pointerdown", { pointerId: 1, clientX: 300 });
    send(grip, "pointermove", { clientX: 400 });
    send(grip, end);
    send(grip, "pointermove", { clientX: 500 });
    nextFrame();
    assert.equal(second.style.width, `${WIDE + 40}px`); // as before the drag
  }
  send(grip, "dblclick");
  nextFrame();
  assert.notEqual(second.style.width, `${WIDE + 40}px`);
  key("ArrowRight", { altKey: true });
  assert.equal(titles()[0].style.width, `${WIDE + 16}px`);
});

test("what is shown stays a moment while other rows are on their way", () => {
  const { store, painted, rows, scrollTo } = grid({ waits: true });
  store.empty = true;
  painted.length = 0;
  scrollTo({ scrollTop: 2800 });
  assert.deepEqual(painted, []);
  assert.equal(rows()[0][0], "0");
  mock.timers.tick(60);
  nextFrame();
  assert.equal(painted.length, 1);
  assert.deepEqual(rows()[0], ["100", "", "", ""]);
  store.empty = false;
  scrollTo({ scrollTop: 2800 });
  assert.deepEqual(rows()[0], ["100", "100:0", "100:1", "100:2"]);
});

test("other rows begin at what is there, cells are filled again when asked", () => {
  let fills = 0;
  const cell = (element, value) => {
    fills += 1;
    element.textContent = value.text;
    return { filled: true, look: "l" };
  };
  const { part, element, rows, key, place, ctx } = grid({ cell });
  assert.equal(fills, 30);
  part.paint();
  nextFrame();
  assert.equal(fills, 30); // they show the same values
  part.refill();
  nextFrame();
  assert.equal(fills, 60);
  key("End", { ctrlKey: true });
  part.size(3, 2, { anew: true, gutter: 50, head: 30 });
  nextFrame();
  assert.equal(place(), "2:1");
  assert.equal(element.style.getPropertyValue("--lnb-head"), "30px");
  element.scrollTop = 0;
  send(element, "scroll");
  nextFrame();
  assert.equal(rows().length, 3);
  assert.equal(element.querySelector(".lnb-grid-corner").style.width, "50px");
  part.size(0, 0);
  nextFrame();
  assert.deepEqual(rows(), []);
  ctx.close();
  assert.equal(
    observers.every((observer) => !observer.connected),
    true,
  );
  assert.equal(ctx.kernel.stateListeners.size, 0);
});

test("among millions of rows the wheel moves by rows", () => {
  const { element, wanted, place, key } = grid({ numRows: 100_000_000 });
  const wheel = (deltaY, more = {}) => {
    const event = send(element, "wheel", { deltaY, deltaMode: 0, ctrlKey: false, ...more });
    nextFrame();
    return event.defaultPrevented;
  };
  assert.equal(wheel(56), true);
  assert.deepEqual(wanted.at(-1)[0], [2, 12]);
  assert.equal(wheel(3, { deltaMode: 1 }), true);
  assert.deepEqual(wanted.at(-1)[0], [5, 15]);
  wheel(-1);
  assert.deepEqual(wanted.at(-1)[0], [4, 14]);
  assert.equal(wheel(10, { ctrlKey: true }), false);
  key("End", { ctrlKey: true });
  assert.equal(place(), "99999999:5");
  assert.deepEqual(wanted.at(-1)[0], [99_999_990, 100_000_000]);
  const few = grid();
  assert.equal(send(few.element, "wheel", { deltaY: 5 }).defaultPrevented, false);
});

test("a grid of two rows is paged by one, and painted at once in another size", () => {
  const { element, key, place, rows, wanted } = grid();
  Object.assign(element, { clientHeight: 48 + 2 * 28 });
  observers[0].fire();
  assert.equal(rows().length, 2); // no frame went by
  key("PageDown");
  assert.equal(place(), "1:0");
  Object.assign(element, { clientHeight: 48 + 28 });
  observers[0].fire();
  assert.deepEqual(wanted.at(-1)[0], [1, 2]);
});

test("a title has the type of its column, none until the column is known", () => {
  const { element, store, part } = grid();
  const types = () => texts(element, ".lnb-grid-column small");
  store.column = (at) => ({ ...column(at), type: `type ${at}` });
  part.paint?.();
  part.size(1000, 6, { anew: true });
  nextFrame();
  assert.deepEqual(types(), ["type 0", "type 1", "type 2"]);
  store.empty = true;
  store.column = () => undefined;
  part.size(1000, 6, { anew: true });
  nextFrame();
  assert.deepEqual(types(), ["", "", ""]);
});

test("pinned columns stay on the left, and others scroll beside them", () => {
  const { part, element, wanted, painted, rows, key, scrollTo, place } = grid();
  part.size(1000, 6, { pinned: 1 });
  nextFrame();
  scrollTo({ scrollLeft: 2 * WIDE });
  assert.deepEqual(rows()[0], ["0", "0:0", "0:3", "0:4"]);
  assert.deepEqual(wanted.at(-1), [[0, 10], [3, 5], true, 1000, 1]);
  assert.deepEqual(painted.at(-1).columns, [0, 3, 4]);
  const [line] = part.body.children;
  assert.match(line.children[1].className, /lnb-pinned/);
  assert.doesNotMatch(line.children[2].className, /lnb-pinned/);
  assert.equal(line.children[1].style.transform, "translateX(40px)");
  assert.equal(line.children[2].style.transform, `translateX(${40 + WIDE}px)`);
  const heads = [...element.querySelectorAll(".lnb-grid-column")].filter((one) => !one.hidden);
  assert.deepEqual(
    heads.map((one) => one.className.includes("lnb-pinned")),
    [true, false, false],
  );
  key("ArrowRight");
  assert.equal(place(), "0:1");
  assert.equal(element.scrollLeft, 0); // the second column begins where the first one ends
  scrollTo({ scrollLeft: 2 * WIDE });
  key("ArrowLeft");
  assert.equal(element.scrollLeft, 2 * WIDE); // a pinned column is in sight wherever one is
});

test("pinned columns that leave no room for others scroll with them", () => {
  const { part, painted } = grid();
  part.size(1000, 6, { pinned: 5 });
  nextFrame();
  assert.deepEqual(painted.at(-1).columns, [0, 1, 2]);
  const stuck = [...part.body.children[0].children].filter((one) =>
    one.className.includes("lnb-pinned"),
  );
  assert.equal(stuck.length, Math.floor((0.7 * 360) / WIDE));
});

test("rows are made higher: the first one in sight stays", () => {
  const { part, element, painted, scrollTo } = grid();
  scrollTo({ scrollTop: 100 * 28 });
  part.setRowHeight(60);
  nextFrame();
  assert.equal(element.scrollTop, 100 * 60);
  assert.deepEqual([painted.at(-1).first, painted.at(-1).last], [100, 105]);
  assert.equal(element.style.getPropertyValue("--lnb-row-height"), "60px");
  assert.equal(element.classList.contains("lnb-tall"), true);
  assert.equal(element.children[1].style.height, `${1000 * 60 + 48 - 328}px`);
  const second = [...element.querySelectorAll(".lnb-grid-row")].find((line) => line.lnb === 101);
  assert.equal(second.style.transform, "translateY(60px)");
  assert.equal(part.fits(), 4);
  part.setRowHeight(28);
  nextFrame();
  assert.equal(element.classList.contains("lnb-tall"), false);
  assert.equal(painted.at(-1).first, 100);
});

test("a title stays in sight while its column is scrolled out on the left", () => {
  const { element, scrollTo } = grid();
  const margins = () =>
    [...element.querySelectorAll(".lnb-grid-column")]
      .filter((head) => !head.hidden)
      .map((head) => head.querySelector("b").style.marginInlineStart ?? "");
  assert.deepEqual(margins(), ["", "", ""]);
  scrollTo({ scrollLeft: 30 });
  assert.deepEqual(margins().slice(0, 2), ["30px", ""]);
  scrollTo({ scrollLeft: 100 });
  assert.deepEqual(margins().slice(0, 2), ["42px", ""]); // what is left has room for a short title
});

test("what a cell shows short is whole beside the pointer", () => {
  const { part, element, store } = grid();
  store.cell = () => ({ text: "0.123456789", short: "0.1235", look: "number" });
  part.refill();
  nextFrame();
  const cell = element.querySelector(".lnb-cell");
  assert.deepEqual([cell.textContent, cell.getAttribute("title")], ["0.1235", "0.123456789"]);
  store.cell = () => ({ text: "5", look: "number" });
  part.refill();
  nextFrame();
  assert.deepEqual([cell.textContent, cell.hasAttribute("title")], ["5", false]);
});
