// The frame of the explorer: tabs, detail pane, code, history, new versions.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { laneMap } from "../../lance_nb/explorer/history/lanes.js";
import { mountOverview } from "../../lance_nb/explorer/history/overview.js";
import { playButton } from "../../lance_nb/explorer/history/play.js";
import { codeFooter } from "../../lance_nb/explorer/js/code_footer.js";
import { detailPane } from "../../lance_nb/explorer/js/detail_pane.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { pageCode } from "../../lance_nb/explorer/js/loader.js";
import { watchNews } from "../../lance_nb/explorer/js/news.js";
import { tabHost } from "../../lance_nb/explorer/js/tab_host.js";
import { versionRange } from "../../lance_nb/explorer/js/version_range.js";
import { fakeContext, settled, timeline } from "./fake_context.js";
import { button, importableBlobs, observers, send, shown } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const pass = async (ms) => {
  mock.timers.tick(ms);
  await settled();
};

const TAB_NAMES = ["rows", "changes", "refs"];

function tabs() {
  const ctx = fakeContext();
  const mounted = [];
  const calls = [];
  const painted = [];
  const list = TAB_NAMES.map((id) => ({
    id,
    label: id.toUpperCase(),
    writes: id === "refs",
    mount(_panel, own) {
      mounted.push(id);
      own.onScreen((screen, patched) => painted.push([id, screen.version, patched]));
      own.code({ python: id });
      return {
        open: (target) => calls.push(["open", id, target]),
        shown: () => calls.push(["shown", id]),
        hidden: () => calls.push(["hidden", id]),
      };
    },
  }));
  const changed = [];
  const [bar, panels] = [h("div"), h("div")];
  const host = tabHost(bar, panels, list, ctx, (another) => changed.push(another));
  const key = (name, held = {}) =>
    send(bar.querySelector("[role=tablist]"), "keydown", {
      key: name,
      altKey: false,
      ctrlKey: false,
      metaKey: false,
      ...held,
    });
  return { ctx, mounted, calls, painted, changed, bar, panels, host, key };
}

test("tabs are mounted when they are first opened", () => {
  const { mounted, calls, changed, bar, panels, host, key } = tabs();
  assert.equal(host.select("rows"), true);
  assert.deepEqual(mounted, ["rows"]);
  assert.equal(host.active, "rows");
  assert.deepEqual(host.code(), { python: "rows" });
  assert.equal(host.select("changes", { at: 1 }), true);
  assert.deepEqual(calls, [
    ["hidden", "rows"],
    ["open", "changes", { at: 1 }],
  ]);
  host.select("rows");
  assert.deepEqual(calls.slice(2), [
    ["hidden", "changes"],
    ["shown", "rows"],
  ]);
  assert.deepEqual(mounted, ["rows", "changes"]);
  assert.equal(host.select("nothing"), false);
  assert.equal(host.has("refs"), true);
  assert.equal(host.has("nothing"), false);
  assert.equal(host.writes, true);
  const state = () =>
    [...bar.querySelectorAll("[role=tab]")].map((one) => [
      one.getAttribute("aria-selected"),
      one.getAttribute("tabindex"),
    ]);
  assert.deepEqual(state(), [
    ["true", "0"],
    ["false", "-1"],
    ["false", "-1"],
  ]);
  assert.deepEqual(
    [...panels.children].map((panel) => panel.hidden),
    [false, true, true],
  );
  assert.equal(changed.filter(Boolean).length, 3);
  assert.equal(changed.filter((another) => !another).length, 2);
  key("ArrowRight");
  assert.equal(host.active, "changes");
  key("ArrowLeft");
  key("ArrowLeft");
  assert.equal(host.active, "refs");
  key("ArrowRight");
  assert.equal(host.active, "rows");
  key("End");
  assert.equal(host.active, "refs");
  assert.equal(key("Home").defaultPrevented, true);
  assert.equal(host.active, "rows");
  for (const held of ["altKey", "ctrlKey", "metaKey"]) key("End", { [held]: true });
  assert.equal(key("x").defaultPrevented, false);
  assert.equal(host.active, "rows");
  button(bar, "CHANGES").click();
  assert.equal(host.active, "changes");
});

