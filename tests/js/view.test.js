// What every widget shares, and the explorer as a whole over a recorded kernel.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { TIMES } from "../../lance_nb/explorer/js/kernel.js";
import loader, { PATIENCE_MS, pageCode, startPage } from "../../lance_nb/explorer/js/loader.js";
import { markedText } from "../../lance_nb/explorer/js/search_box.js";
import { widget } from "../../lance_nb/explorer/js/view.js";
import { conflictGrid } from "../../lance_nb/explorer/refs/conflict_grid.js";
import { refBox } from "../../lance_nb/explorer/refs/ref_form.js";
import { refPicker } from "../../lance_nb/explorer/refs/ref_picker.js";
import { keyPicker } from "../../lance_nb/explorer/rows/key_picker.js";
import { filterExamples, RowsBar } from "../../lance_nb/explorer/rows/rows_bar.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, importableBlobs, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

/** A widget's model whose kernel answers by hand. */
function fakeModel(screen = {}) {
  const listeners = new Map();
  const state = { screen: { branch: null, version: 1, error: null, ...screen }, height: 321 };
  const model = {
    sent: [],
    get: (name) => state[name],
    on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
    off: (name, listener) =>
      listeners.set(
        name,
        (listeners.get(name) ?? []).filter((other) => other !== listener),
      ),
    send: (content) => model.sent.push(content),
    fire: (name, ...values) =>
      (listeners.get(name) ?? []).forEach((listener) => listener(...values)),
    listening: () => [...listeners.values()].flat().length,
    set(next) {
      state.screen = { ...state.screen, ...next };
      model.fire("change:screen");
    },
    of: (type) => model.sent.filter((message) => message.type === type),
    async answer(message, result = {}) {
      model.fire("msg:custom", { id: message.id, ok: true, result }, []);
      await settled();
    },
    async refuse(message, error) {
      model.fire("msg:custom", { id: message.id, ok: false, error }, []);
      await settled();
    },
  };
  return model;
}

function open(model, mount = () => {}) {
  const el = document.createElement("div");
  document.body.append(el);
  let context;
  const close = widget((body, ctx) => {
    context = ctx;
    mount(body, ctx);
  }, "rows").render({ model, el });
  return { el, close, context, root: el.firstElementChild };
}

test("a widget has a root that says how its kernel is", async () => {
  const model = fakeModel();
  const { el, close, context, root } = open(model, (body) => body.append("here"));
  assert.equal(root.getAttribute("aria-label"), "rows");
  assert.equal(root.style.getPropertyValue("--lnb-height"), "321px");
  assert.equal(root.getAttribute("data-kernel"), "connecting");
  await model.answer(model.of("ready")[0]);
  assert.equal(root.getAttribute("data-kernel"), "live");
  assert.match(root.textContent, /here/);
  assert.equal(context.height, 321);
  assert.deepEqual([context.go("rows"), context.has("rows")], [false, false]);
  context.announce("said");
  assert.equal(root.querySelector("[aria-live]").textContent, "said");
  let closed = 0;
  context.onClose(() => {
    closed += 1;
  });
  close();
  assert.equal(closed, 1);
  assert.equal(el.childElementCount, 0);
  assert.equal(model.listening(), 0);
});

test("a dataset that cannot be opened gives its error", () => {
  const error = { title: "Not found", message: "m", where: "", hint: "", kind: "" };
  const { root } = open(fakeModel({ error }), () => assert.fail("not mounted"));
  assert.match(root.textContent, /Not found/);
});

test("painters hear of the screen, and of the parts they name", () => {
  const model = fakeModel({ card: 1 });
  const { context } = open(model);
  const heard = [];
  context.onScreen((screen, patched) => heard.push(["all", screen.version, screen.card, patched]));
  context.onScreen((screen, patched) => heard.push(["card", screen.card, patched]), ["card"]);
  assert.deepEqual(heard.splice(0), [
    ["all", 1, 1, false],
    ["card", 1, false],
  ]);
  context.refresh({ news: 5 });
  assert.deepEqual(heard.splice(0), [["all", 1, 1, true]]);
  context.refresh({ card: 2 });
  assert.deepEqual(heard.splice(0), [
    ["all", 1, 2, true],
    ["card", 2, true],
  ]);
  assert.equal(context.screen().news, 5);
  model.set({ version: 2 });
  assert.deepEqual(heard.splice(0), [
    ["all", 2, 1, false],
    ["card", 1, false],
  ]);
  assert.equal(context.screen().news, undefined);
});

test("a journey that fails says why, until it is closed or another succeeds", async () => {
  const model = fakeModel();
  const { context, root } = open(model);
  await model.answer(model.of("ready")[0]);
  context.shared.window = { offset: 5 };
  context.travel({ ref: "x" });
  assert.deepEqual(model.of("travel")[0].args, { ref: "x", window: { offset: 5 } });
  await model.refuse(model.of("travel")[0], {
    title: "No such ref",
    message: "x",
    where: "",
    hint: "",
    kind: "",
  });
  assert.match(root.textContent, /No such ref/);
  root.querySelector(".lnb-close").click();
  assert.doesNotMatch(root.textContent, /No such ref/);
  context.travel({ ref: "y" });
  await model.refuse(model.of("travel")[1], {
    title: "No such ref",
    message: "y",
    where: "",
    hint: "",
    kind: "",
  });
  context.travel({ ref: "1" });
  await model.answer(model.of("travel")[2]);
  assert.doesNotMatch(root.textContent, /No such ref/);
});

