// The explorer as a whole: its parts, tabs, the pane beside them, the line of code; a snapshot.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import explorer, { mountExplorer } from "../../lance_nb/explorer/app.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { mountRows } from "../../lance_nb/explorer/rows/rows.js";
import startSnapshot, { start } from "../../lance_nb/explorer/snapshot_app.js";
import { TABS } from "../../lance_nb/explorer/tabs.js";
import { fakeContext, fakeKernel, settled, timeline } from "./fake_context.js";
import { button, nextFrame, observers, send, shown, texts } from "./light_page.js";
import { layOut, press, rowsOf, textPage } from "./row_pages.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const CODE = { python: "ds = lance_nb.dataset('d')", magic: "%lance at 3" };
const CARD = {
  name: "photos.lance",
  uri: "data/photos.lance",
  branch: null,
  version: 3,
  label: "main:3",
  latest: 7,
  tags: [],
  facts: [{ key: "rows", value: "3", title: "" }],
};
const DETAIL = {
  label: "main:3",
  time: "then",
  time_ms: null,
  operation: "Append",
  description: "",
  message: "",
  counts: [],
  properties: [],
  transaction: [],
  schema: { lines: [], hidden: 0, columns: 0 },
};
const ROWS = { ...textPage({ id: ["1", "2"] }), num_rows: 2, num_columns: 1 };
const SCREEN = { card: CARD, detail: DETAIL, rows: ROWS, code: CODE, locked: true, error: null };

function mounted({ screen = {}, tabs = undefined, state = "live" } = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext({ ...SCREEN, ...screen }, kernel);
  ctx.range = versionRange(ctx);
  const el = h("div");
  document.body.append(el);
  mountExplorer(el, ctx, tabs);
  const part = (name) => el.querySelector(`.lnb-part-${name}`);
  const open = () =>
    [...el.querySelectorAll("[role=tab]")].find(
      (one) => one.getAttribute("aria-selected") === "true",
    ).textContent;
  const tab = (name) =>
    [...el.querySelectorAll("[role=tab]")].find((one) => one.textContent === name).click();
  const code = () => el.querySelector(".lnb-code-line").textContent;
  return { ctx, kernel, el, part, open, tab, code };
}

/** Two tabs that note what happens to them. */
function noted() {
  const calls = [];
  const contexts = {};
  const tabs = ["one", "changes"].map((id) => ({
    id,
    label: id,
    mount(panel, own) {
      contexts[id] = own;
      panel.append(`in ${id}`);
      return { open: (target) => calls.push([id, target]) };
    },
  }));
  return { calls, contexts, tabs };
}

// --- tabs.js ---

test("the tabs have an order, a name each, and a view or the module of one", () => {
  assert.deepEqual(
    TABS.map(({ id, label }) => [id, label]),
    [
      ["rows", "Rows"],
      ["changes", "Changes"],
      ["pictures", "Pictures"],
      ["map", "Map"],
      ["storage", "Storage"],
      ["refs", "Branches & tags"],
      ["checks", "Checks"],
      ["stage", "Stage"],
      ["log", "My actions"],
    ],
  );
  assert.equal(new Set(TABS.map((tab) => tab.id)).size, TABS.length);
  for (const tab of TABS) assert.equal(Boolean(tab.mount) !== Boolean(tab.entry), true, tab.id);
  assert.deepEqual([TABS[0].mount, TABS[4].entry], [mountRows, "storage/storage.js"]);
  assert.deepEqual(
    TABS.filter((tab) => tab.writes).map((tab) => tab.id),
    ["refs", "checks", "stage", "log"],
  );
});

// --- app.js ---

test("the explorer has a header, a timeline, tabs, the version and the code", () => {
  const { el, part, open, code } = mounted();
  assert.deepEqual(
    [...el.querySelector(".lnb-card").children].map((one) => one.className),
    ["lnb-part-overview", "lnb-part-timeline", "lnb-part-bar", "lnb-main", "lnb-part-code"],
  );
  assert.match(shown(part("overview")), /^photos\.lance\{data\/photos\.lance\}\|\[main:3\]/);
  assert.notEqual(part("timeline").querySelector("[role=listbox]"), null);
  assert.deepEqual(
    texts(el, "[role=tab]"),
    TABS.map((tab) => tab.label),
  );
  assert.equal(open(), "Rows");
  assert.match(shown(part("detail")), /^\+\|Rows added\|Append\|main:3\|then/);
  assert.equal(code(), CODE.python);
  assert.notEqual(part("overview").querySelector(".lnb-lock"), null); // tabs write
  assert.match(shown(part("bar")), /\[Details\]/);
});

