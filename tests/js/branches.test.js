// The view of branches and tags: its lists, what is opened from them, and what a change leads to.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountBranches } from "../../lance_nb/explorer/refs/branches.js";
import { fakeContext, fakeKernel, settled, timeline } from "./fake_context.js";
import { button, nextFrame, observers, send, shown } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const HOSTILE = "<img src=x onerror=alert(1)>";
const CODE = { python: "ds.branches.list()", magic: "%lance branch" };
const branch = (name, more = {}) => ({
  name,
  label: name ?? "main",
  fork: null,
  place: { branch: name, version: 1, label: `${name ?? "main"}:1` },
  created_ms: null,
  updated_ms: null,
  tags: 0,
  children: 0,
  note: "",
  ...more,
});
const page = (lines, more = {}) => ({
  kind: "branch",
  lines,
  first: 0,
  matching: lines.length,
  branches: lines.length,
  tags: 4,
  damaged: 0,
  code: CODE,
  ...more,
});
const DETAIL = {
  kind: "tag",
  name: "v1",
  label: "v1",
  note: "",
  seen: "s",
  place: { branch: null, version: 2, label: "main:2" },
  fork: null,
  facts: [],
  metadata: [],
  tags: { lines: [], hidden: 0 },
  children: { lines: [], hidden: 0 },
};

function branches(screen = {}, { state = "live", writes = true } = {}) {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext({ locked: false, ...screen }, kernel);
  ctx.writes = writes;
  const el = h("div");
  document.body.append(el);
  const view = mountBranches(el, ctx);
  const list = el.querySelector(".lnb-rl");
  Object.defineProperty(list, "clientHeight", { value: 280, configurable: true });
  list.scrollTop = 0;
  const listed = async (answer) => {
    await ctx.kernel.last("refs.list").answer(answer);
    nextFrame();
  };
  const status = () => shown(el.querySelector(".lnb-br-status"));
  const found = () => shown(el.querySelector(".lnb-br-found"));
  const kinds = () => shown(el.querySelector(".lnb-choices"));
  const form = () => shown(el.querySelector(".lnb-br-form"));
  const lists = el.querySelector(".lnb-br-lists");
  return { ctx, el, view, list, lists, listed, status, found, kinds, form };
}

test("branches are listed first, with how many of each there are", async () => {
  const { ctx, el, listed, found, kinds } = branches();
  const { kind, text, sort, descending, first } = ctx.kernel.last("refs.list").args;
  assert.deepEqual([kind, text, sort, descending, first], ["branch", "", "name", false, 0]);
  await listed(page([branch(null), branch(HOSTILE)], { damaged: 1 }));
  assert.equal(kinds(), "[2 branches]|[4 tags]");
  assert.equal(found(), "1 tag cannot be read");
  assert.deepEqual(ctx.codes, [CODE]);
  assert.match(shown(el.querySelector(".lnb-rl")), /main.*<img src=x onerror=alert\(1\)>/);
  assert.equal(el.querySelector("img"), null);
  assert.equal(el.querySelector(".lnb-lock"), null); // the header has one
});

test("tags are a choice, and a filter says how many it leaves", async () => {
  const { ctx, el, listed, found } = branches();
  await listed(page([branch(null)]));
  const [first, second] = el.querySelectorAll(".lnb-choices button");
  second.click();
  assert.equal(ctx.kernel.last("refs.list").args.kind, "tag");
  assert.deepEqual(
    [first, second].map((one) => one.getAttribute("aria-pressed")),
    ["false", "true"],
  );
  const box = el.querySelector("input[type=search]");
  box.value = "v1";
  send(box, "input");
  assert.equal(ctx.kernel.last("refs.list").args.text, "v1");
  await listed(page([branch("v1")], { kind: "tag", matching: 1 }));
  assert.equal(found(), "1 found");
  first.click();
  assert.equal(box.value, "");
});

test("a list that cannot be read says why, until it can", async () => {
  const { ctx, el, list, listed } = branches();
  await ctx.kernel.last("refs.list").fail({ message: HOSTILE });
  assert.ok(shown(el).includes(`problem: ${HOSTILE}`));
  assert.equal(el.querySelector("img"), null);
  ctx.show({ timeline: timeline() });
  await listed(page([branch(null)]));
  assert.ok(!shown(el).includes("problem"));
  assert.equal(list.getAttribute("aria-rowcount"), "2");
});

test("without a kernel it says so", () => {
  const { el } = branches({}, { state: "static" });
  assert.ok(
    shown(el).includes("Branches and tags are read by the kernel. Run the cell to see them."),
  );
});

test("a view by itself has a lock of its own", () => {
  const { el } = branches({}, { writes: false });
  assert.notEqual(el.querySelector(".lnb-lock"), null);
});

