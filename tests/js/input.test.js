// Keys of the grid, bars chosen by dragging, lists of suggestions.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { gridKeys } from "../../lance_nb/explorer/js/grid_keys.js";
import { suggestions } from "../../lance_nb/explorer/js/suggestions.js";
import { markBars, selectBars } from "../../lance_nb/explorer/rows/bar_selection.js";
import { settled } from "./fake_context.js";
import { observers, send } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const _pass = async (ms) => {
  mock.timers.tick(ms);
  await settled();
};

function keyboard(more = {}) {
  const calls = [];
  const note =
    (name) =>
    (...values) =>
      calls.push([name, ...values]);
  const state = { row: 5, column: 2, numRows: 100, numColumns: 9, ...more };
  const element = h("div");
  const letters = { c: note("c"), copy: note("copy") };
  gridKeys(element, {
    state,
    page: () => 10,
    moveTo: note("move"),
    select: note("select"),
    chooseColumn: note("column"),
    open: note("open"),
    openRow: note("row"),
    widen: note("widen"),
    letters,
  });
  const press = (key, held = {}) => {
    calls.length = 0;
    const event = send(element, "keydown", {
      key,
      altKey: false,
      ctrlKey: false,
      shiftKey: false,
      metaKey: false,
      ...held,
    });
    assert.equal(event.defaultPrevented, calls.length > 0);
    return calls.slice();
  };
  return { press, element };
}

test("keys of the grid", () => {
  const { press } = keyboard();
  const ctrl = { ctrlKey: true };
  const shift = { shiftKey: true };
  assert.deepEqual(press("ArrowUp"), [["move", 4, 2]]);
  assert.deepEqual(press("ArrowDown"), [["move", 6, 2]]);
  assert.deepEqual(press("ArrowLeft"), [["move", 5, 1]]);
  assert.deepEqual(press("ArrowRight"), [["move", 5, 3]]);
  assert.deepEqual(press("ArrowUp", ctrl), [["move", 0, 2]]);
  assert.deepEqual(press("ArrowDown", ctrl), [["move", 99, 2]]);
  assert.deepEqual(press("ArrowLeft", ctrl), [["move", 5, 0]]);
  assert.deepEqual(press("ArrowRight", ctrl), [["move", 5, 8]]);
  assert.deepEqual(press("PageUp"), [["move", -5, 2]]);
  assert.deepEqual(press("PageDown"), [["move", 15, 2]]);
  assert.deepEqual(press("Home"), [["move", 5, 0]]);
  assert.deepEqual(press("End"), [["move", 5, 8]]);
  assert.deepEqual(press("Home", ctrl), [["move", 0, 0]]);
  assert.deepEqual(press("End", ctrl), [["move", 99, 8]]);
  assert.deepEqual(press("ArrowDown", shift), [
    ["move", 6, 2],
    ["select", 5, { extend: true, from: 5, walks: true }],
  ]);
  assert.deepEqual(press("ArrowRight", shift), [["move", 5, 3]]);
  assert.deepEqual(press("Enter"), [["open", 5, 2]]);
  assert.deepEqual(press("Enter", shift), [["row", 5]]);
  assert.deepEqual(press(" "), [["select", 5, { extend: false }]]);
  assert.deepEqual(press(" ", shift), [["select", 5, { extend: true }]]);
  assert.deepEqual(press(" ", ctrl), [["column", 2]]);
  assert.deepEqual(press("c"), [["c"]]);
  assert.deepEqual(press("c", ctrl), [["copy"]]);
  assert.deepEqual(press("q"), []);
  assert.deepEqual(press("F5"), []);
  assert.deepEqual(press("ArrowLeft", { altKey: true }), [["widen", -16]]);
  assert.deepEqual(press("ArrowRight", { altKey: true }), [["widen", 16]]);
  assert.deepEqual(press("ArrowUp", { altKey: true }), []);
  assert.deepEqual(press("ArrowUp", { metaKey: true }), [["move", 0, 2]]);
  assert.deepEqual(press("c", { metaKey: true }), [["copy"]]);
  assert.deepEqual(press("r", { metaKey: true }), []);
});

test("keys of an empty grid, and of what is within it", () => {
  const { press, element } = keyboard({ numRows: 0 });
  for (const key of ["Enter", " "]) assert.deepEqual(press(key), []);
  assert.deepEqual(press("Enter", { shiftKey: true }), []);
  assert.deepEqual(press("c", { ctrlKey: true }), []);
  const inner = h("input");
  element.append(inner);
  assert.equal(send(inner, "keydown", { key: "ArrowUp" }).defaultPrevented, false);
});

