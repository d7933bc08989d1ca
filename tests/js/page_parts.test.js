// The small parts of a page: elements, cards, buttons, trees, cells.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { versionFacts } from "../../lance_nb/explorer/history/version_facts.js";
import {
  atOnce,
  h,
  perFrame,
  setAttribute,
  setBox,
  setText,
  show,
  svg,
  table,
} from "../../lance_nb/explorer/js/dom.js";
import { errorCard } from "../../lance_nb/explorer/js/error_card.js";
import { fillCell, retire } from "../../lance_nb/explorer/js/grid_cell.js";
import { lockButton } from "../../lance_nb/explorer/js/lock_button.js";
import { longAction } from "../../lance_nb/explorer/js/long_action.js";
import { sampleTable } from "../../lance_nb/explorer/js/sample_table.js";
import { treeNode } from "../../lance_nb/explorer/js/tree.js";
import { lateNotice } from "../../lance_nb/explorer/js/view.js";
import { writeGuard } from "../../lance_nb/explorer/js/write_guard.js";
import { ioMeter } from "../../lance_nb/explorer/storage/io_meter.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, nextFrame, observers, send, texts } from "./light_page.js";

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

test("elements are made from plain values", () => {
  let clicks = 0;
  const element = h(
    "p",
    {
      class: "a",
      hidden: true,
      title: null,
      lang: false,
      id: undefined,
      "data-n": 0,
      on: {
        click: () => {
          clicks += 1;
        },
      },
    },
    "text",
    null,
    false,
    undefined,
    0,
    [h("b"), null],
  );
  assert.equal(element.outerHTML, '<p data-n="0" hidden class="a">text0<b></b></p>');
  element.click();
  assert.equal(clicks, 1);
  assert.equal(svg("rect", { x: 1 }).getAttribute("x"), "1");
  show(element, "a", null, false, [h("i")]);
  assert.equal(element.innerHTML, "a<i></i>");
  show(element);
  assert.equal(element.childNodes.length, 0);
});

test("a tag may name classes, and properties may be left out", () => {
  const element = h("p.one.two", "text", ["a", h("b")], null, 0);
  assert.equal(element.outerHTML, '<p class="one two">texta<b></b>0</p>');
  assert.equal(h("p.one", h("b")).outerHTML, '<p class="one"><b></b></p>');
  assert.equal(h("p.one", { id: "x" }).outerHTML, '<p id="x" class="one"></p>');
  assert.equal(h("p", null, "text").outerHTML, "<p>text</p>");
  assert.equal(svg("g.one").getAttribute("class"), "one");
});

test("a table has a row of titles", () => {
  const titled = h("th", { title: "int64" }, "id");
  assert.equal(
    table(["", titled], [[h("th"), h("td", "1")]]).outerHTML,
    '<table class="lnb-table"><thead><tr><th scope="col"></th><th title="int64">id</th></tr>' +
      "</thead><tbody><tr><th></th><td>1</td></tr></tbody></table>",
  );
  assert.equal(table([], [], { class: "other" }).className, "other");
});

test("a box is set in pixels, as far as it is given", () => {
  const element = h("i");
  setBox(element, { left: 1.5, width: 0 });
  assert.equal(element.style.left, "1.5px");
  assert.equal(element.style.width, "0px");
  assert.equal(element.style.top ?? "", "");
});

test("text and attributes are set only when they change", () => {
  const element = h("p", {}, "one");
  const node = element.firstChild;
  setText(element, "two");
  assert.equal(element.firstChild, node);
  assert.equal(element.textContent, "two");
  setText(element, "");
  assert.equal(element.textContent, "");
  setText(element, "again");
  assert.equal(element.textContent, "again");
  element.append(h("b", {}, "x"));
  setText(element, "all");
  assert.equal(element.innerHTML, "all");
  let sets = 0;
  const spy = {
    getAttribute: () => "same",
    setAttribute: () => {
      sets += 1;
    },
  };
  setAttribute(spy, "a", "same");
  setAttribute(spy, "a", "other");
  assert.equal(sets, 1);
});

test("work is done once per frame, or at the end of what runs at once", () => {
  let done = 0;
  const paint = perFrame(() => {
    done += 1;
  });
  paint();
  paint();
  assert.equal(done, 0);
  nextFrame();
  assert.equal(done, 1);
  paint();
  paint.cancel();
  nextFrame();
  assert.equal(done, 1);
  const result = atOnce(() => {
    paint();
    atOnce(paint);
    assert.equal(done, 1);
    return "made";
  });
  assert.equal(result, "made");
  assert.equal(done, 2);
  nextFrame();
  assert.equal(done, 2);
  assert.throws(() =>
    atOnce(() => {
      paint();
      throw new Error("no");
    }),
  );
  assert.equal(done, 3);
});