test("a ref is opened in the pane beside, or why it cannot be", async () => {
  const { ctx, el, listed } = branches();
  await listed(page([branch(null), branch("dev")]));
  send(el.querySelectorAll(".lnb-rl-space .lnb-rl-row")[1], "click");
  assert.deepEqual(ctx.kernel.last("refs.show").args, { kind: "branch", name: "dev" });
  await ctx.kernel
    .last("refs.show")
    .answer({ ...DETAIL, kind: "branch", name: "dev", label: "dev" });
  assert.deepEqual([ctx.details.at(-1).title, ctx.details.at(-1).focus], ["Branch dev", true]);
  send(el.querySelectorAll(".lnb-rl-space .lnb-rl-row")[0], "click");
  await ctx.kernel.last("refs.show").fail({ message: "lost" });
  assert.equal(ctx.details.at(-1).title, "Branch main");
  assert.equal(shown(ctx.details.at(-1).content), "problem: lost");
});

test("from elsewhere it opens a tag, a branch or a merge", async () => {
  const { ctx, el, view, lists } = branches();
  view.open({ tag: "v1" });
  assert.deepEqual(ctx.kernel.last("refs.show").args, { kind: "tag", name: "v1" });
  assert.deepEqual(ctx.kernel.last("refs.list").args.text, "v1");
  await ctx.kernel.last("refs.show").answer(DETAIL);
  assert.equal(ctx.details.at(-1).title, "Tag v1");
  view.open({ branch: "dev" });
  assert.deepEqual(ctx.kernel.last("refs.show").args, { kind: "branch", name: "dev" });
  view.open({ merge: { source: "dev", into: "main" } });
  assert.equal(lists.hidden, true);
  assert.equal(el.querySelector(".lnb-mp").hidden, false);
  assert.equal(ctx.kernel.last("refs.plan").args.source, "dev");
  const before = ctx.kernel.count("refs.list");
  button(el, "← Branches").click();
  assert.equal(lists.hidden, false);
  assert.equal(el.querySelector(".lnb-mp").hidden, true);
  assert.equal(ctx.kernel.count("refs.list"), before + 1);
});

test("while a merge is open the list does not change the line of code", async () => {
  const { ctx, view, listed } = branches();
  view.open({ merge: { source: "dev" } });
  await listed(page([branch(null)]));
  assert.deepEqual(ctx.codes, []);
});

const CHECKED = {
  reason: "",
  problem: "",
  consequences: [],
  place: { branch: null, version: 3, label: "main:3" },
  code: null,
};

async function created(of) {
  const { ctx, el } = of;
  button(el, "New branch…").click();
  const name = el.querySelector(".lnb-br-form input");
  name.value = "next";
  await ctx.kernel.last("refs.check").answer(CHECKED);
  button(el, "Create it").click();
  await settled();
  return ctx.kernel.last("refs.create");
}

test("a branch is made from a form at the version shown, and leads to where it is", async () => {
  const of = branches();
  const { ctx, el, status, form } = of;
  const asked = await created(of);
  assert.deepEqual([asked.args.kind, asked.args.name, asked.args.version], ["branch", "next", 3]);
  const place = { branch: "next", version: 4, label: "next:4" };
  const code = { python: "ds.create_branch('next')" };
  await asked.answer({ words: `made ${HOSTILE}`, place, parts: { timeline: timeline() }, code });
  assert.equal(form(), "");
  assert.equal(status(), `✓ made ${HOSTILE}|[Go to next:4]`);
  assert.equal(el.querySelector("img"), null);
  assert.deepEqual(ctx.announced.at(-1), `made ${HOSTILE}`);
  assert.deepEqual(ctx.refreshed, [{ timeline: timeline() }]);
  assert.deepEqual(ctx.codes.at(-1), code);
  assert.deepEqual(ctx.travels, []);
  button(el, "Go to next:4").click();
  assert.deepEqual(ctx.travels, [{ branch: "next", version: 4 }]);
  ctx.show({ branch: "next", version: 4 });
  assert.equal(status(), `✓ made ${HOSTILE}`); // the way there has been gone
});

test("what is refused leaves the form open with the reason", async () => {
  const of = branches();
  const asked = await created(of);
  await asked.fail({ message: "somebody was faster" });
  assert.match(of.form(), /problem: somebody was faster/);
  assert.equal(of.status(), "");
});

test("a change where one stands has no way to go", async () => {
  const of = branches();
  const asked = await created(of);
  const place = { branch: null, version: 3, label: "main:3" };
  await asked.answer({ words: "noted", place, parts: { timeline: timeline() }, code: null });
  assert.equal(of.status(), "✓ noted");
  assert.deepEqual(of.ctx.travels, []);
});

test("when the branch shown was deleted, the view travels to what is left", async () => {
  const of = branches({ branch: "dev", version: 5 });
  const asked = await created(of);
  const left = { ...timeline(), lanes: [timeline().lanes[0]] };
  const place = { branch: null, version: 7, label: "main:7" };
  await asked.answer({ words: "deleted", place, parts: { timeline: left }, code: null });
  assert.deepEqual(of.ctx.travels, [{ branch: null, version: 7 }]);
});

test("a new tag from the merge page leads back to the lists", async () => {
  const { ctx, el, view, lists, form } = branches();
  view.open({ merge: { source: "dev" } });
  assert.equal(lists.hidden, true);
  button(el, "New tag…").click();
  assert.equal(lists.hidden, false);
  assert.match(form(), /^New tag\|/);
  assert.equal(document.lastFocused, el.querySelector(".lnb-br-form input"));
  assert.equal(ctx.kernel.last("refs.check").args.at, "main:3");
});