test("a lost answer shows a card whose retry reads everything again", async () => {
  const model = fakeModel();
  const { context, root } = open(model);
  await model.answer(model.of("ready")[0]);
  let painted = 0;
  context.onScreen(() => {
    painted += 1;
  });
  let card = null;
  context.kernel.ask("cell").catch((error) => {
    card = context.problem(error);
  });
  for (let round = 1; round <= 2; round += 1) {
    mock.timers.tick(TIMES.lateMs);
    assert.equal(root.querySelector(".lnb-late").hidden, false);
    await model.answer(model.of("ready")[round]);
  }
  assert.equal(root.querySelector(".lnb-late").hidden, true);
  button(card, "Try again").click();
  assert.deepEqual(model.of("travel")[0].args, { branch: null, version: 1, window: null });
  await model.answer(model.of("travel")[0]);
  assert.equal(painted, 2);
});

test("an error without a card gets one", () => {
  const { context } = open(fakeModel());
  assert.match(
    context.problem(new Error("no comm")).textContent,
    /The kernel cannot be reached.*no comm/,
  );
  let tried = 0;
  button(
    context.problem(new Error("no comm"), () => {
      tried += 1;
    }),
    "Try again",
  ).click();
  assert.equal(tried, 1);
});

test("a kernel is probed only while the view is in a page that is seen", () => {
  const model = fakeModel();
  const { root } = open(model);
  let seen = true;
  root.checkVisibility = () => seen;
  const ready = model.of("ready");
  model.answer(ready.at(-1));
  const probes = (hidden, visible) => {
    seen = visible;
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    const before = model.of("ready").length;
    mock.timers.tick(TIMES.heartbeatMs);
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    return model.of("ready").length - before;
  };
  assert.equal(probes(true, true), 0);
  assert.equal(probes(false, false), 0);
  assert.equal(probes(false, true), 1);
});

test("details stand below a view by itself", () => {
  const { context, root } = open(fakeModel());
  context.detail.show({ title: "Row 1", content: "x" });
  context.detail.show({ title: "Row 2", content: "y" });
  assert.deepEqual(texts(root, ".lnb-detail-below"), ["Row 2y"]);
  context.detail.clear();
  assert.equal(root.querySelector(".lnb-detail-below"), null);
});

test("a field has the menu of the browser, the rest that of the notebook", () => {
  const { el, root } = open(fakeModel());
  const heard = [];
  el.addEventListener("contextmenu", (event) => heard.push(event.target));
  const [field, cell] = [h("input"), h("div")];
  root.append(field, cell);
  send(field, "contextmenu");
  send(cell, "contextmenu");
  assert.deepEqual(heard, [cell]);
});

test("keys are kept from the notebook, and Escape goes back to it", () => {
  const { el, root } = open(fakeModel());
  const inner = document.createElement("input");
  root.append(inner);
  send(inner, "focusin");
  assert.equal(inner.getAttribute("data-lm-suppress-shortcuts"), "true");
  let blurred = 0;
  inner.blur = () => {
    blurred += 1;
  };
  document.lastFocused = null;
  send(inner, "keydown", { key: "a" });
  send(inner, "keydown", { key: "Escape", defaultPrevented: true });
  assert.equal(blurred, 0);
  send(inner, "keydown", { key: "Escape" });
  assert.equal(blurred, 1);
  el.setAttribute("tabindex", "0");
  send(inner, "keydown", { key: "Escape" });
  assert.equal(blurred, 1);
  assert.equal(document.lastFocused, el);
});

test("ages are told anew while the page is seen", () => {
  const { root } = open(fakeModel(), (body) => {
    const span = document.createElement("span");
    span.setAttribute("data-since", String(Date.now() - 60000));
    body.append(span);
  });
  assert.equal(root.querySelector("[data-since]").textContent, "");
  mock.timers.tick(10000);
  assert.equal(root.querySelector("[data-since]").textContent, "1 minute ago");
});

const VIEW = {
  modules: [
    ["js/word.js", 'export const WORD = "live";'],
    [
      "view.js",
      [
        'import { WORD } from "js/word.js";',
        'export const text = `from "js/word.js"`;',
        "export default { render: ({ el }) => el.append(WORD) };",
      ].join("\n"),
    ],
  ],
  sheets: [["view.js", ".sent{}"]],
};
const FRONT = { _entry: "view.js", _code: {} };

/** The model of a widget that waits for code or brings it. */
function codeModel(t, traits) {
  importableBlobs(t);
  document.adoptedStyleSheets.length = 0;
  const model = fakeModel();
  const state = { ...FRONT, ...traits };
  return Object.assign(model, { get: (name) => state[name] });
}

