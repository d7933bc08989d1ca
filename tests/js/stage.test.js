// The stage: its cards, what is sent for them, progress, refusals, and the lock.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountStage } from "../../lance_nb/explorer/stage/stage.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, observers, send, shown } from "./light_page.js";

let clock = 0;
beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  clock = 10000;
  mock.method(performance, "now", () => clock);
});
afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const card = (id, more = {}) => ({
  id,
  title: `delete ${id}`,
  on: "main:3",
  state: "ready",
  lines: [],
  facts: [],
  problem: null,
  where: null,
  samples: [],
  fragments: [],
  num_fragments: 0,
  meetings: [],
  has_rows: true,
  message: "",
  outcome: null,
  code: { python: `stage.${id}()` },
  ...more,
});
const area = (...cards) => ({
  cards,
  not_together: cards.length > 1 ? "" : "only one card is staged",
});
const MENU = {
  verbs: [
    {
      name: "delete",
      label: "delete rows",
      group: "rows",
      is_heavy: false,
      fields: [{ name: "where", kind: "filter", label: "where", hint: "" }],
    },
  ],
  columns: [],
  versions: [],
  tags: [],
  branches: [],
  rows: [],
  spark: "",
};
const HERE = { branch: null, version: 3 };

async function stage({
  screen = {},
  state = "live",
  cards = [card("a"), card("b")],
  menu = MENU,
} = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext({ locked: false, ...screen }, kernel);
  ctx.writes = true;
  const el = h("div");
  document.body.append(el);
  const view = mountStage(el, ctx);
  await kernel.last("stage.menu")?.answer(structuredClone(menu));
  await kernel.last("stage.cards")?.answer({ area: area(...cards) });
  const cardAt = (at) => el.querySelectorAll(".lnb-sg-card")[at];
  const problem = () => shown(el.querySelector(".lnb-sg-problem"));
  const running = () => shown(el.querySelector(".lnb-sg-running"));
  const all = () => shown(el.querySelector(".lnb-sg-all"));
  const notice = () => shown([...el.querySelectorAll(".lnb-sg-notice")].at(-1));
  return { ctx, kernel, el, view, cardAt, problem, running, all, notice };
}

test("before the cards have come nothing can be committed", () => {
  const el = h("div");
  mountStage(el, fakeContext({ locked: false }));
  assert.equal(el.querySelector(".lnb-sg-all").hidden, true);
});

test("the menu and the cards are asked for at once", async () => {
  const { kernel, el, cardAt, all } = await stage();
  assert.deepEqual(kernel.last("stage.menu").args, HERE);
  assert.equal(kernel.last("stage.menu").options.quiet, true);
  assert.equal(kernel.last("stage.cards").options.quiet, true);
  assert.equal(el.querySelectorAll(".lnb-sg-card").length, 2);
  assert.match(shown(cardAt(0)), /^delete a\|main:3\|ready\|/);
  assert.match(
    all(),
    /\[Commit 2 as one version\]\|\[Commit 2 one by one\]\|Each card is planned on the version/,
  );
});

test("a metric is asked for and sent where the index is of vectors", async () => {
  const menu = structuredClone(MENU);
  const choice = (name, choices, more) => ({ name, kind: "choice", label: name, choices, ...more });
  menu.verbs.push({
    name: "index",
    label: "build an index",
    group: "upkeep",
    is_heavy: false,
    fields: [
      choice("kind", ["BTREE", "IVF_PQ"]),
      choice("metric", ["l2", "dot"], { only_for: ["kind", ["IVF_PQ"]] }),
    ],
  });
  const { el, kernel, view } = await stage({ menu });
  view.open({ card: { verb: "index", kind: "IVF_PQ", metric: "dot" } });
  await kernel.last("stage.menu").answer(menu);
  const metric = el.querySelector("select[aria-label=metric]");
  const kind = el.querySelector("select[aria-label=kind]");
  const label = metric.closest("label");
  const args = () => kernel.last("stage.check").args.args;
  assert.equal(label.hidden, false);
  assert.deepEqual(args(), { kind: "IVF_PQ", metric: "dot" });
  kind.value = "BTREE";
  send(kind, "change", {});
  assert.equal(label.hidden, true);
  assert.deepEqual(args(), { kind: "BTREE" });
});

