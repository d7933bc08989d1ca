// The log of operations: what is listed, what can be undone, and what happens then.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountOperationsLog } from "../../lance_nb/explorer/log/operations_log.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, shown } from "./light_page.js";

afterEach(() => document.body.replaceChildren());

const HOSTILE = "<img src=x onerror=alert(1)>";
const entry = (id, more = {}) => ({
  id, time_ms: null, who: "ada", what: `act ${id}`, label: `main:${id}`, branch: null, version: id,
  code: { python: `ds.act(${id})`, magic: "" }, undo: { label: "Restore main:1", reason: "" },
  state: "done", ...more,
}); // biome-ignore format: one entry
const REASON = { label: "", reason: "the files of the removed versions are deleted" };

async function log(entries, screen = { locked: false }) {
  const kernel = fakeKernel();
  const ctx = fakeContext(screen, kernel);
  ctx.writes = true;
  const el = h("div");
  document.body.append(el);
  const view = mountOperationsLog(el, ctx);
  await kernel.last("log.list").answer({ entries, hidden: 0 });
  const line = (id) => el.querySelector(`[data-entry="${id}"]`);
  return { ctx, kernel, el, line, view };
}

test("an empty log says what comes there", async () => {
  const { el } = await log([]);
  assert.match(shown(el), /Nothing was done from here yet/);
});

test("entries say who did what, as which version, and whether it can be undone", async () => {
  const { ctx, el, line } = await log([
    entry(3, { what: HOSTILE }),
    entry(2, { label: "", version: null, undo: REASON }),
    entry(1, { state: "undone", undo: { label: "", reason: "it was undone" } }),
  ]);
  assert.ok(shown(line(3)).startsWith(`${HOSTILE}|[main:3]|ada`));
  assert.match(shown(line(3)), /ds\.act\(3\)\|\[↶ Undo: Restore main:1\]/);
  assert.equal(el.querySelector("img"), null);
  assert.match(
    shown(line(2)),
    /Cannot be undone: the files of the removed versions are deleted\.$/,
  );
  assert.equal(line(2).querySelector("button"), null);
  assert.match(shown(line(1)), /↶ Undone$/);
  button(line(3), "main:3").click();
  assert.deepEqual(ctx.travels, [{ branch: null, version: 3 }]);
  line(1).click();
  assert.equal(ctx.codes.at(-1).python, "ds.act(1)");
});

test("an act is undone, and the view goes where that leads", async () => {
  const { ctx, kernel, el, line } = await log([entry(3)]);
  button(line(3), "↶ Undo").click();
  assert.deepEqual(kernel.last("log.undo").args, { id: 3 });
  await kernel.last("log.undo").answer({
    words: "main:2 was restored as main:4.", place: { branch: null, version: 4 },
    parts: { timeline: {}, card: {} }, entries: [entry(4), entry(3)], hidden: 7,
  }); // biome-ignore format: one answer
  await settled();
  assert.match(shown(el), /✓ main:2 was restored as main:4\./);
  assert.match(shown(el), /and 7 more$/);
  assert.equal(el.querySelectorAll(".lnb-ol-entry").length, 2);
  assert.deepEqual(ctx.travels, [{ branch: null, version: 4 }]);
});

test("nothing is undone while the lock is shut, and refusals are shown", async () => {
  const shut = await log([entry(3)], { locked: true });
  assert.equal(button(shut.line(3), "↶ Undo").disabled, true);
  shut.ctx.refresh({ locked: false });
  assert.equal(button(shut.line(3), "↶ Undo").disabled, false);
  button(shut.line(3), "↶ Undo").click();
  await shut.kernel.last("log.undo").fail({ message: "main:5 is newer" });
  await settled();
  assert.match(shown(shut.el), /problem: main:5 is newer\|\[Refresh\]/);
  button(shut.el, "Refresh").click();
  assert.equal(shut.kernel.count("log.list"), 2);
});

test("the log is read again when it is shown again", async () => {
  const { kernel, view } = await log([]);
  view.shown();
  await kernel.last("log.list").fail({ message: "lost" });
  assert.equal(kernel.count("log.list"), 2);
});
