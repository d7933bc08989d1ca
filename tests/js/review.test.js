// The review of a branch: its sections, the discussion, and news of others.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountReview } from "../../lance_nb/explorer/review/review.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, send } from "./light_page.js";

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
});
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

const place = (branch, version) => ({ branch, version, label: `${branch ?? "main"}:${version}` });
const SUMMARY = {
  branch: "dev", into: "main", label: "dev", into_label: "main", name: "t", source: place("dev", 4),
  target: place(null, 3), base: place(null, 2), facts: ["rows in: 2"], problem: "",
  state: "not approved", approved: false,
}; // biome-ignore format: one answer
const said = (id, more = {}) => ({
  id, author: "ada", kind: "comment", time_ms: null, when: "", text: `text ${id}`, version: 4,
  is_late: false, reply_to: null, depth: 0, ...more,
}); // biome-ignore format: one comment
const OPENED = {
  summary: SUMMARY, discussion: [], problems: [], newest: place("dev", 4), mark: "m1",
  identifier: "i1", author: "ada", code: { python: "open" },
}; // biome-ignore format: one answer
const EMPTY = {
  schema: { columns: [], rows: [] },
  cells: { rows: [], is_more: false },
  rows: { kinds: [] },
  drift: { columns: [] },
  checks: { sentence: "", outcomes: [] },
};

async function review({ opened = {}, sections = {}, buffers = [], screen = {} } = {}) {
  const kernel = fakeKernel();
  const ctx = fakeContext({ locked: false, ...screen }, kernel);
  const el = h("div");
  document.body.append(el);
  const did = { closed: 0, merged: [] };
  mountReview(el, ctx, {
    branch: "dev",
    into: null,
    close: () => {
      did.closed += 1;
    },
    merge: (target) => did.merged.push(target),
  });
  await kernel.last("review.open").answer({ ...OPENED, ...opened });
  await settled();
  for (let at = 0; at < 5; at += 1) {
    const request = kernel.last("review.section");
    const { section } = request.args;
    await request.answer({ ...EMPTY, ...sections }[section], buffers);
    await settled();
  }
  const part = (name) => el.querySelector(`.lnb-rv-part-${name}`);
  const comments = () => [...el.querySelectorAll(".lnb-rv-say")];
  const box = (label) => el.querySelector(`[aria-label="${label}"]`);
  return { kernel, ctx, el, did, part, comments, box };
}

test("the sections are compared one after the other, and say when nothing differs", async () => {
  const { kernel, ctx, el } = await review();
  assert.deepEqual(kernel.last("review.open").args, { branch: "dev", into: null });
  assert.deepEqual(
    kernel.asked.filter((one) => one.type === "review.section").map((one) => one.args.section),
    ["schema", "cells", "rows", "drift", "checks"],
  );
  for (const words of [
    "The columns are the same.", "No row has changed values.", "No row was added or removed.",
    "The versions have no column in common.", "The target has no expectations.",
    "No comments yet.", "dev:4 into main:3, compared with main:2", "rows in: 2",
  ]) // biome-ignore format: one list
    assert.ok(el.textContent.includes(words), words);
  assert.equal(ctx.codes.at(-1).python, "open");
});

test("changed words are marked and pictures stand side by side", async () => {
  const made = [];
  mock.method(URL, "createObjectURL", (blob) => `blob:${made.push(blob)}`);
  const { part } = await review({
    sections: {
      cells: {
        is_more: true,
        rows: [
          {
            place: "id 1", column: "note",
            before: { parts: [[false, "a "], [true, "<b>"]] }, after: { parts: [[true, "c"]] },
          },
          {
            place: "id 2", column: "photo",
            before: { image: 0, mime: "image/png", label: "PNG 8 × 8" }, after: { text: null },
          },
        ],
      },
    },
    buffers: [new Uint8Array([1, 2])],
  }); // biome-ignore format: one answer
  const cells = part("cells");
  assert.equal(cells.querySelector("del").textContent, "<b>");
  assert.equal(cells.querySelector("ins").textContent, "c");
  assert.equal(cells.querySelector("img").getAttribute("src"), "blob:1");
  assert.equal(cells.querySelector("img").getAttribute("alt"), "PNG 8 × 8");
  assert.deepEqual([made[0].type, made[0].size], ["image/png", 2]);
  assert.match(cells.textContent, /NULL/);
  assert.match(cells.textContent, /Only the first rows/);
  mock.restoreAll();
});