test("names of a dataset are text everywhere", () => {
  const { el } = mounted({
    screen: {
      card: { ...CARD, name: HOSTILE, tags: [HOSTILE] },
      detail: { ...DETAIL, message: HOSTILE },
      rows: { ...textPage({ [HOSTILE]: [HOSTILE] }), num_rows: 1, num_columns: 1 },
    },
  });
  layOut(el.querySelector(".lnb-grid"));
  nextFrame();
  assert.deepEqual(rowsOf(el), [["0", HOSTILE]]);
  assert.equal(el.querySelector("img"), null);
});

test("without tabs that write there is no lock", () => {
  const { tabs } = noted();
  const { part } = mounted({ tabs: tabs.slice(0, 1) });
  assert.equal(part("overview").querySelector(".lnb-lock"), null);
});

test("a view leads to another tab, and to what it names there", () => {
  const { calls, contexts, tabs } = noted();
  const { open } = mounted({ tabs });
  assert.equal(contexts.changes, undefined); // mounted when it is first opened
  assert.equal(contexts.one.has("changes"), true);
  assert.equal(contexts.one.has("stage"), false);
  assert.equal(contexts.one.go("changes", { level: "rows" }), true);
  assert.equal(open(), "changes");
  assert.deepEqual(calls, [["changes", { level: "rows" }]]);
  assert.equal(contexts.one.go("nothing"), false);
  assert.equal(open(), "changes");
});

test("the button for a tab beside the notebook is there where somebody makes the tab", () => {
  const beside = (root) => root.querySelector("[aria-label=Beside]");
  assert.equal(beside(mounted().el).hidden, true);
  document.documentElement.dataset.lanceNbBeside = "";
  const { ctx, el } = mounted();
  delete document.documentElement.dataset.lanceNbBeside;
  assert.equal(beside(el).hidden, false);
  beside(el).click();
  assert.deepEqual(ctx.announced, ["This explorer is not in a cell of a notebook."]);
  ctx.root.addEventListener("lance-nb:beside", (event) => event.preventDefault());
  beside(el).click();
  assert.equal(ctx.announced.length, 1);
});

test("tabs for which there is no room are in a menu, the open one never is", () => {
  const { el, open, tab } = mounted();
  const all = [...el.querySelectorAll("[role=tab]")];
  for (const one of all) Object.defineProperty(one, "offsetWidth", { value: 100 });
  const frame = el.querySelector(".lnb-tabs-frame");
  const opener = frame.querySelector(".lnb-pop > button");
  Object.defineProperty(opener, "offsetWidth", { value: 60 });
  const fit = (width, needed) => {
    Object.defineProperty(frame, "clientWidth", { value: width, configurable: true });
    const list = frame.querySelector("[role=tablist]");
    Object.defineProperty(list, "scrollWidth", { value: needed, configurable: true });
    for (const observer of observers) if (observer.observed[0] === frame) observer.fire([]);
  };
  const inMenu = () => texts(frame, ".lnb-menu-line");
  const over = () => all.filter((one) => one.className.includes("lnb-tab-over")).length;
  fit(700, 700);
  assert.deepEqual([opener.parentNode.hidden, over()], [true, 0]);
  fit(470, 700);
  assert.deepEqual([opener.parentNode.hidden, over()], [false, 3]);
  assert.deepEqual(inMenu(), ["Checks", "Stage", "My actions"]);
  opener.click();
  assert.equal(frame.querySelector(".lnb-menu").hidden, false);
  button(frame, "Stage").click();
  assert.equal(open(), "Stage");
  assert.equal(frame.querySelector(".lnb-menu").hidden, true);
  assert.deepEqual(inMenu(), ["Branches & tags", "Checks", "My actions"]);
  tab("Rows"); // what has room stays where it is
  assert.deepEqual(inMenu(), ["Branches & tags", "Checks", "My actions"]);
  fit(900, 700);
  assert.deepEqual([opener.parentNode.hidden, over()], [true, 0]);
});

test("the line of code is that of the open tab", () => {
  const { contexts, tabs } = noted();
  const { tab, code, el } = mounted({ tabs });
  contexts.one.code({ python: "ds.head()", magic: "%lance head" });
  assert.equal(code(), "ds.head()");
  tab("changes");
  assert.equal(code(), CODE.python);
  contexts.changes.code({ python: "ds.diff(2)" });
  assert.equal(code(), "ds.diff(2)");
  contexts.one.code({ python: "late" }); // its tab is not open
  assert.equal(code(), "ds.diff(2)");
  tab("one");
  assert.equal(code(), "late");
  button(el, "%lance").click();
  assert.equal(code(), "%lance at 3");
});

test("the pane shows what a view puts there until the tab or the version changes", () => {
  const { contexts, tabs } = noted();
  const { ctx, part, tab } = mounted({ tabs });
  const pane = () => part("detail").querySelector(".lnb-pane");
  const version = () => part("detail").querySelector(".lnb-detail-version").hidden;
  const put = () => contexts.one.detail.show({ title: "Row 1", content: HOSTILE });
  put();
  assert.equal(shown(pane()), `Row 1|[×]|${HOSTILE}`);
  assert.equal(version(), true);
  assert.deepEqual(ctx.announced, ["Row 1"]);
  tab("changes");
  assert.deepEqual([pane().hidden, version()], [true, false]);
  put();
  ctx.show({ io: null }, true); // the same version, only patched
  assert.equal(pane().hidden, false);
  ctx.show({ version: 2 });
  assert.equal(pane().hidden, true);
  put();
  press(pane(), "Escape");
  assert.equal(pane().hidden, true);
});