test("a stage without cards says what can be done", async () => {
  const { el, all } = await stage({ cards: [] });
  assert.match(shown(el), /Nothing is staged\. Choose a change above/);
  assert.equal(all(), "");
});

test("titles of cards are text", async () => {
  const { el, cardAt } = await stage({ cards: [card("a", { title: HOSTILE })] });
  assert.ok(shown(cardAt(0)).startsWith(HOSTILE));
  assert.equal(el.querySelector("img"), null);
});

test("a card is committed with its message, and the view goes to its version", async () => {
  const { ctx, kernel, el, cardAt, running } = await stage();
  cardAt(1).querySelector(".lnb-sg-message").value = "why";
  button(cardAt(1), "Commit").click();
  const asked = kernel.last("stage.commit");
  assert.deepEqual(asked.args, { ...HERE, id: "b", message: "why" });
  assert.equal(running(), "…|[Cancel]");
  assert.equal(button(cardAt(0), "Commit").disabled, true);
  const outcome = { version: 4, branch: null, text: "version 4", undo: null };
  const done = card("b", { state: "committed", outcome });
  await asked.answer({ area: area(card("a"), done), version: 4, branch: null });
  assert.deepEqual(ctx.travels, [{ branch: null, version: 4 }]);
  assert.equal(ctx.root.getAttribute("data-fresh"), "main:4");
  assert.deepEqual(ctx.announced, ["committed as version 4"]);
  assert.deepEqual(ctx.codes.at(-1), { python: "stage.b()" });
  assert.equal(running(), "");
  assert.match(shown(el), /✓ version 4/);
  ctx.show({ version: 4 });
  assert.equal(ctx.root.getAttribute("data-fresh"), "main:4");
  ctx.show({ version: 3 });
  assert.equal(ctx.root.getAttribute("data-fresh"), null);
});

test("an outcome without a version refreshes the frame", async () => {
  const { ctx, kernel, cardAt } = await stage();
  button(cardAt(0), "Commit").click();
  const parts = { timeline: { lanes: [] }, card: { name: "d" } };
  await kernel.last("stage.commit").answer({ area: area(), version: null, ...parts });
  assert.deepEqual(ctx.refreshed, [parts]);
  assert.deepEqual(ctx.travels, []);
});

test("a commit that is refused shows why, and the cards are read again", async () => {
  const { kernel, el, cardAt, problem, running } = await stage();
  button(cardAt(0), "Commit").click();
  const before = kernel.count("stage.cards");
  await kernel.last("stage.commit").fail({ message: HOSTILE });
  assert.equal(problem(), `problem: ${HOSTILE}`);
  assert.equal(el.querySelector("img"), null);
  assert.equal(running(), "");
  assert.equal(kernel.count("stage.cards"), before + 1);
  assert.equal(button(cardAt(0), "Commit").disabled, false);
});

test("while something runs nothing else is begun, and how far it is is asked", async () => {
  const { kernel, el, cardAt, running } = await stage();
  button(cardAt(0), "Commit").click();
  button(el, "Commit 2 as one").click();
  assert.equal(kernel.count("stage.all"), 0);
  kernel.last("stage.commit").options.progress(3, 9);
  const bar = el.querySelector("progress");
  assert.deepEqual([bar.max, bar.value], [9, 3]);
  mock.timers.tick(400);
  const now = {
    title: "delete", phase: "running", engine: "spark", done: 3, total: 9, rows: 1200,
    size_bytes: 3400000, elapsed_s: 2.4, counts_tasks: true,
  }; // biome-ignore format: one progress
  await kernel.last("stage.running").answer({ running: now });
  assert.equal(
    running(),
    "delete: running · on Spark · 3 of 9 tasks · 1,200 rows · 3.4 MB · 2 s|[Cancel]",
  );
  mock.timers.tick(400);
  await kernel.last("stage.running").fail({ message: "lost" }); // the work itself has the error
  assert.match(running(), /^delete: running/);
  button(el, "Cancel").click();
  assert.equal(kernel.cancelled, 1);
});