/** A tab whose module is loaded when it is opened, beside one that is there. */
function lateTabs(t, key, { start = "live" } = {}) {
  importableBlobs(t);
  const entry = `${key}.js`;
  const ctx = fakeContext();
  ctx.kernel.state = start;
  const retries = [];
  ctx.problem = (error, retry) => {
    retries.push(retry);
    return h("p", {}, error.card?.title ?? error.message);
  };
  const calls = [];
  const mount = (panel, own) => {
    calls.push("mount");
    panel.append("the tab");
    own.onScreen((screen) => calls.push(["paint", screen.version]));
    own.code({ python: "late" });
    return { open: (target) => calls.push(["open", target]) };
  };
  const list = [
    { id: "rows", label: "Rows", mount: () => {} },
    { id: "stage", label: "Stage", entry },
  ];
  const changed = [];
  const [bar, panels] = [h("div"), h("div")];
  const host = tabHost(bar, panels, list, ctx, (another) => changed.push(another));
  host.select("rows");
  const panel = panels.children[1];
  const asked = () => ctx.kernel.asked.filter((request) => request.type === "views.load");
  const setState = (state) => {
    ctx.kernel.state = state;
    for (const listener of [...ctx.kernel.stateListeners]) listener(state);
    return settled();
  };
  /** Answer a request with the module of the tab. */
  const arrive = async (request) => {
    globalThis[key] = mount;
    const modules = [[entry, `export default { mount: globalThis["${key}"] };`]];
    await request.answer({ key, modules, sheets: [] });
    await pageCode(key).load(entry);
    await settled();
  };
  return { ctx, calls, host, panel, asked, arrive, retries, setState, changed };
}

test("the module of a tab is loaded when it is first opened", async (t) => {
  const { calls, host, panel, asked, arrive, changed } = lateTabs(t, "late-1");
  assert.equal(asked().length, 0);
  host.select("stage", { at: 1 });
  host.select("stage", { at: 2 });
  assert.equal(asked().length, 1);
  assert.deepEqual(asked()[0].args, { entry: "late-1.js" });
  assert.equal(panel.textContent, "Loading…");
  assert.equal(panel.getAttribute("aria-busy"), "true");
  changed.length = 0;
  await arrive(asked()[0]);
  assert.deepEqual(calls, ["mount", ["paint", 3], ["open", { at: 2 }]]);
  assert.equal(panel.textContent, "the tab");
  assert.equal(panel.hasAttribute("aria-busy"), false);
  assert.deepEqual(host.code(), { python: "late" });
  assert.ok(changed.length > 0 && !changed.includes(true));
  host.select("rows");
  host.select("stage", { at: 3 });
  assert.equal(asked().length, 1);
  assert.deepEqual(calls.slice(3), [["open", { at: 3 }]]);
});

test("a tab whose module comes while another is open is mounted when opened again", async (t) => {
  const { calls, host, asked, arrive } = lateTabs(t, "late-2");
  host.select("stage", { at: 1 });
  host.select("rows");
  await arrive(asked()[0]);
  assert.deepEqual(calls, []);
  host.select("stage");
  assert.deepEqual(calls, ["mount", ["paint", 3]]);
  assert.equal(asked().length, 1);
});

test("a tab whose module cannot be loaded says so and is tried again", async (t) => {
  const { calls, host, panel, asked, arrive, retries, setState } = lateTabs(t, "late-3");
  host.select("stage");
  await asked()[0].fail({ title: "The kernel was restarted", message: "m" });
  assert.equal(panel.textContent, "The kernel was restarted");
  assert.equal(panel.hasAttribute("aria-busy"), false);
  retries[0]();
  assert.equal(panel.textContent, "Loading…");
  await asked()[1].fail({ title: "The kernel was restarted", message: "m" });
  await setState("live"); // the kernel was connected again
  await arrive(asked()[2]);
  assert.deepEqual(calls, ["mount", ["paint", 3]]);
  await setState("live");
  assert.equal(asked().length, 3);
  assert.equal(panel.textContent, "the tab");
});

test("without a kernel nothing is requested for a tab", async (t) => {
  const { ctx, host, panel, asked, retries, setState } = lateTabs(t, "late-4", { start: "static" });
  host.select("stage");
  await settled();
  assert.equal(panel.textContent, "This tab needs a kernel");
  assert.equal(asked().length, 0);
  ctx.kernel.isLost = true; // the kernel's card says that it was restarted
  retries[0]();
  assert.equal(asked().length, 1);
  await setState("static");
  assert.equal(panel.textContent, "Loading…");
  ctx.kernel.isLost = false;
  await setState("static");
  assert.equal(panel.textContent, "This tab needs a kernel");
  assert.equal(ctx.kernel.stateListeners.size, 1);
  ctx.close();
  assert.equal(ctx.kernel.stateListeners.size, 0);
});