test("rows, columns, drift and checks are tables", async () => {
  const { part } = await review({
    sections: {
      schema: { columns: ["change", "name"], rows: [["added", "x"], ["removed", null]] },
      rows: {
        kinds: [
          { kind: "added", num_rows: 2, is_more: false, columns: ["id"], rows: [[{ text: "7" }]] },
          { kind: "removed", num_rows: 0, is_more: false, columns: ["id"], rows: [] },
        ],
      },
      drift: {
        columns: [
          { name: "id", psi: 0.12345, before: "min 0", after: "min 1" },
          { name: "b", psi: null, before: "", after: "" },
        ],
      },
      checks: {
        sentence: "dev:4: 2 expectations",
        outcomes: [
          { name: "a", statement: "id < 9", status: "fail", detail: "false for 1 row" },
          { name: "b", statement: "", status: "unknown", detail: "no such column" },
        ],
      },
    },
  }); // biome-ignore format: one answer
  assert.match(part("schema").textContent, /addedxremoved/);
  assert.match(part("rows").textContent, /2 rows added/);
  assert.doesNotMatch(part("rows").textContent, /removed/);
  assert.equal(part("rows").querySelector("td").className, "lnb-rv-value lnb-rv-new");
  assert.match(part("drift").textContent, /id0\.123min 0min 1b/);
  assert.match(part("checks").textContent, /✗failid < 9false for 1 row\?unknownb/);
});

test("a section that fails says why and is compared again", async () => {
  const { kernel, part, el } = await review();
  const before = kernel.count("review.section");
  button(el, "Close"); // it is there
  mountReview(el, fakeContext({}, kernel), { branch: "dev", into: null, close() {}, merge() {} });
  await kernel.last("review.open").answer(OPENED);
  await settled();
  await kernel.last("review.section").fail({ message: "the file is gone" });
  await settled();
  assert.match(el.textContent, /problem: the file is gone/);
  assert.equal(kernel.count("review.section"), before + 2); // the next one is asked for
  assert.ok(part("schema"));
});

test("the page leads to the merge and to all changes", async () => {
  const { ctx, el, did } = await review();
  button(el, "Merge…").click();
  button(el, "Open all changes").click();
  button(el, "Close").click();
  assert.deepEqual(did.merged, [{ source: "dev", into: "main" }]);
  assert.equal(did.closed, 1);
  assert.deepEqual(ctx.went, [
    ["changes", { a: { branch: null, version: 2 }, b: { branch: "dev", version: 4 } }],
  ]);
});

test("the page in one file is fetched in pieces and saved", async () => {
  const made = [];
  mock.method(URL, "createObjectURL", (blob) => `blob:${made.push(blob)}`);
  mock.method(URL, "revokeObjectURL", () => {});
  const { kernel, ctx, el } = await review();
  button(el, "As one file").click();
  const about = { size: 5, name: "review-dev.html", code: { python: "page" } };
  await kernel.last("review.page").answer(about, [new Uint8Array(3)]);
  await settled();
  assert.deepEqual(kernel.last("review.page").args, { branch: "dev", into: null, offset: 3 });
  await kernel.last("review.page").answer(about, [new Uint8Array(2)]);
  await settled();
  assert.equal(kernel.count("review.page"), 2);
  assert.deepEqual([made[0].type, made[0].size], ["text/html", 5]);
  assert.equal(ctx.codes.at(-1).python, "page");
  button(el, "As one file").click();
  await kernel.last("review.page").fail({ message: "no room" });
  await settled();
  assert.match(el.textContent, /problem: no room/);
  mock.restoreAll();
});