test("all cards are committed as one version or one by one", async () => {
  const { kernel, el, all } = await stage();
  const message = el.querySelector('[aria-label="commit message for all cards"]');
  message.value = "both";
  button(el, "Commit 2 as one").click();
  assert.deepEqual(kernel.last("stage.all").args, { ...HERE, message: "both", together: true });
  await kernel
    .last("stage.all")
    .answer({ area: { ...area(card("a"), card("b")), not_together: "x" } });
  assert.match(all(), /\[Commit 2 one by one\]\|cannot be committed as one version: x/);
  button(el, "Commit 2 one by one").click();
  assert.equal(kernel.last("stage.all").args.together, false);
  const failed = card("b", { state: "failed" });
  await kernel.last("stage.all").answer({ area: area(card("a"), failed) });
  assert.match(all(), /\[Commit 2 as one version\]\|\(Commit 2 one by one\)/);
});

test("a change is staged from the form, and its card has the line of code", async () => {
  const { ctx, kernel, el } = await stage({ cards: [] });
  el.querySelector(".lnb-sg-fields input, .lnb-sg-fields textarea").value = "id < 3";
  send(el.querySelector("form.lnb-sg-form"), "submit");
  const asked = kernel.last("stage.add");
  assert.equal(asked.args.verb, "delete");
  assert.deepEqual([asked.args.branch, asked.args.version], [null, 3]);
  await asked.answer({ area: area(card("new")) });
  assert.deepEqual(ctx.codes.at(-1), { python: "stage.new()" });
  assert.deepEqual(ctx.announced, ["staged: delete new"]);
});

test("actions of a card name it", async () => {
  const outcome = { version: 4, branch: null, text: "", undo: { verb: "restore", version: "3" } };
  const { ctx, kernel, cardAt } = await stage({
    cards: [
      card("a", { state: "unknown" }),
      card("b", { state: "committed", outcome }),
      card("c", { state: "failed", meetings: [] }),
      card("d", { state: "planned" }),
    ],
  });
  const sent = async (at, words, type, args) => {
    button(cardAt(at), words).click();
    const asked = kernel.last(type);
    assert.deepEqual(asked.args, { ...HERE, ...args });
    await asked.fail({ message: "" });
    await kernel.last("stage.cards").fail({ message: "" });
  };
  await sent(0, "Check again", "stage.look", { id: "a" });
  await sent(0, "Commit again", "stage.commit", { id: "a", message: "" });
  await sent(1, "Undo", "stage.add", {
    verb: "restore", args: { version: "3" }, version: 4, branch: null,
  }); // biome-ignore format: one request
  await sent(2, "Re-run", "stage.rerun", { id: "c" });
  await sent(3, "Prepare", "stage.prepare", { id: "d", engine: null });
  await sent(3, "↑", "stage.earlier", { id: "d" });
  await sent(3, "×", "stage.remove", { id: "d" });
  button(cardAt(1), "Show version 4").click();
  assert.deepEqual(ctx.travels, [{ branch: null, version: 4 }]);
});

test("what is typed stays while cards are repainted, unchanged cards are left alone", async () => {
  const { ctx, kernel, cardAt } = await stage();
  const before = cardAt(0);
  before.querySelector(".lnb-sg-message").value = "half a sen";
  clock += 5000;
  window.dispatchEvent(new Event("focus"));
  await kernel.last("stage.cards").answer({ area: area(card("a"), card("b")) });
  assert.equal(cardAt(0), before);
  window.dispatchEvent(new Event("focus"));
  await kernel.last("stage.cards").answer({ area: area(card("a"), card("b", { on: "main:4" })) });
  assert.notEqual(cardAt(0), before);
  assert.equal(cardAt(0).querySelector(".lnb-sg-message").value, "half a sen");
  send(cardAt(0), "focusin");
  assert.deepEqual(ctx.codes.at(-1), { python: "stage.a()" });
});