test("the loader waits for the code of its view", async (t) => {
  const model = codeModel(t, { _code_key: "key-1" });
  const el = document.createElement("div");
  const waiting = loader.render({ model, el });
  loader.initialize({ model }); // it brings no code
  assert.equal(pageCode("key-1"), pageCode("key-1"));
  assert.notEqual(pageCode("key-2"), pageCode("key-1"));
  const bringing = { get: (name) => ({ _code: VIEW, _code_key: "key-1" })[name] };
  loader.initialize({ model: bringing });
  loader.initialize({ model: bringing }); // of another kernel
  await waiting;
  assert.equal(el.textContent, "live");
  assert.deepEqual(
    document.adoptedStyleSheets.map((sheet) => sheet.text),
    [".sent{}"],
  );
  mock.timers.tick(PATIENCE_MS);
  assert.equal(el.childElementCount, 0); // nothing is said, and nothing asked
  const { text } = await pageCode("key-1").load("view.js");
  assert.equal(text, 'from "js/word.js"');
});

test("views in a shadow tree are styled there, those that come later too", async (t) => {
  const model = codeModel(t, { _code_key: "key-2", _code: VIEW });
  const root = Object.assign(new ShadowRoot(), { adoptedStyleSheets: [], isConnected: true });
  const el = document.createElement("div");
  el.getRootNode = () => root;
  loader.initialize({ model });
  await loader.render({ model, el });
  await loader.render({ model, el });
  pageCode("key-2").add({ modules: [], sheets: [["late.js", ".late{}"]] });
  assert.deepEqual(
    root.adoptedStyleSheets.map((sheet) => sheet.text),
    [".sent{}", ".late{}"],
  );
});

test("views that do not come are asked of the kernel, and the cell says so", async (t) => {
  const model = codeModel(t, { _code_key: "key-3" });
  const el = document.createElement("div");
  const waiting = loader.render({ model, el });
  mock.timers.tick(PATIENCE_MS - 1);
  assert.equal(el.textContent, "");
  mock.timers.tick(1);
  assert.match(el.textContent, /^Waiting for the views of lance_nb/);
  const [request] = model.of("views.send");
  model.fire("msg:custom", { id: "another", ok: true, result: VIEW });
  await settled();
  assert.match(el.textContent, /^Waiting/); // the answer to somebody else
  model.fire("msg:custom", { id: request.id, ok: true, result: VIEW });
  await waiting;
  assert.equal(el.textContent, "live");
  assert.equal(model.listening(), 0);
});

test("without a kernel the place of the view says what to do", async (t) => {
  const model = codeModel(t, { _code_key: "key-4" });
  model.send = () => {
    throw new Error("Comm is closed");
  };
  const el = document.createElement("div");
  const late = loader.render({ model, el });
  mock.timers.tick(60000);
  await assert.rejects(late, /did not come with the output/);
  assert.match(el.textContent, /Run the cell again/);
});

test("a page starts the view that it holds", async (t) => {
  importableBlobs(t);
  const code = { modules: [["app.js", "export default (page) => page.start();"]], sheets: [] };
  let starts = 0;
  await startPage({
    getElementById: () => ({
      textContent: JSON.stringify({ entry: "app.js", key: "key-5", code }),
    }),
    start: () => (starts += 1),
  });
  assert.equal(starts, 1);
});

const STEP = { label: "dev:1", operation: "Append", text: "t" };
const GRID = {
  source: [STEP, { ...STEP, label: "dev:2" }],
  target: [
    { ...STEP, label: "main:5" },
    { ...STEP, label: "main:6" },
  ],
  cells: [0, 1, 2, 9],
  verdicts: [
    { outcome: "replayed", words: "fits", reason: "r0" },
    { outcome: "merged", words: "w1", reason: "r1" },
    { outcome: "conflict", words: "w2", reason: "r2" },
  ],
  hidden_source: 2,
  hidden_target: 0,
};

test("a grid of conflicts is gone through by keys", () => {
  const made = conflictGrid(GRID, { source: "dev", target: "main" });
  const cells = [...made.querySelectorAll("[role=gridcell]")];
  assert.deepEqual(
    cells.map((cell) => cell.textContent),
    ["·", "≈", "✕", "?"],
  );
  assert.equal(cells[1].title, "dev:1 Rows added (Append) against main:6 Rows added (Append): w1");
  assert.match(cells[3].title, /not checked/);
  const [dev] = made.querySelectorAll("th[role=rowheader]");
  assert.deepEqual(texts(dev, "b, small"), ["dev:1", "Rows added (Append)"]);
  assert.match(made.textContent, /not shown: 2 older versions of dev/);
  for (const cell of cells) cell.focus = () => send(cell, "focus");
  const here = () => cells.findIndex((cell) => cell.getAttribute("tabindex") === "0");
  const press = (key) => send(made.querySelector("table"), "keydown", { key });
  assert.equal(here(), 0);
  press("ArrowRight");
  assert.equal(here(), 1);
  assert.match(made.querySelector(".lnb-cg-readout").textContent, /w1r1$/);
  press("ArrowDown");
  assert.equal(here(), 3);
  press("Home");
  assert.equal(here(), 2);
  press("ArrowUp");
  assert.equal(here(), 0);
  press("End");
  assert.equal(here(), 1);
  press("ArrowLeft");
  assert.equal(here(), 0);
  assert.equal(press("ArrowLeft").defaultPrevented, false);
  assert.equal(press("x").defaultPrevented, false);
  assert.match(
    conflictGrid({ ...GRID, source: [] }, { source: "dev", target: "main" }).textContent,
    /has no change that/,
  );
  const alone = conflictGrid(
    { ...GRID, target: [], cells: [], hidden_source: 0 },
    { source: "dev", target: "main" },
  );
  assert.equal(alone.querySelector("thead"), null);
  assert.equal(alone.querySelectorAll(".lnb-cg-text").length, 2);
});

