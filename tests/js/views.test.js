// Views of storage, single values and versions, in a tab or alone.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mountSchema } from "../../lance_nb/explorer/history/schema_view.js";
import { mountValue } from "../../lance_nb/explorer/history/value.js";
import { mountVersionDetail } from "../../lance_nb/explorer/history/version_detail.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { mountDeletions } from "../../lance_nb/explorer/storage/deletion_view.js";
import { mountFragmentMap } from "../../lance_nb/explorer/storage/fragment_map.js";
import { mountSpace } from "../../lance_nb/explorer/storage/space_view.js";
import { mountStorage } from "../../lance_nb/explorer/storage/storage.js";
import { fakeContext, fakeKernel, settled } from "./fake_context.js";
import { button, nextFrame, observers, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  nextFrame();
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

function mounted(mount, screen = {}, state = "live") {
  const kernel = fakeKernel();
  kernel.state = state;
  const ctx = fakeContext(screen, kernel);
  const el = h("div");
  document.body.append(el);
  return { ctx, el, view: mount(el, ctx) };
}
const HERE = { branch: null, version: 3 };
const NO_KERNEL = "The storage of a version is read by the kernel. Run the cell to see it.";
const FRAGMENT = {
  id: 4,
  rows: 10,
  deleted: 0,
  bytes: 100,
  deletion_file: null,
  hidden_files: 0,
  files: [],
  indices: [],
};
const CODE = { python: "ds = lance_nb.dataset('d')", magic: "%lance at 3" };

test("the storage tab asks for the map and the health of the version", async () => {
  const { ctx, el, view } = mounted(mountStorage, { code: CODE });
  assert.deepEqual(ctx.kernel.last("storage.map").args, { ...HERE, first: 0, stop: 2 ** 52 });
  assert.deepEqual(ctx.kernel.last("storage.health").args, HERE);
  assert.deepEqual(ctx.codes, [
    { python: "lance_nb.dataset('d').inspect.fragments()", magic: "%lance fragments 3" },
  ]);
  const advice = () => shown(el.querySelector(".lnb-st-advice"));
  const one = { title: "Compact", text: "small files", python: "ds.compact()", fragment: 4 };
  await ctx.kernel
    .last("storage.health")
    .answer({ advice: [{ ...one, stage: { verb: "compact" } }] });
  assert.equal(advice(), "Compact|small files|ds.compact()|[Copy]|[See fragment 4]|[Stage this]");
  button(el, "Stage this").click();
  assert.deepEqual(ctx.went, [["stage", { card: { verb: "compact" } }]]);
  button(el, "See fragment").click();
  assert.deepEqual(ctx.kernel.last("storage.fragment").args, { ...HERE, fragment: 4 });
  assert.equal(ctx.codes.at(-1).python, "lance_nb.dataset('d').get_fragment(4)");
  await ctx.kernel.last("storage.fragment").answer(FRAGMENT);
  assert.equal(ctx.details.at(-1).title, "Fragment 4");
  assert.match(shown(ctx.details.at(-1).content), /^rows\|10 of 10 stored/);
  view.open({});
  assert.equal(ctx.kernel.count("storage.fragment"), 1);
  view.open({ fragment: 7 });
  await ctx.kernel.last("storage.fragment").fail({ message: "lost" });
  assert.equal(ctx.details.at(-1).title, "Fragment 7");
  assert.equal(shown(ctx.details.at(-1).content), "problem: lost");
  view.shown();
  assert.match(ctx.codes.at(-1).python, /inspect\.fragments\(\)$/);
  ctx.show({ version: 2 });
  const before = ctx.kernel.last("storage.health");
  ctx.show({ version: 1 });
  await before.answer({ advice: [] }); // of another version by now
  assert.match(advice(), /^Compact/);
  await ctx.kernel.last("storage.health").answer({ advice: [] });
  assert.match(advice(), /^✓ Nothing to do/);
  ctx.show({ version: 4 });
  await ctx.kernel.last("storage.health").fail({ message: "damaged" });
  assert.equal(advice(), "problem: damaged");
  ctx.kernel.last("storage.map").fail({ message: "no map" });
  assert.equal(shown(el.querySelector(".lnb-st-problem")), "problem: no map");
});

test("advice has no button to stage it where nothing can be staged", async () => {
  const { ctx, el } = mounted(mountStorage);
  const one = { title: "T", text: "t", python: "p", fragment: 4, stage: null };
  await ctx.kernel.last("storage.health").answer({ advice: [one] });
  assert.equal(button(el, "Stage this"), undefined);
  assert.deepEqual(ctx.codes, []);
});

test("without a kernel the views of storage say so", async () => {
  for (const mount of [mountStorage, mountFragmentMap, mountDeletions]) {
    const { ctx, el } = mounted(mount, {}, "static");
    await settled();
    assert.match(shown(el), new RegExp(NO_KERNEL));
    assert.equal(ctx.kernel.asked.length, 0);
  }
});

test("the map alone opens a fragment below it", async () => {
  const { ctx, el } = mounted(mountFragmentMap);
  const numbers = (value) => new Float64Array([value]).buffer;
  const totals = { rows: 10, deleted: 0, bytes: 100, files: 1, indices: 0, covered: 0 };
  const map = { num_fragments: 1, num_bins: 1, first: 0, stop: 1, totals };
  ctx.kernel.last("storage.map").answer(map, [4, 1, 10, 0, 100, 1, 10].map(numbers));
  const key = { key: "Enter", altKey: false, ctrlKey: false, metaKey: false };
  send(el.querySelector(".lnb-fm"), "keydown", key);
  assert.deepEqual(ctx.kernel.last("storage.fragment").args, { ...HERE, fragment: 4 });
  await ctx.kernel.last("storage.fragment").answer(FRAGMENT);
  assert.match(shown(el), /\|Fragment 4\|rows\|10 of 10 stored/);
  send(el.querySelector(".lnb-fm"), "keydown", key);
  await ctx.kernel.last("storage.fragment").fail({ message: "lost" });
  assert.match(shown(el), /\|problem: lost$/);
  ctx.show({ version: 2 });
  assert.doesNotMatch(shown(el), /lost/);
  assert.equal(ctx.kernel.last("storage.map").args.version, 2);
});

test("deleted rows are those of the fragment with most, or of the one that is wanted", async () => {
  const { ctx, el } = mounted(mountDeletions);
  const most = [
    { id: 4, rows: 1000, deleted: 500 },
    { id: 6, rows: 1, deleted: 1 },
  ];
  assert.deepEqual(ctx.kernel.last("storage.deleted").args, HERE);
  await ctx.kernel.last("storage.deleted").answer({ most });
  assert.deepEqual(
    [...el.querySelectorAll("option")].map((one) => one.textContent),
    ["4: 500 of 1,000 rows deleted, 50.0 %", "6: 1 of 1 row deleted, 100.0 %"],
  );
  assert.deepEqual(ctx.kernel.last("storage.fragment").args, { ...HERE, fragment: 4 });
  const deletion_file = { kind: "bitmap", version: 2 };
  await ctx.kernel.last("storage.fragment").answer({ ...FRAGMENT, deletion_file });
  nextFrame();
  assert.equal(ctx.kernel.last("storage.deletions").args.fragment, 4);
  const select = el.querySelector("select");
  select.value = "6";
  send(select, "change");
  await ctx.kernel.last("storage.fragment").answer(FRAGMENT);
  assert.match(shown(el), /No row of fragment 6 is deleted\.$/);
  send(select, "change");
  await ctx.kernel.last("storage.fragment").fail({ message: "lost" });
  assert.match(shown(el), /problem: lost$/);
  const none = mounted(mountDeletions);
  await none.ctx.kernel.last("storage.deleted").answer({ most: [] });
  assert.match(shown(none.el), /No row of this version is deleted\.$/);
  const wanted = mounted(mountDeletions, { fragment: 9 });
  await wanted.ctx.kernel.last("storage.deleted").answer({ most });
  assert.deepEqual(
    [...wanted.el.querySelectorAll("option")].map((one) => one.value),
    ["9", "4", "6"],
  );
  assert.equal(wanted.ctx.kernel.last("storage.fragment").args.fragment, 9);
  const failed = mounted(mountDeletions);
  await failed.ctx.kernel.last("storage.deleted").fail({ message: "damaged" });
  assert.match(shown(failed.el), /problem: damaged$/);
});

test("space alone is that of the version shown", () => {
  const { ctx, el } = mounted(mountSpace);
  button(el, "Account").click();
  assert.deepEqual(ctx.kernel.last("storage.space").args, HERE);
});

const SCHEMA = {
  columns: 3,
  lines: [
    { depth: 0, name: "id", type: "int64", nullable: false, note: "" },
    { depth: 0, name: "name", type: "string", nullable: true, note: "" },
  ],
  hidden: 1,
};
const ERROR = { title: "Damaged", message: "m", where: "", hint: "", kind: "" };

test("a schema and a version are shown, or why they cannot be", () => {
  const detail = {
    label: "main:3",
    time: "then",
    time_ms: null,
    operation: "Append",
    description: "",
    message: "",
    counts: [],
    properties: [],
    transaction: [],
    schema: SCHEMA,
  };
  const schema = mounted(mountSchema, { detail, label: "main:3" });
  assert.equal(
    shown(schema.el),
    "Schema of main:3|id|int64|required{never null}|name|string|and 1 more",
  );
  const version = mounted(mountVersionDetail, { detail });
  assert.equal(
    shown(version.el),
    "+|Rows added|Append|main:3|then|Schema|3|id|int64|required{never null}|name|string|and 1 more",
  );
  assert.equal(version.el.querySelector("details").hasAttribute("open"), false);
  version.ctx.show({ detail: { ...detail, branch: null, version: 3 } });
  assert.match(shown(version.el), /\|main:3\|−2 rows\|\[See the changed rows\]\|then/);
  const moved = [];
  version.ctx.range = { set: (range) => moved.push(range) };
  button(version.el, "See the changed rows").click();
  assert.deepEqual(moved, [{ a: null }]);
  assert.deepEqual(version.ctx.went, [["changes", { level: "rows" }]]);
  version.ctx.show({ detail: { ...detail, branch: null, version: 1 } });
  assert.match(shown(version.el), /\|\+10 rows\|then/); // before the first there is nothing
  const message = (text) => {
    version.ctx.show({ detail: { ...detail, message: text } });
    return version.el.querySelector(".lnb-message");
  };
  assert.equal(message("short").tagName.toLowerCase(), "blockquote");
  const long = message(`first ${"x".repeat(300)}\nlast`);
  assert.equal(long.hasAttribute("open"), false);
  assert.match(long.querySelector("summary").textContent, /^first x{114}… whole message, 311 /);
  assert.match(long.querySelector("p").textContent, /\nlast$/);
  assert.equal(message("\na\nb\nc\nd").querySelector("summary").firstChild.textContent, "a");
  const counts = [
    { label: "rows", value: "3" },
    { label: "data files", value: "1" },
  ];
  const facts = [{ key: "rows", value: "3", title: "" }];
  version.ctx.show({ detail: { ...detail, counts }, card: { facts } });
  assert.deepEqual(texts(version.el, ".lnb-counts dt"), ["data files"]); // the header has the rows
  for (const { ctx, el } of [schema, version]) {
    ctx.show({ detail: { error: ERROR } });
    assert.equal(shown(el), "!|Damaged|m");
  }
  assert.equal(shown(mounted(mountSchema).el), "");
});

const node = (name, more = {}) => ({ name, type: "int64", text: `${name}!`, ...more });

test("a value is a tree that is searched", () => {
  const nodes = [
    node("list", { children: [node("inner"), node("other")], more: 3 }),
    ...Array.from({ length: 12 }, (_one, at) => node(`n${at}`)),
  ];
  const value = {
    heading: "A row",
    operation: "Delete",
    lines: ["one line"],
    rows: [{ label: "rows", value: "2" }],
    nodes,
    schema: null,
  };
  const { el } = mounted(mountValue, { value });
  assert.match(
    shown(el),
    /^−\|A row\|<find in A row: >\|one line\|rows\|2\|list\|int64\|5 inside\|/,
  );
  const find = el.querySelector("input");
  const names = (text) => {
    find.value = text;
    send(find, "input");
    return [...el.querySelectorAll(".lnb-tree b")].map((one) => one.textContent).join(" ");
  };
  assert.equal(names(" INN "), "list inner");
  assert.match(shown(el), /1 inside/);
  assert.equal(names("list"), "list inner other");
  assert.equal(names("n11!"), "n11");
  assert.equal(names("nowhere"), "");
  assert.match(shown(el), /No value matches this text\.$/);
  assert.equal(send(find, "keydown", { key: "a" }).defaultPrevented, false);
  assert.equal(send(find, "keydown", { key: "Escape" }).defaultPrevented, true);
  assert.equal(find.value, "");
  assert.equal(el.querySelectorAll(".lnb-tree b").length, 15);
  assert.equal(send(find, "keydown", { key: "Escape" }).defaultPrevented, false);
  const few = mounted(mountValue, {
    value: { ...value, operation: "", nodes: nodes.slice(1, 13) },
  });
  assert.equal(few.el.querySelector("input"), null); // twelve are seen at once
  assert.match(shown(few.el), /^A row\|one line/);
  const lines = Array.from({ length: 13 }, (_one, at) => ({ ...SCHEMA.lines[0], name: `c${at}` }));
  const schema = { lines, hidden: 0 };
  const columns = mounted(mountValue, { value: { ...value, schema } });
  assert.doesNotMatch(shown(columns.el), /rows\|2/);
  const box = columns.el.querySelector("input");
  box.value = "c12";
  send(box, "input");
  assert.match(shown(columns.el), /one line\|c12\|int64\|required\{never null\}$/);
});