test("coming back to the cards reads them and the menu again, but not at once", async () => {
  const { kernel, el } = await stage();
  const counts = () => ["stage.cards", "stage.menu"].map((type) => kernel.count(type));
  const before = counts();
  send(el.querySelector(".lnb-stage"), "focusin");
  assert.deepEqual(counts(), before);
  clock += 2000;
  send(el.querySelector(".lnb-stage"), "focusin");
  assert.deepEqual(
    counts(),
    before.map((one) => one + 1),
  );
});

test("while the lock is shut cards cannot be committed, and the view says so", async () => {
  const { ctx, el, cardAt, notice } = await stage({ screen: { locked: true } });
  assert.equal(
    notice(),
    "The lock is shut: changes can be entered and checked. Open the lock to stage them.",
  );
  assert.equal(button(cardAt(0), "Commit").disabled, true);
  assert.equal(button(el, "Commit 2 as one").disabled, true);
  ctx.show({ locked: false }, true);
  await settled();
  assert.equal(notice(), "");
  assert.equal(button(cardAt(0), "Commit").disabled, false);
  ctx.show({ locked: null }, true);
  await settled();
  assert.equal(
    notice(),
    "Opened with read_only=True: changes can be entered and checked, not staged.",
  );
});

test("a card that another view wants fills the form when the menu is here", async () => {
  const { kernel, el, view } = await stage({ cards: [] });
  view.open({ card: { verb: "delete", where: "id = 7" } });
  await kernel.last("stage.menu").answer(structuredClone(MENU));
  const box = el.querySelector(".lnb-sg-fields input, .lnb-sg-fields textarea");
  assert.equal(box.value, "id = 7");
  const before = kernel.count("stage.menu");
  view.open({});
  assert.equal(kernel.count("stage.menu"), before);
  view.shown();
  assert.equal(kernel.count("stage.menu"), before + 1);
});

test("a menu or cards that cannot be read say why", async () => {
  const { kernel, view, problem } = await stage();
  view.shown();
  await kernel.last("stage.menu").fail({ message: "no menu" });
  assert.equal(problem(), "problem: no menu");
  await kernel.last("stage.cards").fail({ message: "no cards" });
  assert.equal(problem(), "problem: no cards");
});

test("without a kernel the stage says so and asks for no cards", async () => {
  const { kernel, el } = await stage({ state: "static" });
  assert.equal(kernel.count("stage.cards"), 0);
  assert.match(shown(el), /Changes are staged in the kernel\. Run the cell to continue\./);
  assert.equal(el.querySelector("form.lnb-sg-form").hidden, true);
});

test("the place of the keyboard in a card stays when cards are repainted", async () => {
  const { kernel, el, cardAt } = await stage();
  const box = cardAt(1).querySelector(".lnb-sg-message");
  Object.defineProperty(document, "activeElement", { value: box, configurable: true });
  try {
    clock += 5000;
    window.dispatchEvent(new Event("focus"));
    const next = area(card("a", { on: "main:9" }), card("b"));
    await kernel.last("stage.cards").answer({ area: next });
  } finally {
    delete document.activeElement;
  }
  assert.notEqual(cardAt(1).querySelector(".lnb-sg-message"), box);
  assert.equal(document.lastFocused, cardAt(1).querySelector(".lnb-sg-message"));
  assert.equal(el.contains(box), false);
});