const CHOICES = [
  { ref: "dev", label: "dev", kind: "branch", note: "" },
  { ref: "dev:3", label: "dev:3", kind: "branch", note: "" },
  { ref: "tag:v1", label: "v1", kind: "tag", note: "main:2" },
];
const focusOn = (element) =>
  Object.defineProperty(document, "activeElement", { value: element, configurable: true });

test("a picker of refs completes what is typed", () => {
  const ctx = fakeContext();
  const form = refPicker(ctx);
  document.body.append(form);
  const input = form.querySelector("input");
  const list = form.querySelector("ul");
  focusOn(input);
  input.value = " d ";
  send(input, "input");
  assert.deepEqual(ctx.kernel.last("refs").args, { text: "d" });
  ctx.kernel.last("refs").answer({ choices: CHOICES });
  assert.equal(list.hidden, false);
  assert.deepEqual(texts(list, "small"), ["branch", "branch", "main:2"]);
  const press = (key) => send(input, "keydown", { key });
  press("ArrowDown");
  press("ArrowDown");
  press("ArrowUp");
  assert.equal(input.getAttribute("aria-activedescendant"), list.children[0].id);
  press("ArrowUp");
  assert.equal(list.children[2].getAttribute("aria-selected"), "true");
  send(form, "submit");
  assert.deepEqual(ctx.travels, [{ ref: "tag:v1" }]);
  assert.equal(list.hidden, true);
  assert.equal(input.value, "");
  input.value = "main";
  send(form, "submit");
  assert.deepEqual(ctx.travels.at(-1), { ref: "main" });
  input.value = "";
  send(form, "submit");
  assert.equal(ctx.travels.length, 2);
  send(input, "input");
  ctx.kernel.last("refs").answer({ choices: CHOICES.slice(0, 1) });
  assert.equal(list.hidden, false);
  send(input, "blur");
  press("ArrowDown");
  const late = ctx.kernel.last("refs");
  send(input, "blur");
  late.answer({ choices: CHOICES });
  assert.equal(list.hidden, true); // the list was left
  send(input, "focus");
  ctx.kernel.last("refs").answer({ choices: CHOICES });
  press("Escape");
  assert.equal(list.hidden, true);
  ctx.kernel.state = "static";
  const before = ctx.kernel.count("refs");
  send(input, "input");
  assert.equal(ctx.kernel.count("refs"), before);
});

test("a box of refs offers branches only where it is asked to", () => {
  const ctx = fakeContext();
  let changed = 0;
  const boxes = [true, false].map((branches) =>
    refBox(ctx, {
      label: "l",
      branches,
      changed: () => {
        changed += 1;
      },
    }),
  );
  const offered = boxes.map(({ element, input }) => {
    focusOn(input);
    input.value = "d";
    send(input, "input");
    ctx.kernel.last("refs").answer({ choices: CHOICES });
    return texts(element, "li b");
  });
  assert.deepEqual(offered, [["dev"], ["dev", "dev:3", "v1"]]);
  boxes[1].element.querySelectorAll("li")[2].click();
  assert.equal(boxes[1].input.value, "tag:v1");
  assert.equal(changed, 3);
  boxes[0].input.value = "dev";
  send(boxes[0].input, "input");
  ctx.kernel.last("refs").answer({ choices: CHOICES });
  assert.deepEqual(texts(boxes[0].element, "li b"), []); // written in full
  ctx.kernel.last("refs").fail({ message: "no" });
});

test("key columns are chosen", () => {
  const ctx = fakeContext();
  const chosen = [];
  const { toggle, element } = keyPicker(ctx, {
    choose: (key) => chosen.push(key),
    of: () => ({ branch: null, version: 3 }),
  });
  toggle.click();
  assert.equal(element.hidden, false);
  assert.deepEqual(ctx.kernel.last("biography.keys").args, { branch: null, version: 3, text: "" });
  ctx.kernel.last("biography.keys").answer({
    columns: [
      { name: "id", label: "id", type: "int" },
      { name: "b", label: "b", type: "x" },
    ],
  });
  const column = (name) =>
    [...element.querySelectorAll(".lnb-key-columns button")].find(
      (one) => one.textContent === name,
    );
  assert.equal(button(element, "Use as key").disabled, true);
  for (const name of ["id", "b"]) {
    const one = column(name);
    send(one, "click");
    assert.equal(one.getAttribute("aria-pressed"), "true");
  }
  const again = column("b");
  send(again, "click");
  assert.equal(button(element, "Use as key").disabled, false);
  ctx.kernel.last("biography.keys").answer({ columns: [] });
  assert.ok(column("id")); // chosen ones stay
  const field = element.querySelector("input");
  field.value = " x ";
  send(field, "input");
  assert.equal(ctx.kernel.last("biography.keys").args.text, "x");
  button(element, "Use as key").click();
  assert.deepEqual(chosen, [["id"]]);
  assert.equal(element.hidden, true);
  toggle.click();
  button(element, "Use default").click();
  assert.deepEqual(chosen, [["id"], null]);
  toggle.click();
  send(element, "keydown", { key: "Escape" });
  assert.equal(element.hidden, true);
});