const CARD = { title: "T", message: "M", where: "", hint: "H", kind: "K" };

test("an error card says what happened, and can try again", () => {
  let tried = 0;
  const plain = errorCard(CARD);
  assert.equal(plain.className, "lnb-error");
  assert.equal(plain.querySelector(".lnb-error-where"), null);
  assert.equal(plain.querySelector("button"), null);
  assert.deepEqual(
    texts(plain, ".lnb-error-title, .lnb-error-message, .lnb-error-hint, .lnb-error-kind"),
    ["T", "M", "H", "K"],
  );
  const failed = errorCard(
    {
      ...CARD,
      where: "W",
      retry: () => {
        tried += 1;
      },
    },
    h("u"),
  );
  assert.deepEqual(texts(failed, ".lnb-error-where"), ["W"]);
  button(failed, "Try again").click();
  assert.equal(tried, 1);
  assert.ok(failed.querySelector("u"));
  const calm = errorCard({ ...CARD, kind: "Snapshot" });
  assert.match(calm.className, /lnb-error-calm/);
  assert.deepEqual(texts(calm, ".lnb-error-kind, .lnb-error-mark"), ["i", ""]);
  assert.deepEqual(texts(plain, ".lnb-error-mark"), ["!"]);
});

test("a notice is shown while answers are late", () => {
  const kernel = fakeKernel();
  const notice = lateNotice(kernel);
  assert.equal(notice.hidden, true);
  for (const listener of kernel.lateListeners) listener(2);
  assert.equal(notice.hidden, false);
  assert.match(notice.textContent, /No answer from the kernel yet/);
  button(notice, "Try again").click();
  assert.equal(kernel.tried, 1);
  assert.match(notice.textContent, /Asked again/);
  for (const listener of kernel.lateListeners) listener(0);
  assert.equal(notice.hidden, true);
});

test("the lock opens and shuts, and says what is wrong", async () => {
  const ctx = fakeContext({ locked: true });
  const lock = lockButton(ctx);
  assert.equal(lock.textContent, "Allow changes");
  assert.equal(lock.getAttribute("aria-pressed"), "false");
  assert.match(lock.title, /locked: nothing can be written/);
  lock.click();
  assert.deepEqual(ctx.kernel.last("lock").args, { locked: false });
  await ctx.kernel.last("lock").answer({ locked: false });
  assert.equal(lock.textContent, "Changes allowed");
  assert.equal(lock.getAttribute("aria-label"), "Changes allowed");
  assert.equal(lock.getAttribute("aria-pressed"), "true");
  assert.match(lock.title, /click to lock/);
  assert.deepEqual(ctx.refreshed, [{ locked: false }]);
  lock.click();
  assert.deepEqual(ctx.kernel.last("lock").args, { locked: true });
  await ctx.kernel.last("lock").fail({ message: "cannot" });
  assert.deepEqual(ctx.announced, ["cannot"]);
  ctx.show({ locked: null });
  assert.equal(lock.disabled, true);
  assert.match(lock.title, /read_only=True/);
});

test("buttons that write wait for the lock", () => {
  const ctx = fakeContext({ locked: true });
  const guard = writeGuard(ctx);
  let written = 0;
  const place = guard.button("write", () => {
    written += 1;
  });
  const refused = guard.button("no", () => {}, { refused: true });
  document.body.append(place, refused);
  const [write, hint] = place.children;
  assert.equal(write.disabled, true);
  assert.equal(hint.textContent, "open the lock first");
  assert.equal(hint.hidden, false);
  ctx.show({ locked: false }, true);
  assert.equal(write.disabled, false);
  assert.equal(hint.hidden, true);
  assert.equal(refused.firstChild.disabled, true);
  assert.equal(refused.lastChild.hidden, true);
  write.click();
  assert.equal(written, 1);
  ctx.show({ locked: null });
  assert.equal(hint.textContent, "opened with read_only=True");
  place.remove();
  ctx.show({ locked: false });
  assert.equal(write.disabled, true); // forgotten
});