test("a comment, an answer and an approval are written as shown", async () => {
  const { kernel, ctx, el, box, comments } = await review();
  box("comment").value = "Why?";
  button(el, "Comment").click();
  assert.deepEqual(kernel.last("review.write").args, {
    branch: "dev", into: null, identifier: "i1", kind: "comment", text: "Why?", reply_to: null,
    author: "",
  }); // biome-ignore format: one request
  await kernel.last("review.write").answer({
    ...OPENED, mark: "m2", discussion: [said("c1")], words: "Comment on dev:4",
    code: { python: "said" },
  }); // biome-ignore format: one answer
  await settled();
  assert.equal(box("comment").value, "");
  assert.equal(comments().length, 1);
  assert.equal(ctx.codes.at(-1).python, "said");
  button(comments()[0], "Reply").click();
  box("comment").value = "Because.";
  box("your name").value = "bob";
  button(el, "Comment").click();
  assert.equal(kernel.last("review.write").args.reply_to, "c1");
  assert.equal(kernel.last("review.write").args.author, "bob");
  button(el, "Approve").click();
  assert.deepEqual(
    [kernel.last("review.write").args.kind, kernel.last("review.write").args.reply_to],
    ["approval", null],
  );
  await kernel.last("review.write").fail({ message: "the disk is full" });
  await settled();
  assert.match(el.textContent, /problem: the disk is full/);
  assert.equal(box("comment").value, "Because.");
});

test("writing waits for the lock", async () => {
  const { el, ctx } = await review({ screen: { locked: true } });
  assert.equal(button(el, "Approve").disabled, true);
  ctx.show({ locked: false }, true);
  assert.equal(button(el, "Approve").disabled, false);
});

test("what others write appears by itself, and a branch that moved is offered again", async () => {
  const { kernel, ctx, el, comments } = await review({ opened: { discussion: [said("c1")] } });
  assert.equal(kernel.count("review.news"), 0);
  mock.timers.tick(4000);
  assert.deepEqual(kernel.last("review.news").args, { branch: "dev", into: null, mark: "m1" });
  await kernel.last("review.news").answer({ mark: "m1" });
  await settled();
  assert.equal(comments().length, 1);
  mock.timers.tick(4000);
  await kernel.last("review.news").answer({
    summary: { ...SUMMARY, state: "approved", approved: true }, mark: "m2", problems: ["damaged"],
    newest: place("dev", 5),
    discussion: [said("c1"), said("c2", { kind: "approval", is_late: true, depth: 1, text: "" })],
  }); // biome-ignore format: one answer
  await settled();
  assert.equal(comments().length, 2);
  assert.match(comments()[1].textContent, /✓ approved · about version 4/);
  assert.equal(comments()[1].className, "lnb-rv-say lnb-rv-approval lnb-rv-reply");
  assert.match(el.textContent, /A comment was left out: damaged/);
  assert.match(el.textContent, /The branch is at dev:5 now/);
  assert.deepEqual(ctx.announced, ["1 new comment"]);
  mock.timers.tick(4000);
  assert.equal(kernel.last("review.news").args.mark, "m2");
  await kernel.last("review.news").fail({ message: "no answer" });
  await settled();
  button(el, "Compare again").click();
  assert.equal(kernel.count("review.open"), 2);
  mock.timers.tick(4000);
  assert.equal(kernel.count("review.news"), 4); // a failure ends nothing
});

test("nothing is asked once the page is closed or hidden", async () => {
  const { kernel, el } = await review();
  Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
  mock.timers.tick(4000);
  assert.equal(kernel.count("review.news"), 0);
  Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
  send(document, "visibilitychange");
  assert.equal(kernel.count("review.news"), 1);
  el.replaceChildren();
  await kernel.last("review.news").answer({ mark: "m1" });
  await settled();
  mock.timers.tick(60000);
  send(document, "visibilitychange");
  assert.equal(kernel.count("review.news"), 1);
});