test("tasks are counted from the start, also while a session starts", async () => {
  const { kernel, cardAt, running } = await stage();
  button(cardAt(0), "Commit").click();
  mock.timers.tick(400);
  const now = {
    title: "delete", phase: "starting spark", engine: "spark", done: 0, total: 12, rows: 0,
    size_bytes: 0, elapsed_s: 3, counts_tasks: true,
  }; // biome-ignore format: one progress
  await kernel.last("stage.running").answer({ running: now });
  assert.equal(running(), "delete: starting spark · on Spark · 0 of 12 tasks · 3 s|[Cancel]");
});

test("an unfinished job is resumed, or forgotten, and its text is text", async () => {
  const { ctx, kernel, el, running } = await stage({ cards: [] });
  const job = {
    id: "4f2c",
    title: HOSTILE,
    lines: ["interrupted: 3 of 10 tasks are done"],
    problem: null,
    code: { python: "resume" },
  };
  const damaged = { ...job, id: "77", problem: "it is damaged" };
  ctx.show({ news: 1 });
  await kernel.last("stage.cards").answer({ area: { ...area(), unfinished: [job, damaged] } });
  const [first, second] = el.querySelectorAll(".lnb-sg-job");
  assert.match(
    shown(first),
    /^<img src=x onerror=alert\(1\)>\|unfinished job\|interrupted: 3 of 10 .*\[Resume\]/,
  );
  assert.equal(el.querySelector("img"), null);
  assert.match(shown(second), /it is damaged\|\[Forget\]/);
  button(first, "Resume").click();
  assert.deepEqual(kernel.last("stage.resume").args, { ...HERE, id: "4f2c" });
  assert.equal(running(), "…|[Cancel]");
  await kernel
    .last("stage.resume")
    .answer({ area: { ...area(), unfinished: [damaged] }, version: 9, branch: null });
  assert.deepEqual(ctx.travels, [{ branch: null, version: 9 }]);
  button(el.querySelector(".lnb-sg-job"), "Forget").click();
  await kernel.last("stage.forget").answer({ area: area() });
  assert.equal(el.querySelector(".lnb-sg-job"), null);
});

test("progress names only what is known, and the notice of a saved page is gone", async () => {
  const { kernel, el, cardAt, running } = await stage();
  button(cardAt(0), "Commit").click();
  mock.timers.tick(400);
  const now = {
    title: "delete", phase: "planning", engine: "local", done: 0, total: 0, rows: 0,
    size_bytes: 0, elapsed_s: 0,
  }; // biome-ignore format: one progress
  await kernel.last("stage.running").answer({ running: now });
  assert.equal(running(), "delete: planning · 0 s|[Cancel]");
  assert.doesNotMatch(shown(el), /Changes are staged in the kernel/);
});

const REVIEW = {
  button: "Remove 20 versions",
  consequences: [{ level: "warn", text: "Removes 20 versions" }],
  typed: "shop.lance",
  final: true,
  empty: false,
  outdated: false,
  key: "k1",
};
const cleanup = (more = {}) => card("a", { has_rows: false, review: { ...REVIEW, ...more } });