test("bars of a histogram are chosen by dragging", () => {
  const chosen = [];
  const element = h("div");
  element.getBoundingClientRect = () => ({ left: 100, width: 80 });
  let profile = { bars: [1, 1, 1, 1, 1, 1, 1, 1], kind: "number" };
  selectBars(
    element,
    () => profile,
    (...bars) => chosen.push(bars),
  );
  const at = (type, x, more = {}) =>
    send(element, type, { clientX: x, button: 0, pointerId: 1, ...more });
  at("pointerdown", 125);
  assert.ok(element.classList.contains("lnb-brushing"));
  at("pointermove", 155);
  assert.equal(element.style.getPropertyValue("--lnb-from"), "25%");
  assert.equal(element.style.getPropertyValue("--lnb-to"), "75%");
  at("pointerup", 155);
  assert.equal(element.classList.contains("lnb-brushing"), false);
  at("pointermove", 101);
  at("pointerdown", 179);
  at("pointermove", 0);
  at("pointerup", 0);
  at("pointerdown", 105);
  at("pointercancel", 105);
  at("pointerdown", 105, { button: 2 });
  profile = { bars: [1, 1, 1], kind: "text" };
  at("pointerdown", 125);
  at("pointermove", 179);
  at("pointerup", 179);
  assert.deepEqual(chosen, [
    [2, 5],
    [0, 7],
    [1, 1],
  ]);
  profile = null;
  assert.equal(at("pointerdown", 125).defaultPrevented, false);
});

test("odd values beside a histogram are chosen by a click", () => {
  const [chosen, odd] = [[], []];
  const element = h("div");
  element.getBoundingClientRect = () => ({ left: 0, width: 100 });
  const profile = { bars: [1, 1, 1, 1], kind: "number", odd: [{ kind: "null" }, { kind: "nan" }] };
  selectBars(
    element,
    () => profile,
    (...bars) => chosen.push(bars),
    (one) => odd.push(one.kind),
  );
  for (const x of [93, 97, 90, 87]) {
    send(element, "pointerdown", { clientX: x, button: 0, pointerId: 1 });
    send(element, "pointerup", { clientX: x });
  }
  assert.deepEqual(odd, ["null", "nan"]);
  assert.deepEqual(chosen, [
    [3, 3],
    [3, 3],
  ]);
  profile.bars = [];
  assert.equal(send(element, "pointerdown", { clientX: 10, button: 0 }).defaultPrevented, false);
  assert.equal(send(element, "pointerdown", { clientX: 93, button: 0 }).defaultPrevented, true);
  assert.equal(odd.length, 3);
});

test("a drag says which bars it is over, and when it is given up; chosen bars stay marked", () => {
  const moved = [];
  const element = h("div");
  element.getBoundingClientRect = () => ({ left: 0, width: 80 });
  const profile = { bars: [1, 1, 1, 1, 1, 1, 1, 1], kind: "number" };
  const nothing = () => {};
  selectBars(
    element,
    () => profile,
    nothing,
    nothing,
    (...bars) => moved.push(bars),
  );
  send(element, "pointerdown", { clientX: 25, button: 0, pointerId: 1 });
  markBars(element, profile, [0, 7]); // not while others are being chosen
  for (const x of [26, 35, 38, 5]) send(element, "pointermove", { clientX: x });
  assert.deepEqual(moved, [
    [2, 3],
    [0, 2],
  ]);
  assert.equal(element.style.getPropertyValue("--lnb-to"), "37.5%");
  send(element, "pointercancel", { clientX: 5 });
  assert.deepEqual(moved.at(-1), [-1, -1]);
  for (const [target, type] of [
    [element, "lostpointercapture"],
    [document, "keydown"],
  ]) {
    const seen = moved.length;
    send(element, "pointerdown", { clientX: 25, button: 0, pointerId: 1 });
    send(element, "pointermove", { clientX: 35 });
    const { defaultPrevented } = send(target, type, { key: "Escape" });
    assert.equal(defaultPrevented, type === "keydown");
    send(element, "pointermove", { clientX: 75 });
    assert.deepEqual(moved.slice(seen), [
      [2, 3],
      [-1, -1],
    ]);
    assert.equal(element.classList.contains("lnb-brushing"), false);
  }
  assert.equal(send(document, "keydown", { key: "Escape" }).defaultPrevented, false);
  markBars(element, profile, [2, 3]);
  assert.ok(element.classList.contains("lnb-brushed"));
  assert.equal(element.style.getPropertyValue("--lnb-from"), "25%");
  markBars(element, profile, null);
  assert.equal(element.classList.contains("lnb-brushed"), false);
});