function filterBar(asked = {}) {
  const ctx = fakeContext();
  const now = { filter: null, system: false, order: null, near: null, ...asked };
  const calls = [];
  const shownColumns = [];
  const crossed = [];
  const bar = new RowsBar(ctx, {
    criteria: now,
    query: () => ({ filter: now.filter }),
    changed: (change) => calls.push(change),
    showColumn: (at) => shownColumns.push(at),
    cancel: () => calls.push("cancel"),
    brushed: (conditions, text) => crossed.push([text, conditions]),
  });
  document.body.append(bar.element);
  const [words, filter, find] = bar.element.querySelectorAll("input");
  const press = (element, key) => send(element, "keydown", { key });
  return { ctx, bar, calls, shownColumns, crossed, words, filter, find, press, now };
}

test("words are searched for by Enter, cleared by Escape, in the chosen columns", () => {
  const { ctx, bar, calls, words, press, now } = filterBar({ search: null });
  const box = bar.element.querySelector(".lnb-search-box");
  assert.equal(box.hidden, true); // no column of texts
  ctx.show({ offers: ["search"] });
  assert.equal(box.hidden, false);
  press(words, "Enter");
  assert.deepEqual(calls.pop(), { search: null });
  words.value = ' river "old stone" ';
  press(words, "Enter");
  now.search = { text: 'river "old stone"', columns: null, any: false };
  assert.deepEqual(calls.pop(), { search: now.search });
  const columns = [
    { raw: "text", name: "text" },
    { raw: "<b>", name: "<b>" },
  ];
  const say = () =>
    bar.say({ num_rows: 1, num_columns: 2, words: "3 rows", search: { columns, ranked: false } });
  say();
  const [which, where] = bar.element.querySelectorAll(".lnb-filter-plan select");
  /** @param {any} select @param {string} value */
  const choose = (select, value) => {
    select.value = value;
    select.dispatchEvent(new Event("change"));
    return calls.pop().search;
  };
  assert.equal(choose(which, "any").any, true);
  assert.deepEqual(choose(where, "1").columns, ["<b>"]);
  assert.deepEqual(choose(where, "all").columns, []);
  assert.equal(choose(where, "").columns, null);
  assert.equal(bar.element.querySelector("b"), null);
  now.search = { text: "other", columns: ["text"], any: true };
  say();
  assert.equal(words.value, "other");
  press(words, "Escape");
  assert.deepEqual(calls.pop(), { search: null });
  assert.equal(words.value, "");
  words.value = "x";
  now.search = null;
  say();
  assert.equal(words.value, "");
});

test("marks are nodes of text, whatever is marked", () => {
  const marked = h("div", {}, markedText("a <b>x</b> <img> z", [2, 10, 11, 16]));
  assert.deepEqual(texts(marked, "mark"), ["<b>x</b>", "<img>"]);
  assert.equal(marked.textContent, "a <b>x</b> <img> z");
  assert.equal(marked.querySelector("img"), null);
});

test("a filter is applied by Enter and cleared by Escape", () => {
  const { bar, calls, filter, press } = filterBar();
  filter.value = " a > 1 ";
  press(filter, "Enter");
  assert.deepEqual(calls, [{ filter: "a > 1" }]);
  const clear = bar.element.querySelector(".lnb-filter-box .lnb-close");
  assert.equal(clear.hidden, false);
  press(filter, "Escape");
  assert.deepEqual(calls.at(-1), { filter: null });
  assert.equal(clear.hidden, true);
  press(filter, "Escape");
  assert.equal(calls.length, 2);
  bar.set("b");
  clear.click();
  assert.deepEqual(calls.slice(2), [{ filter: "b" }, { filter: null }]);
  button(bar.element, "Row ids").click();
  assert.deepEqual(calls.at(-1), { system: true });
});

test("conditions of columns are put together", () => {
  const { bar, calls, filter } = filterBar();
  const applied = () => calls.at(-1).filter;
  bar.brush("a", "a > 1");
  assert.equal(applied(), "a > 1");
  bar.brush("b", "b = 2");
  assert.equal(applied(), "a > 1 AND b = 2");
  bar.brush("a", "a > 5");
  assert.equal(applied(), "a > 5 AND b = 2");
  bar.brush("b", null);
  assert.equal(applied(), "a > 5");
  filter.value = "x = 1 or y = 2";
  bar.brush("a", "a > 6");
  assert.equal(applied(), "(x = 1 or y = 2) AND a > 6");
  bar.brush("a", null);
  assert.equal(applied(), "x = 1 or y = 2");
});