test("the meter says what the last action cost, and all of them", async () => {
  const ctx = fakeContext();
  const [none, last] = [
    { requests: 0, bytes: 0, ms: 0 },
    { requests: 1, bytes: 500, ms: 1500 },
  ];
  const meter = ioMeter(ctx);
  assert.equal(meter.textContent, "last action: 0 requests · 0 B · 0 ms");
  ctx.kernel.costs = { last, total: { requests: 6, bytes: 1501, ms: 1506 } };
  const [changed] = ctx.kernel.costListeners;
  changed();
  assert.match(meter.textContent, / 0 requests/);
  await pass(120);
  assert.equal(meter.textContent, "last action: 1 request · 500 B · 1,500 ms");
  assert.match(meter.title, /6 requests to the store, 1.5 KB, 1.5 s/);
  ctx.kernel.costs = { last: none, total: none };
  changed();
  await pass(120);
  assert.match(meter.textContent, / 0 requests/);
  ctx.close();
  assert.equal(ctx.kernel.costListeners.size, 0);
});

test("a long action shows its progress and can be cancelled", async () => {
  const ctx = fakeContext();
  const place = h("div");
  const work = longAction(ctx, place, {
    type: "refs.bytes",
    args: { a: 1 },
    words: "counting…",
    noun: "file",
  });
  const asked = ctx.kernel.last("refs.bytes");
  asked.options.progress(3, 1200);
  assert.match(place.textContent, /counting… 3 of 1,200 files/);
  assert.equal(Number(place.querySelector("progress").max), 1200);
  asked.options.progress(0, 0);
  assert.equal(Number(place.querySelector("progress").max), 1);
  button(place, "Cancel").click();
  assert.equal(ctx.kernel.cancelled, 1);
  await asked.answer("done");
  assert.equal(await work, "done");
  assert.equal(place.childNodes.length, 0);
});

test("a long action that failed says so, with a way to do it again", async () => {
  const ctx = fakeContext();
  const place = h("div");
  let again = 0;
  const work = longAction(ctx, place, {
    type: "t",
    args: {},
    words: "w",
    again: () => {
      again += 1;
    },
  });
  await ctx.kernel.last("t").fail({ message: "broken" });
  assert.equal(await work, null);
  assert.match(place.textContent, /problem: broken/);
  button(place, "Refresh").click();
  assert.equal(again, 1);
  const other = longAction(ctx, place, { type: "t", args: {}, words: "w" });
  await ctx.kernel.last("t").fail({ message: "broken" });
  await other;
  assert.equal(button(place, "Refresh"), undefined);
});

test("trees open as far as two levels", () => {
  const leaf = { name: "n", type: "t", text: "", look: "null" };
  const made = treeNode({
    ...leaf,
    children: [{ ...leaf, children: [{ ...leaf, children: [] }], more: 1000 }],
  });
  const branches = [...made.querySelectorAll("details")];
  assert.deepEqual(
    [made, ...branches].map((one) => one.hasAttribute("open")),
    [true, true, false],
  );
  assert.deepEqual(
    [made, ...branches].map((one) => one.getAttribute("aria-level")),
    ["1", "2", "3"],
  );
  assert.match(made.textContent, /1,001 inside/);
  assert.match(made.textContent, /and 1,000 more/);
  assert.doesNotMatch(treeNode({ ...leaf, children: [] }).textContent, /more/);
  assert.match(treeNode({ ...leaf, children: [leaf] }).textContent, /1 inside/);
  assert.match(treeNode(leaf).outerHTML, /lnb-look-null.*empty text/);
  assert.doesNotMatch(treeNode({ ...leaf, look: "x", text: "v" }).outerHTML, /lnb-look-null|empty/);
});

test("sample rows have a sign each", () => {
  const made = sampleTable({
    label: "L",
    sign: "+",
    columns: [{ name: "a", type: "t" }],
    rows: [["1"], [null]],
    cut: 2,
    signs: ["~"],
  });
  assert.match(made.className, /lnb-sample-add/);
  assert.deepEqual(texts(made, "td"), ["~", "1", "+", "null"]);
  assert.match(made.textContent, /2 more columns/);
  assert.match(
    sampleTable({ label: "", sign: "−", columns: [], rows: [], cut: 0 }).className,
    /remove/,
  );
  assert.match(
    sampleTable({ label: "", sign: "?", columns: [], rows: [], cut: 0 }).className,
    /change/,
  );
});