test("a tab that is not open is painted when it is opened", () => {
  const { ctx, painted, host } = tabs();
  host.select("rows");
  host.select("changes");
  painted.length = 0;
  ctx.show({ version: 8 }, true);
  assert.deepEqual(painted, [["changes", 8, true]]);
  ctx.show({ version: 9 });
  ctx.show({ version: 10 }, true);
  painted.length = 0;
  host.select("rows");
  assert.deepEqual(painted, [["rows", 10, false]]); // once, and as another version
  host.select("changes");
  host.select("rows");
  assert.equal(painted.length, 1);
  ctx.show({}, true);
  host.select("changes");
  assert.deepEqual(painted.at(-1), ["changes", 10, true]);
});

test("the pane shows a thing until it is closed", () => {
  const [el, main] = [h("div"), h("div")];
  document.body.append(el);
  const said = [];
  const pane = detailPane(el, main, (text) => said.push(text));
  const other = el.querySelector("section");
  assert.equal(other.hidden, true);
  const before = h("button");
  Object.defineProperty(document, "activeElement", { value: before, configurable: true });
  pane.show({ title: "Row 1", content: h("u", {}, "x"), focus: true });
  assert.deepEqual([other.hidden, pane.version.hidden], [false, true]);
  assert.equal(other.querySelector("h3").textContent, "Row 1");
  assert.deepEqual(said, ["Row 1"]);
  assert.equal(document.lastFocused, other);
  assert.ok(main.classList.contains("lnb-detailed"));
  Object.defineProperty(document, "activeElement", { value: other, configurable: true });
  assert.equal(send(other, "keydown", { key: "x" }).defaultPrevented, false);
  assert.equal(other.hidden, false);
  let above = 0;
  el.addEventListener("keydown", () => {
    above += 1;
  });
  assert.equal(send(other, "keydown", { key: "Escape" }).defaultPrevented, true);
  assert.equal(above, 0);
  assert.deepEqual([other.hidden, pane.version.hidden], [true, false]);
  assert.equal(document.lastFocused, before);
  assert.equal(other.querySelector("u"), null);
  assert.equal(main.classList.contains("lnb-detailed"), false);
  pane.clear();
  pane.toggle.click();
  assert.ok(main.classList.contains("lnb-folded"));
  assert.equal(el.hidden, true);
  assert.equal(pane.toggle.getAttribute("aria-pressed"), "false");
  document.lastFocused = null;
  pane.show({ title: "t", content: "c" });
  assert.equal(el.hidden, false);
  assert.equal(document.lastFocused, null);
  Object.defineProperty(document, "activeElement", { value: before, configurable: true });
  other.querySelector("button").click();
  assert.equal(other.hidden, true);
  assert.equal(document.lastFocused, null); // the keyboard was elsewhere
});

test("the same as code, in two languages", async () => {
  const ctx = fakeContext({ code: { python: "p", magic: "m" } });
  const el = h("div");
  let own = null;
  const paint = codeFooter(el, ctx, () => own);
  const line = () => el.querySelector("code").textContent;
  assert.equal(line(), "p");
  button(el, "%lance").click();
  assert.equal(line(), "m");
  assert.deepEqual(
    [...el.querySelectorAll(".lnb-choice")].map((one) => one.getAttribute("aria-pressed")),
    ["false", "true"],
  );
  own = { magic: "own" };
  paint();
  assert.equal(line(), "own");
  assert.equal(el.querySelector("code").title, "own");
  const copied = [];
  Object.defineProperty(globalThis, "navigator", {
    value: { clipboard: { writeText: async (text) => copied.push(text) } },
    configurable: true,
  });
  button(el, "Copy").click();
  await settled();
  assert.deepEqual(copied, ["own"]);
  assert.ok(button(el, "Copied"));
  assert.deepEqual(ctx.announced, ["Copied"]);
  await pass(1200);
  assert.ok(button(el, "Copy"));
  globalThis.navigator.clipboard.writeText = async () => {
    throw new Error("no");
  };
  document.execCommand = () => false;
  button(el, "Copy").click();
  await settled();
  assert.ok(button(el, "Press Ctrl+C"));
  own = { python: undefined, magic: undefined };
  paint();
  assert.equal(line(), "");
});

const CARD = {
  name: "d.lance",
  uri: "s3://b/d.lance",
  label: "main:3",
  latest: 3,
  tags: ["v1"],
  facts: [
    { key: "rows", value: "1", title: "t" },
    { key: "size", value: "9 B", title: "s" },
    { key: "format", value: "2.0", title: "" },
    { key: "files", value: "4", title: "" },
  ],
};