test("conditions of histograms are chips, and are shown before they are applied", () => {
  const { bar, calls, crossed, filter, now } = filterBar();
  const chips = () => texts(bar.element, ".lnb-brush-chip code");
  const row = bar.element.querySelector(".lnb-filter-cross");
  filter.value = "id > 1";
  bar.brush("a", "a > 1", { bars: [2, 5], moves: true });
  assert.deepEqual(crossed.at(-1), [
    "id > 1 AND a > 1",
    [
      [null, "id > 1"],
      ["a", "a > 1"],
    ],
  ]);
  assert.deepEqual([calls, filter.value, row.hidden], [[], "id > 1", true]);
  assert.equal(bar.barsOf("a"), null);
  bar.brush("a", "a > 1", { bars: [2, 5] });
  bar.brush("b", "b = 2");
  assert.equal(filter.value, "id > 1 AND a > 1 AND b = 2");
  assert.deepEqual([chips(), row.hidden, bar.barsOf("a")], [["a > 1", "b = 2"], false, [2, 5]]);
  now.filter = "id > 1 AND a > 1 AND b = 2";
  assert.equal(bar.conditions().length, 3);
  now.filter = "c = 3"; // another filter is shown still
  assert.deepEqual(bar.conditions(), [[null, "c = 3"]]);
  now.filter = null;
  assert.deepEqual(bar.conditions(), []);
  bar.brush("a", "a > 7", { bars: [6, 7], moves: true });
  bar.settle();
  assert.equal(crossed.at(-1)[0], "id > 1 AND a > 1 AND b = 2");
  bar.brush("a", "a > 1", { bars: [2, 5] }); // the same bars again
  assert.deepEqual(chips(), ["b = 2"]);
  bar.element.querySelector(".lnb-brush-chip").click();
  assert.deepEqual([calls.at(-1), chips(), row.hidden], [{ filter: "id > 1" }, [], true]);
});

test("rows of the sample are counted until all are", () => {
  const { bar, now } = filterBar();
  const said = bar.element.querySelector(".lnb-filter-said");
  const row = bar.element.querySelector(".lnb-filter-cross");
  const passing = { sampled: 8192, passing: 2048, num_rows: 4_999_999 };
  bar.busy(0, 0);
  now.filter = "a > 1";
  bar.estimate(passing, "a > 1");
  assert.equal(said.textContent, "about 1,250,000 pass, by a sample");
  bar.busy(1, 4);
  assert.equal(said.textContent, "about 1,250,000 pass, by a sample · 25 %");
  bar.say({ num_rows: 1_252_134, num_columns: 2, words: "", reads: null });
  bar.estimate(passing, "a > 1"); // comes late
  assert.equal(said.textContent, "1,252,134 pass");
  bar.estimate({ ...passing, passing: 1 }, "a > 1 AND b = 2"); // a brush moves
  assert.equal(said.textContent, "about 610 pass, by a sample");
  bar.settle();
  assert.equal(said.textContent, "1,252,134 pass");
  bar.brush("b", "b = 2", { moves: true });
  bar.estimate({ ...passing, passing: 1 }, "a > 1 AND b = 2");
  bar.say({ num_rows: 1_252_134, num_columns: 2, words: "", reads: null }); // of before, late
  assert.equal(said.textContent, "about 610 pass, by a sample");
  bar.settle();
  assert.equal(said.textContent, "1,252,134 pass");
  const counted = { num_rows: 1_252_134, num_columns: 2, words: "", reads: null };
  const ends = [
    () => bar.settle(),
    () => bar.fail({ message: "damaged" }),
    () => bar.set("a > 1"),
    () => bar.brush("b", "b = 2"),
  ];
  for (const end of ends) {
    bar.brush("b", "b = 2", { moves: true });
    bar.estimate({ ...passing, passing: 1 }, "a > 1 AND b = 2");
    end(); // however a brush ends, its estimate ends with it
    bar.say(counted);
    assert.equal(said.textContent, "1,252,134 pass");
  }
  bar.brush("b", null);
  bar.crossed("histograms: every row");
  assert.deepEqual([row.hidden, row.textContent], [false, "histograms: every row"]);
  bar.crossed("");
  assert.equal(row.hidden, true);
});