test("pictures of sample rows take the place of their texts when they are decoded", async () => {
  const bitmaps = [];
  globalThis.createImageBitmap = async (blob, { resizeHeight: height }) => {
    if (blob.size === 1) throw new Error("damaged");
    bitmaps.push(blob.type);
    return { width: 9, height };
  };
  const image = { row: 0, column: 1, mime: "image/png", width: 90, height: 224 };
  const images = [
    { ...image, data: btoa("png!") },
    { ...image, row: 1, data: btoa("x") },
  ];
  const columns = ["id", "photo"].map((name) => ({ name, type: "" }));
  const rows = [
    ["1", "PNG · 4 B"],
    ["2", "PNG · 1 B"],
    ["3", null],
  ];
  const made = sampleTable({ label: "", sign: "+", columns, rows, cut: 0, images });
  assert.equal(made.querySelectorAll("i.lnb-thumb").length, 2);
  assert.equal(made.querySelector("i").getAttribute("aria-label"), "PNG · 4 B");
  for (let turn = 0; turn < 20 && made.querySelector("i.lnb-thumb"); turn += 1) await settled();
  assert.deepEqual(texts(made, "td"), ["+", "1", "", "+", "2", "PNG · 1 B", "+", "3", "null"]);
  const canvas = made.querySelector("canvas");
  assert.deepEqual([canvas.getAttribute("height"), bitmaps], ["112", ["image/png"]]);
  delete globalThis.createImageBitmap;
});

test("a version in full, sections stay as they were opened", () => {
  const open = { schema: true, transaction: false, properties: true };
  const detail = {
    operation: "Append",
    label: "main:3",
    message: "why",
    description: "d",
    time: "t",
    time_ms: null,
    counts: [{ label: "rows", value: "3" }],
    properties: [{ label: "p", value: "1" }],
    transaction: [],
    schema: {
      hidden: 1999,
      columns: 2000,
      lines: [
        { depth: 0, name: "a", type: "int", nullable: false, note: "" },
        { depth: 1, name: "b", type: "x", nullable: true, note: "n" },
      ],
    },
  };
  const place = h("div", {}, versionFacts(detail, open, h("u")));
  const sections = [...place.querySelectorAll("details")];
  assert.deepEqual(texts(place, "summary"), ["Schema2,000", "Properties1"]);
  assert.deepEqual(
    sections.map((one) => one.hasAttribute("open")),
    [true, true],
  );
  assert.ok(place.querySelector("u"));
  assert.deepEqual(texts(place, "li"), ["aintrequired", "bx", "and 1,999 more"]);
  assert.equal(place.querySelectorAll("li")[1].style.paddingInlineStart, "14px");
  assert.equal(place.querySelectorAll("li")[1].getAttribute("aria-level"), "2");
  sections[0].open = false;
  send(sections[0], "toggle");
  assert.equal(open.schema, false);
  const bare = versionFacts(
    { ...detail, operation: "", message: "", description: "", properties: [], time_ms: 1 },
    open,
  );
  assert.equal(h("div", {}, bare).querySelectorAll("blockquote, .lnb-description, i").length, 0);
});

test("cells show text, a line of a vector, or that they wait", () => {
  const cell = h("div");
  assert.deepEqual(fillCell(cell, undefined, undefined), { filled: false, look: "lnb-waiting" });
  assert.deepEqual(fillCell(cell, { text: "1", look: "number" }, { look: "number" }), {
    filled: true,
    look: "lnb-look-number lnb-right",
  });
  assert.equal(cell.textContent, "1");
  fillCell(
    cell,
    { text: "2.0", look: "vector", spark: new Uint8Array([0, 255]) },
    { look: "vector" },
  );
  assert.equal(cell.querySelector("polyline").getAttribute("points"), "0.0,15.0 60.0,1.0");
  const line = cell.firstElementChild;
  fillCell(cell, { text: "3.0", look: "vector", spark: new Uint8Array([255]) }, { look: "vector" });
  assert.equal(cell.firstElementChild, line);
  assert.equal(cell.querySelector("polyline").getAttribute("points"), "0.0,1.0");
  assert.equal(cell.textContent, "3.0");
  assert.equal(
    fillCell(cell, { text: "3.0", look: "text" }, { look: "text" }).look,
    "lnb-look-text",
  );
  assert.equal(cell.innerHTML, "3.0");
  cell.id = "x";
  retire(cell);
  assert.deepEqual([cell.hidden, cell.lnb, cell.className, cell.id], [true, null, "lnb-cell", ""]);
});