test("an act that cannot be undone has its own button and waits for the word", async () => {
  const { kernel, cardAt, ctx } = await stage({ cards: [cleanup()] });
  const act = () => button(cardAt(0), "Remove 20 versions");
  assert.match(
    shown(cardAt(0)),
    /\|!\|Removes 20 versions\|Type\|shop\.lance\|<type shop\.lance to confirm: >\|\(Remove/,
  );
  assert.equal(button(cardAt(0), "Commit"), undefined);
  const box = () => cardAt(0).querySelector(".lnb-cc-input");
  box().value = "shop";
  send(box(), "input");
  assert.equal(act().disabled, true);
  box().value = "shop.lance";
  send(box(), "input");
  assert.equal(act().disabled, false);
  ctx.refresh({ news: {} }); // painted anew: what was typed stays
  assert.equal(box().value, "shop.lance");
  act().click();
  assert.deepEqual(kernel.last("stage.commit").args, {
    ...HERE, id: "a", message: "", seen: "k1", typed: "shop.lance",
  }); // biome-ignore format: one request
});

test("a view whose version was removed goes where the kernel went", async () => {
  const { ctx, kernel, cardAt } = await stage({ cards: [cleanup({ typed: "" })] });
  button(cardAt(0), "Remove 20 versions").click();
  await kernel.last("stage.commit").answer({
    area: area(), timeline: {}, card: {}, place: { branch: null, version: 9 },
  }); // biome-ignore format: one answer
  assert.deepEqual(ctx.travels, [{ branch: null, version: 9 }]);
});

test("consequences that are outdated are refreshed before the act", async () => {
  const { kernel, cardAt } = await stage({ cards: [cleanup({ outdated: true })] });
  assert.match(shown(cardAt(0)), /changed after this preview\.\|\[Refresh the preview\]/);
  assert.equal(button(cardAt(0), "Remove 20 versions").disabled, true);
  button(cardAt(0), "Refresh the preview").click();
  assert.equal(kernel.last("stage.rerun").args.id, "a");
});

test("nothing to remove has a button that does nothing", async () => {
  const empty = cleanup({ empty: true, button: "Nothing to remove", final: false });
  const { cardAt } = await stage({ cards: [empty] });
  assert.equal(button(cardAt(0), "Nothing to remove").disabled, true);
});

test("acts that cannot be undone are not committed with others", async () => {
  const { kernel, ctx, all } = await stage();
  ctx.refresh({ news: {} });
  const held = { ...area(card("a"), cleanup()), not_each: "“Clean up” cannot be undone" };
  await kernel.last("stage.cards").answer({ area: held });
  assert.match(all(), /cannot be committed one by one: “Clean up” cannot be undone/);
});

// --- expectations ---

const BROKEN = {
  name: "cheap", statement: "price < 50", detail: "false for 1 row", rows: 1,
  sample: { columns: [{ name: "price", type: "double" }], rows: [["99.0"]], cut: 0 },
}; // biome-ignore format: one answer
const gate = (more) => ({
  checking: false, count: 2, closed: false, refused: false, problem: "", broken: [], more: 0,
  off: { python: "ds.expectations.set_gate(False)" }, ...more,
}); // biome-ignore format: one answer

test("a card says what it would break, and the gate disables its button", async () => {
  const { el, kernel } = await stage({
    cards: [
      card("a", { expectations: gate({ broken: [BROKEN], closed: true, refused: true }) }),
      card("b", { expectations: gate({ broken: [BROKEN] }) }),
      card("c", { expectations: gate({}) }),
    ],
  });
  const [a, b, c] = el.querySelectorAll(".lnb-sg-card");
  assert.match(a.textContent, /Would break 1 expectation: the gate is closed/);
  assert.match(a.textContent, /ds\.expectations\.set_gate\(False\)/);
  assert.match(a.textContent, /pylance and Spark, are not bound by it/);
  assert.match(a.textContent, /cheap price < 50 false for 1 row/);
  assert.match(a.textContent, /99\.0/);
  assert.equal(button(a, "Commit").disabled, true);
  assert.match(b.textContent, /The gate is open, so a commit is possible/);
  assert.doesNotMatch(b.textContent, /not bound/);
  assert.equal(button(b, "Commit").disabled, false);
  assert.match(c.textContent, /Breaks none of 2 expectations/);
  assert.match(el.textContent, /cannot be committed one by one: an expectation refuses “delete a”/);
  assert.equal(button(el, "Commit 3 one by one").disabled, true);
  assert.equal(kernel.count("stage.forecast"), 0);
});

test("expectations are checked in the background", async () => {
  const { el, kernel } = await stage({
    cards: [card("a", { expectations: gate({ checking: true }) })],
  });
  assert.match(el.textContent, /Checking 2 expectations/);
  assert.equal(kernel.count("stage.forecast"), 1);
  const done = card("a", { expectations: gate({ problem: "the store is gone" }) });
  await kernel.last("stage.forecast").answer({ area: area(done) });
  await settled();
  assert.match(el.textContent, /Expectations could not be checked: the store is gone/);
});