test("the header names the dataset, its version, figures and tags", () => {
  const ctx = fakeContext({ card: CARD });
  const el = h("div");
  mountOverview(el, ctx);
  assert.match(shown(el), /^d\.lance\{s3:\/\/b\/d\.lance\}\|\[main:3\]/);
  const version = el.querySelector(".lnb-here-ref");
  assert.equal(version.title, "tagged v1: go to another version, tag or branch");
  assert.equal(
    shown(el.querySelector(".lnb-facts")),
    "row|1{t}|size|9 B{s\nfile format: 2.0\nfiles: 4}",
  );
  assert.equal(el.querySelector(".lnb-lock"), null);
  const marks = () => shown(el.querySelector(".lnb-marks"));
  assert.equal(marks(), "");
  const menu = el.querySelector(".lnb-menu");
  version.click();
  assert.equal(menu.hidden, false);
  assert.match(shown(menu), /^⚑\|v1\{tag v1\}\|<go to a version/);
  ctx.show({ card: { ...CARD, latest: 5 } });
  assert.equal(menu.hidden, true); // another screen shuts it
  assert.equal(button(menu, "Newest is 5 →").title, "go to the newest version of this branch, 5");
  button(menu, "Newest").click();
  ctx.show({ news: { added: 2, latest: 7, gone: true } });
  assert.match(marks(), /^this version was cleaned up\{.*\}\|\[2 new versions → 7\]\{/);
  button(el, "2 new").click();
  assert.deepEqual(ctx.travels, [
    { branch: null, version: 5 },
    { branch: null, version: 7 },
  ]);
  const way = { branch: "b", version: 9, label: "b:9" };
  ctx.show({ news: { lost: "the branch is gone", way } });
  assert.match(marks(), /^the branch is gone\{.*\}\|\[Go to b:9\]$/);
  button(el, "Go to b:9").click();
  assert.deepEqual(ctx.travels.at(-1), { branch: "b", version: 9 });
  ctx.show({ news: { lost: "the dataset is gone", way: null } });
  assert.equal(el.querySelector(".lnb-marks button"), null);
  const error = { title: "Damaged", message: "m", where: "", hint: "", kind: "" };
  ctx.show({ card: { error } });
  assert.equal(shown(el), "!|Damaged|m");
});

test("the header says when there is no kernel", () => {
  const ctx = fakeContext({ card: CARD });
  ctx.writes = true;
  const el = h("div");
  mountOverview(el, ctx);
  const badge = () => shown(el.querySelector(".lnb-title-end > .lnb-badge"));
  const setState = (state, isLost = false) => {
    Object.assign(ctx.kernel, { state, isLost });
    for (const listener of ctx.kernel.stateListeners) listener(state);
    return badge();
  };
  assert.equal(badge(), "");
  assert.equal(setState("static"), "Static snapshot – run the cell to continue");
  assert.equal(setState("static", true), "The kernel was restarted – run the cell to continue");
  assert.equal(setState("live"), "");
  assert.notEqual(el.querySelector(".lnb-lock"), null);
  ctx.close();
  assert.equal(ctx.kernel.stateListeners.size, 0);
});

test("the history plays from version to version", async () => {
  const ctx = fakeContext({ version: 3 });
  ctx.range = versionRange(ctx);
  const plane = h("div");
  const mapNow = () =>
    laneMap(timeline(), null, ctx.screen().version, null, {
      bar: { main: 58, branch: 32 },
      flag: 18,
    });
  const play = playButton(ctx, mapNow, plane);
  play.click();
  assert.equal(play.getAttribute("aria-pressed"), "true");
  assert.deepEqual(ctx.travels, [{ branch: null, version: 6 }]);
  ctx.show({ version: 6 });
  ctx.show({}, true);
  await pass(449);
  assert.equal(ctx.travels.length, 1);
  ctx.kernel.isWorking = true; // a view reads what it shows of this version
  await pass(1000);
  assert.equal(ctx.travels.length, 1);
  ctx.kernel.isWorking = false;
  await pass(100);
  assert.deepEqual(ctx.travels.at(-1), { branch: null, version: 7 });
  ctx.show({ version: 7 });
  ctx.show({ version: 7 });
  await pass(450);
  assert.equal(play.getAttribute("aria-pressed"), "false");
  assert.equal(ctx.travels.length, 2);
  assert.equal(play.disabled, false);
  play.click(); // at the end: from the beginning
  assert.deepEqual(ctx.travels.at(-1), { branch: null, version: 1 });
  send(plane, "pointerdown");
  assert.equal(play.getAttribute("aria-pressed"), "false");
  ctx.show({ version: 1 });
  await pass(450);
  assert.equal(ctx.travels.length, 3);
  ctx.show({ version: 7 });
  ctx.range.set({ a: { branch: null, version: 3 } });
  play.click();
  assert.deepEqual(ctx.travels.at(-1), { branch: null, version: 3 });
  play.click();
  play.click();
  assert.equal(play.getAttribute("aria-pressed"), "true");
  send(plane, "keydown", { key: "x" });
  assert.equal(play.getAttribute("aria-pressed"), "false");
  const travels = ctx.travels.length;
  ctx.kernel.state = "static";
  play.click();
  assert.equal(play.getAttribute("aria-pressed"), "false");
  assert.equal(ctx.travels.length, travels);
});

test("a branch of two versions plays, one of a single version does not", () => {
  const model = timeline();
  const play = () => {
    const ctx = fakeContext({ branch: "dev", version: 4 });
    ctx.range = versionRange(ctx);
    const map = laneMap(model, "dev", 4, null, { bar: { main: 58, branch: 32 }, flag: 18 });
    const made = playButton(ctx, () => map, h("div"));
    made.click();
    return [ctx.travels.length, made.getAttribute("aria-pressed"), made.textContent];
  };
  assert.deepEqual(play(), [1, "true", "❚❚"]);
  model.lanes[1].runs = [[4, 1]];
  assert.deepEqual(play(), [0, "false", "▶"]);
});

function news() {
  const ctx = fakeContext({ version: 7 });
  ctx.kernel.state = "connecting";
  watchNews(h("div"), ctx);
  assert.equal(ctx.kernel.count("news"), 0);
  ctx.kernel.state = "live";
  for (const listener of ctx.kernel.stateListeners) listener("live");
  return { ctx, last: () => ctx.kernel.last("news"), asked: () => ctx.kernel.count("news") };
}
const NEWS = { added: 0, latest: 7, gone: false, mark: "m" };

test("new versions are asked for while somebody looks", async () => {
  const { ctx, last, asked } = news();
  assert.deepEqual(last().args, { latest: 7, mark: "" });
  send(document, "visibilitychange");
  assert.equal(asked(), 1); // one at a time
  await last().answer({ ...NEWS, added: 2, latest: 9 });
  assert.deepEqual(ctx.refreshed.at(-1).news, {
    added: 2,
    latest: 9,
    gone: false,
    lost: undefined,
    way: undefined,
  });
  assert.deepEqual(ctx.announced, ["2 new, the newest version is 9"]);
  await pass(3999);
  assert.equal(asked(), 1);
  await pass(1);
  assert.deepEqual(last().args, { latest: 7, mark: "m" });
  await last().answer({ ...NEWS, added: 2, latest: 9 });
  assert.equal(ctx.refreshed.length, 1);
  await pass(4000);
  await last().answer({ ...NEWS, added: 2, latest: 9, gone: true, lost: "deleted" });
  assert.equal(ctx.refreshed.length, 2);
  assert.equal(ctx.announced.at(-1), "deleted");
  await pass(4000);
  await last().answer({ ...NEWS, timeline: timeline() });
  assert.ok(ctx.refreshed.at(-1).timeline);
  observers[0].fire([{ isIntersecting: false }]);
  await pass(60000);
  const before = asked();
  send(document, "visibilitychange");
  assert.equal(asked(), before);
  observers[0].fire([{ isIntersecting: true }]);
  assert.equal(asked(), before + 1);
  await last().fail({ message: "lost", kind: "Timeout" });
  await pass(4000);
  assert.equal(asked(), before + 2);
  await last().answer(NEWS);
  ctx.kernel.state = "static";
  await pass(4000);
  assert.equal(asked(), before + 2);
  ctx.close();
  assert.equal(observers[0].connected, false);
  ctx.kernel.state = "live";
  send(document, "visibilitychange");
  send(window, "focus");
  assert.equal(asked(), before + 2);
});

test("what is newest counts on the branch that is shown", async () => {
  const { last, ctx } = news();
  await last().answer(NEWS);
  ctx.show({ branch: "dev", version: 4 });
  await pass(4000);
  assert.equal(last().args.latest, 5);
  await last().answer(NEWS);
  ctx.show({ branch: "gone", version: 2 });
  await pass(4000);
  assert.equal(last().args.latest, 2);
});

test("nothing new changes nothing", async () => {
  const { ctx, last } = news();
  await last().answer({ ...NEWS, latest: 7, added: 3 });
  assert.deepEqual(ctx.refreshed, []);
  assert.deepEqual(ctx.announced, []);
});