test("the bar says what is shown, how it is read, and what is wrong", () => {
  const { bar, calls, filter, now } = filterBar();
  const tools = () => shown(bar.element.querySelector(".lnb-rows-tools"));
  const plan = bar.element.querySelector(".lnb-filter-plan");
  assert.match(
    tools(),
    /<filter of rows, SQL: >\|<find a column: >\|\[Columns\]\{.*\}\|\[Row ids\]\{/,
  );
  bar.busy(0, 0);
  assert.match(tools(), /\|…\|\[Cancel\]\|/);
  bar.busy(2, 3);
  assert.match(tools(), /\|66 %\|\[Cancel\]\|/);
  button(bar.element, "Cancel").click();
  assert.equal(calls.pop(), "cancel");
  bar.say({ num_rows: 1200, words: "", reads: null });
  assert.doesNotMatch(tools(), /cancel|pass/);
  assert.equal(plan.hidden, true);
  Object.assign(now, { filter: "a > 1", system: true, order: { column: "a", ascending: true } });
  const reads = { columns: ["a", "b"], rows: 1200, skipped: null, fragments: 1 };
  bar.say({ num_rows: 1200, words: "sorted by a", reads });
  assert.match(tools(), /\|1,200 pass\|/);
  assert.equal(button(bar.element, "Row ids").getAttribute("aria-pressed"), "true");
  assert.equal(shown(plan), "sorted by a|[Unsorted]");
  const readLine = bar.element.querySelector(".lnb-filter-reads");
  assert.equal(readLine.hidden, true); // nobody asked how
  button(bar.element, "Explain").click();
  assert.equal(
    shown(readLine),
    "reads a, b of 1,200 rows in 1 fragment" +
      " · these files have no page statistics: no row is skipped" +
      " · other columns only where rows pass",
  );
  button(plan, "Unsorted").click();
  assert.deepEqual(calls.pop(), { order: null, near: null, within: null });
  bar.say({ num_rows: 1, words: "", reads: { ...reads, skipped: 1, fragments: 2 } });
  assert.match(shown(readLine), /in 2 fragments · 1 row skipped by page statistics · /);
  button(bar.element, "Explain").click();
  assert.equal(readLine.hidden, true);
  filter.value = "a >";
  bar.fail(Object.assign(new Error("near the end"), { card: { title: "Not SQL" } }));
  const problem = bar.element.querySelector(".lnb-filter-problem");
  assert.equal(shown(problem), "Not SQL|near the end|Still shown:|a > 1");
  assert.doesNotMatch(tools(), /pass/);
  filter.value = " a > 1 ";
  bar.fail(new Error("lost"));
  assert.equal(shown(problem), "The filter cannot be used|lost");
  bar.say({ num_rows: 1, words: "", reads: null });
  assert.equal(problem.hidden, true);
  assert.equal(button(bar.element, "Explain").hidden, true);
});

test("the example in the filter is of the dataset, and never cut", () => {
  const line = (name, type, depth = 0) => ({ name, type, depth, nullable: true, note: "" });
  const lines = [line("id", "int64"), line("in", "float", 1), line("a b", "string")];
  assert.deepEqual(filterExamples(lines), ["filter: id > 10", "filter: id > 10"]);
  assert.deepEqual(filterExamples([]), []);
  const { ctx, filter } = filterBar();
  const room = (width) => {
    Object.defineProperty(filter, "clientWidth", { value: width, configurable: true });
    ctx.show({
      detail: { schema: { lines: [...lines, line("score", "float32"), line("label", "string")] } },
    });
    return filter.getAttribute("placeholder");
  };
  assert.equal(room(500), "filter: score > 0.5 AND label LIKE '%a%'");
  assert.equal(room(180), "filter: score > 0.5");
  assert.equal(room(60), "filter");
});

test("a card of the index that was missing is offered", () => {
  const { ctx, bar, now } = filterBar();
  const gone = [];
  ctx.has = () => true;
  ctx.go = (...where) => gone.push(where);
  now.near = { like: 1, k: 10, metric: "cosine", row: "5", column: "v", at: 2 };
  const offer = () => button(bar.element, "Build an index");
  bar.say({ num_rows: 10, words: "", reads: null, index: null });
  assert.equal(offer(), undefined);
  const index = { column: "v", kind: "IVF_FLAT", metric: "cosine" };
  bar.say({ num_rows: 10, words: "", reads: null, index });
  offer().click();
  assert.deepEqual(gone, [["stage", { card: { verb: "index", ...index } }]]);
  ctx.has = () => false; // a grid alone has no tab for it
  bar.say({ num_rows: 10, words: "", reads: null, index });
  assert.equal(offer(), undefined);
});

test("neighbours are asked for by number and metric", () => {
  const { bar, calls, now } = filterBar();
  const near = { like: 1, k: 10, metric: "cosine", row: "5", column: "v", at: 2 };
  Object.assign(now, { filter: "a > 1", near });
  bar.say({ num_rows: 10, words: "", reads: null });
  const plan = bar.element.querySelector(".lnb-filter-plan");
  assert.equal(
    shown(plan),
    "to row 5 by v|<how many neighbours: 10>|<metric: cosine>|<how neighbours are found: index>" +
      "|[Recall]{compare what the index finds with an exact search}|[Back to all rows]",
  );
  assert.doesNotMatch(shown(bar.element), /pass/);
  const [k, metric] = plan.querySelectorAll("input, select");
  const wanted = ["20.4", "0", "5000", "-3", "x"].map((text) => {
    k.value = text;
    send(k, "change");
    return calls.pop().near.k;
  });
  assert.deepEqual(wanted, [20, 10, 1000, 1, 10]);
  metric.value = "dot";
  send(metric, "change");
  assert.deepEqual(calls.pop(), { near: { ...near, exact: false, metric: "dot" } });
  assert.equal(send(k, "keydown", { key: "a" }).cancelBubble, true);
});

test("names are completed in the filter, not within texts", () => {
  const { ctx, bar, calls, filter, press } = filterBar();
  const type = (text) => {
    filter.value = text;
    filter.selectionStart = text.length;
    send(filter, "input");
  };
  const count = () => ctx.kernel.count("rows.columns");
  type("a = 'pr");
  type("");
  assert.equal(count(), 0);
  type("x > 1 AND t.pr");
  assert.equal(ctx.kernel.last("rows.columns").args.text, "t.pr");
  focusOn(filter);
  const columns = [{ at: 1, name: "t.price", type: "int64", sql: "t.price" }];
  ctx.kernel.last("rows.columns").answer({ columns });
  const options = () => texts(bar.element, ".lnb-filter-box [role=option]").length;
  assert.equal(options(), 1);
  press(filter, "Enter"); // no line was chosen: it applies
  assert.deepEqual(calls, [{ filter: "x > 1 AND t.pr" }]);
  type("pr");
  ctx.kernel.last("rows.columns").fail({ message: "busy" });
  assert.equal(bar.element.querySelector("[role=listbox]").hidden, true);
  ctx.kernel.state = "static";
  const before = count();
  type("pri");
  assert.equal(count(), before);
});

test("columns are found, also when Enter is faster than the list", () => {
  const { ctx, shownColumns, find, press } = filterBar();
  focusOn(find);
  find.value = "pr";
  send(find, "input");
  assert.equal(ctx.kernel.last("rows.columns").args.text, "pr");
  press(find, "Enter");
  ctx.kernel.last("rows.columns").answer({ columns: [{ at: 4, name: "price", type: "x" }] });
  assert.deepEqual(shownColumns, [4]);
  assert.equal(find.value, "");
  find.value = "other";
  send(find, "input");
  find.value = "another";
  ctx.kernel.last("rows.columns").answer({ columns: [{ at: 1, name: "other", type: "x" }] });
  assert.deepEqual(shownColumns, [4]); // too late
  const before = ctx.kernel.count("rows.columns");
  find.value = "";
  send(find, "input");
  assert.equal(ctx.kernel.count("rows.columns"), before);
  find.value = "x";
  ctx.kernel.state = "static";
  send(find, "input");
  assert.equal(ctx.kernel.count("rows.columns"), before);
});

test("lists are offered while something is typed", () => {
  const { ctx, bar, shownColumns, find, filter } = filterBar();
  focusOn(find);
  find.value = "pr";
  send(find, "input");
  const columns = [{ at: 4, name: "price", type: "x", sql: "price" }];
  ctx.kernel.last("rows.columns").answer({ columns });
  assert.deepEqual(shownColumns, []); // no Enter
  assert.deepEqual(texts(bar.element, ".lnb-find-box li b"), ["price"]);
  focusOn(filter);
  filter.value = "a = 'text";
  Object.defineProperty(filter, "selectionStart", { get: () => filter.value.length });
  const before = ctx.kernel.count("rows.columns");
  send(filter, "input"); // within a text
  assert.equal(ctx.kernel.count("rows.columns"), before);
  filter.value = "a = 'text' AND pr";
  send(filter, "input");
  assert.equal(ctx.kernel.last("rows.columns").args.text, "pr");
  ctx.kernel.last("rows.columns").answer({ columns });
  assert.deepEqual(texts(bar.element, ".lnb-filter-box li b"), ["price"]);
});

test("what is shown is said", () => {
  const { bar, calls, now } = filterBar({ filter: "x" });
  const said = () => bar.element.querySelector(".lnb-filter-said").textContent;
  bar.busy(0, 0);
  assert.equal(said(), "…");
  bar.busy(1, 3);
  assert.equal(said(), "33 %");
  button(bar.element, "Cancel").click();
  assert.deepEqual(calls, ["cancel"]);
  bar.say({
    num_rows: 1234,
    words: "",
    reads: { columns: ["a"], rows: 10, skipped: 1000, fragments: 1 },
  });
  assert.equal(said(), "1,234 pass");
  assert.equal(button(bar.element, "Cancel").hidden, true);
  button(bar.element, "Explain").click();
  assert.match(bar.element.textContent, /reads a of 10 rows in 1 fragment ·/);
  assert.match(bar.element.textContent, /1,000 rows skipped/);
  now.order = { column: "a", ascending: true };
  bar.say({ num_rows: 1, words: "w", reads: null });
  button(bar.element, "Unsorted").click();
  assert.deepEqual(calls.at(-1), { order: null, near: null, within: null });
  now.near = { like: 1, k: 10, metric: "l2", row: "5", column: "v", at: 0 };
  bar.say({
    num_rows: 1,
    words: "",
    reads: { columns: ["a"], rows: 1, skipped: null, fragments: 2 },
  });
  assert.equal(said(), "");
  assert.match(bar.element.textContent, /to row 5 by v/);
  assert.match(bar.element.textContent, /in 2 fragments · these files have no page statistics/);
  const k = bar.element.querySelector(".lnb-near-k");
  for (const [typed, sent] of [
    ["7", 7],
    ["5000", 1000],
    ["-3", 1],
    ["x", 10],
  ]) {
    k.value = typed;
    send(k, "change");
    assert.equal(calls.at(-1).near.k, sent);
  }
  button(bar.element, "Back to all rows").click();
  now.filter = "applied";
  bar.fail({ message: "m", card: { title: "Wrong" } });
  assert.match(
    bar.element.querySelector(".lnb-filter-problem").textContent,
    /Wrongm.*Still shown: applied/,
  );
  now.filter = null;
  bar.fail(new Error("plain"));
  bar.busy(0, 0);
  bar.fail(new Error("plain"));
  assert.equal(button(bar.element, "Cancel").hidden, true);
  assert.match(
    bar.element.querySelector(".lnb-filter-problem").textContent,
    /^The filter cannot be usedplain$/,
  );
});