test("commits of others appear in the header", async () => {
  const { kernel, part } = mounted();
  await kernel.last("news").answer({ added: 2, latest: 9, gone: false, mark: "m" });
  assert.match(shown(part("overview")), /\[2 new versions → 9\]/);
});

test("the widget is labelled, and shows an error in place of the explorer", () => {
  const error = { title: "No dataset", message: HOSTILE, where: "", hint: "", kind: "" };
  const model = {
    get: (name) => (name === "screen" ? { branch: null, version: 1, error } : 300),
    on() {},
    off() {},
    send() {},
  };
  const el = h("div");
  const close = explorer.render({ model, el });
  assert.equal(el.firstElementChild.getAttribute("aria-label"), "Lance dataset explorer");
  assert.equal(shown(el.querySelector(".lnb-body")), `!|No dataset|${HOSTILE}`);
  assert.equal(el.querySelector(".lnb-card"), null);
  assert.equal(el.querySelector("img"), null);
  close();
});

// --- snapshot_app.js ---

const bytes = (buffer) => ({ $bytes: Buffer.from(buffer).toString("base64") });
const kept = (version, more = {}) => ({
  ...SCREEN,
  rows: { ...ROWS, buffers: ROWS.buffers.map(bytes), whole: { rows: 900, columns: 1 } },
  branch: null,
  version,
  label: `main:${version}`,
  card: { ...CARD, version, label: `main:${version}` },
  timeline: { ...timeline(), version },
  locked: null,
  kept: true,
  ...more,
});
const SNAPSHOT = {
  height: 300,
  screens: [kept(3), kept(2)],
  answers: {},
  bars: {},
  choices: [],
};

function page(data) {
  const el = h("div");
  const script = h("script", { id: "snapshot", type: "application/json" });
  script.textContent = JSON.stringify(data);
  const place = h("div", { id: "explorer" }, "a picture");
  el.append(script, place);
  document.body.append(el);
  return place;
}

test("a snapshot is the explorer without what needs a kernel", async () => {
  const place = page(SNAPSHOT);
  assert.equal(startSnapshot, start);
  start(document);
  await settled();
  assert.equal(
    place.firstElementChild.getAttribute("aria-label"),
    "Lance dataset explorer, a snapshot",
  );
  assert.doesNotMatch(place.textContent, /a picture/);
  assert.deepEqual(texts(place, "[role=tab]"), ["Rows", "Changes", "Storage", "Branches & tags"]);
  layOut(place.querySelector(".lnb-grid"));
  nextFrame();
  assert.deepEqual(rowsOf(place), [
    ["0", "1"],
    ["1", "2"],
  ]);
  assert.equal(place.querySelector(".lnb-here-ref").textContent, "main:3");
  assert.equal(place.querySelector(".lnb-grid-status").textContent, "rows 0 – 1 of 2 kept of 900");
});

test("every tab of a snapshot has its view in the page", async () => {
  const place = page(SNAPSHOT);
  start(document);
  await settled();
  for (const tab of place.querySelectorAll("[role=tab]")) {
    tab.click();
    await settled();
    const panel = place.ownerDocument.getElementById(tab.getAttribute("aria-controls"));
    assert.doesNotMatch(shown(panel), /Loading|needs a kernel|not loaded/, tab.textContent);
    assert.notEqual(panel.children.length, 0);
  }
});

test("a snapshot travels to versions that it keeps, and says which those are", async () => {
  const place = page(SNAPSHOT);
  start(document);
  await settled();
  const box = place.querySelector('input[aria-label="go to a version, tag or branch"]');
  const go = async (text) => {
    box.value = text;
    send(box.closest("form"), "submit");
    await settled();
    await settled();
  };
  await go("2");
  assert.equal(place.querySelector(".lnb-here-ref").textContent, "main:2");
  await go("1");
  assert.match(
    shown(place.querySelector(".lnb-problem")),
    /Not in this snapshot\|1 is not in this snapshot\. It has main:3, main:2\./,
  );
  assert.equal(place.querySelector(".lnb-here-ref").textContent, "main:2");
});

test("a page without versions, or without a place, keeps its picture", () => {
  const place = page({ ...SNAPSHOT, screens: [] });
  start(document);
  assert.equal(place.textContent, "a picture");
  place.id = "elsewhere";
  document.getElementById("snapshot").textContent = JSON.stringify(SNAPSHOT);
  start(document);
  assert.equal(place.textContent, "a picture");
});