test("a drag over bars leaves no listener behind", () => {
  const element = h("div");
  element.getBoundingClientRect = () => ({ left: 0, width: 80 });
  const listening = [];
  const { addEventListener, removeEventListener } = element;
  element.addEventListener = (type, work) => {
    listening.push(type);
    addEventListener.call(element, type, work);
  };
  element.removeEventListener = (type, work) => {
    listening.splice(listening.indexOf(type), 1);
    removeEventListener.call(element, type, work);
  };
  selectBars(
    element,
    () => ({ bars: [1, 1], kind: "number" }),
    () => {},
  );
  assert.deepEqual(listening, ["pointerdown"]);
  send(element, "pointerdown", { clientX: 1, button: 0, pointerId: 1 });
  assert.equal(listening.length, 5);
  send(element, "pointercancel");
  assert.deepEqual(listening, ["pointerdown"]);
});

const suggested = (more = {}) => {
  const input = h("input");
  document.body.append(input);
  Object.defineProperty(document, "activeElement", { value: input, configurable: true });
  const taken = [];
  const made = suggestions(input, "columns", (line) => taken.push(line.name), more.word);
  const key = (name) => made.key({ key: name, preventDefault() {} });
  return {
    input,
    taken,
    made,
    key,
    lines: (...names) => names.map((name) => ({ name, type: "t" })),
  };
};

test("suggestions are gone through by keys", () => {
  const { input, taken, made, key, lines } = suggested();
  assert.equal(key("ArrowDown"), false);
  made.offer(lines("a", "b", "c"));
  assert.equal(made.list.hidden, false);
  assert.equal(input.getAttribute("aria-expanded"), "true");
  const selected = () =>
    [...made.list.children].findIndex((line) => line.getAttribute("aria-selected") === "true");
  assert.equal(selected(), 0);
  assert.equal(made.moved(), false);
  assert.equal(key("ArrowDown"), true);
  assert.equal(selected(), 1);
  assert.equal(made.moved(), true);
  assert.equal(input.getAttribute("aria-activedescendant"), made.list.children[1].id);
  key("ArrowUp");
  key("ArrowUp");
  assert.equal(selected(), 2);
  key("ArrowDown");
  assert.equal(selected(), 0);
  assert.equal(key("x"), false);
  key("ArrowDown");
  key("Enter");
  assert.deepEqual(taken, ["b"]);
  assert.equal(made.list.hidden, true);
  assert.equal(input.getAttribute("aria-activedescendant"), null);
  made.offer(lines("d"));
  made.list.children[0].click();
  made.offer(lines("e"));
  assert.equal(key("Tab"), true);
  made.offer(lines("f"));
  assert.equal(key("Escape"), true);
  assert.deepEqual(taken, ["b", "d", "e"]);
  made.offer(lines("g"));
  send(input, "blur");
  assert.equal(made.list.hidden, true);
});

test("suggestions that come after Enter or Escape are not shown until something is typed", () => {
  const { input, made, lines } = suggested();
  for (const name of ["Enter", "Escape"]) {
    send(input, "keydown", { key: name });
    made.offer(lines("a"));
    assert.equal(made.list.hidden, true);
    send(input, "input");
    made.offer(lines("a"));
    assert.equal(made.list.hidden, false);
  }
  send(input, "keydown", { key: "b" });
  made.offer(lines("a"));
  assert.equal(made.list.hidden, false);
  made.offer([]);
  assert.equal(made.list.hidden, true);
  Object.defineProperty(document, "activeElement", { value: null, configurable: true });
  made.offer(lines("a"));
  assert.equal(made.list.hidden, true);
});

test("a list stands under the word that is typed", () => {
  const { input, made, lines } = suggested({ word: () => "ab" });
  Object.defineProperties(input, {
    selectionStart: { value: 10, configurable: true },
    offsetWidth: { value: 300 },
    offsetLeft: { value: 5 },
    scrollLeft: { value: 1 },
  });
  input.value = "filter = abc";
  Object.defineProperty(made.list, "offsetWidth", { value: 100 });
  made.offer(lines("abc"));
  assert.match(made.list.getAttribute("style"), /52px auto/); // 5 + 8 letters of 7 + 4 - 1 - 12
  Object.defineProperty(input, "selectionStart", { value: 60 });
  input.value = "x".repeat(60);
  made.offer(lines("abc"));
  assert.match(made.list.getAttribute("style"), /:205px auto/); // 5 + 300 - 100
  Object.defineProperty(input, "selectionStart", { value: 1 });
  made.offer(lines("abc"));
  assert.match(made.list.getAttribute("style"), /:5px auto/); // not before the box
});
