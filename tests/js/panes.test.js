// What stands in the detail pane: rows, changes, columns, fragments, the life of a row.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { changeDetail } from "../../lance_nb/explorer/changes/change_detail.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import { biographyButton, openBiography } from "../../lance_nb/explorer/rows/biography.js";
import { cellPeek } from "../../lance_nb/explorer/rows/cell_peek.js";
import { columnPane } from "../../lance_nb/explorer/rows/column_pane.js";
import { exportPane } from "../../lance_nb/explorer/rows/export_pane.js";
import { GridActions } from "../../lance_nb/explorer/rows/grid_actions.js";
import { rowDetail } from "../../lance_nb/explorer/rows/row_detail.js";
import { fragmentDetail, pageTable } from "../../lance_nb/explorer/storage/fragment_detail.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, send, shown, texts } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

const last = (ctx) => ctx.details.at(-1);
const leaf = (name, text, more = {}) => ({ name, type: "int64", text, ...more });

test("a row shows its columns, and the pictures that its bytes hold", async () => {
  const ctx = fakeContext();
  const done = rowDetail(ctx, { branch: "b", version: 2, filter: "x" }, 1234);
  const asked = ctx.kernel.last("rows.row");
  assert.deepEqual(asked.args, { branch: "b", version: 2, filter: "x", row: 1234 });
  await asked.answer({
    nodes: [
      leaf("id", "7"),
      leaf("raw", "00ff", { look: "bytes" }),
      leaf("none", "", { look: "null" }),
      leaf("odd", "01", { look: "bytes" }),
    ],
  });
  const { title, content, focus } = last(ctx);
  document.body.append(content);
  assert.equal(title, "Row 1,234");
  assert.equal(focus, true);
  assert.equal(
    shown(content),
    "[Row history]{Show what happened to this row, version by version}" +
      "|id|int64|7|raw|int64|00ff|none|int64|empty text|odd|int64|01",
  );
  const media = ctx.kernel.last("rows.media");
  assert.deepEqual(media.args, {
    branch: "b",
    version: 2,
    filter: "x",
    row: 1234,
    column: 1,
    offset: 0,
  });
  const png = { kind: "image", mime: "image/png", label: "PNG", size: 3 };
  await media.answer(png, [new ArrayBuffer(3)]);
  await settled();
  assert.equal(ctx.kernel.last("rows.media").args.column, 3);
  await ctx.kernel.last("rows.media").fail({ message: "m" });
  await done;
  assert.match(shown(content), /raw\|int64\|PNG · 3 B\|none/);
  assert.match(shown(content), /odd\|int64\|01$/); // its bytes stay
  const revoked = [];
  mock.method(URL, "revokeObjectURL", (url) => revoked.push(url));
  const other = rowDetail(ctx, {}, 1);
  await ctx.kernel.last("rows.row").answer({ nodes: [leaf("raw", "00", { look: "bytes" })] });
  assert.equal(revoked.length, 1); // what was shown of the row before gives its memory back
  await ctx.kernel.last("rows.media").answer(png, [new ArrayBuffer(3)]);
  await other;
  assert.equal(revoked.length, 2); // nobody sees this row: its pane is not in the page
  ctx.close();
  assert.equal(revoked.length, 2);
  mock.restoreAll();
});

test("a row that cannot be read says why", async () => {
  const ctx = fakeContext();
  const done = rowDetail(ctx, {}, 5);
  await ctx.kernel.last("rows.row").fail({ message: "gone" });
  await done;
  assert.equal(last(ctx).title, "Row 5");
  assert.equal(last(ctx).focus, true);
  assert.equal(shown(last(ctx).content), "problem: gone");
});

function peek(look = "text") {
  const ctx = fakeContext();
  const grid = h("div");
  const did = [];
  const part = cellPeek(ctx, grid, {
    columnOf: () => ({ name: "words", look }),
    query: () => ({ filter: "f" }),
    similar: (...spot) => did.push(["similar", ...spot]),
    only: (...spot) => did.push(["only", ...spot]),
    alike: (...spot) => did.push(["alike", ...spot]),
  });
  return { ctx, grid, did, ...part };
}

test("a whole value stands over the grid until it is closed", async () => {
  const { ctx, grid, did, element, open } = peek();
  assert.equal(element.hidden, true);
  open(1500, 2);
  const asked = ctx.kernel.last("cell");
  const args = { branch: null, version: 3, row: 1500, column: 2, filter: "f" };
  assert.deepEqual(asked.args, args);
  await asked.answer({ text: "long text" });
  assert.equal(
    shown(element),
    "words|row 1,500|[Only this value]|[More like this]|[Copy]|[×]|long text",
  );
  assert.equal(document.lastFocused, element);
  let heard = 0;
  h("div", element).addEventListener("keydown", () => (heard += 1));
  assert.equal(send(element, "keydown", { key: "a" }).defaultPrevented, false);
  assert.deepEqual([element.hidden, heard], [false, 0], "the notebook hears no key of it");
  assert.equal(send(element, "keydown", { key: "Escape" }).defaultPrevented, true);
  assert.equal(element.hidden, true);
  assert.equal(document.lastFocused, grid);
  open(1, 2);
  await ctx.kernel.last("cell").answer({ text: "", null: true });
  assert.match(shown(element), /empty text$/);
  assert.equal(element.querySelector("pre").className, "lnb-look-null");
  button(element, "Only").click();
  assert.deepEqual(did, [["only", 1, 2]]);
  assert.equal(element.hidden, true);
  open(1, 2);
  open(2, 2); // the newest counts
  const [before, newest] = ctx.kernel.asked.slice(-2);
  await newest.answer({ text: "second" });
  await before.answer({ text: "first" });
  assert.match(shown(element), /second$/);
  open(3, 3);
  await ctx.kernel.last("cell").fail({ title: "T", message: "bad", where: "", hint: "", kind: "" });
  assert.match(shown(element), /T\|bad/);
  button(element, "×").click();
  assert.equal(element.hidden, true);
});

test("a vector leads to similar rows, bytes to their picture", async () => {
  const vector = peek("vector");
  vector.open(4, 0);
  await vector.ctx.kernel.last("cell").answer({ text: "[1]" });
  button(vector.element, "Find similar").click();
  assert.deepEqual(vector.did, [["similar", 4, 0]]);
  const bytes = peek("binary");
  bytes.open(4, 0);
  await bytes.ctx.kernel.last("cell").answer({ text: "00", bytes: true });
  const png = { kind: "image", mime: "image/png", label: "PNG", size: 3 };
  await bytes.ctx.kernel.last("rows.media").answer(png, [new ArrayBuffer(3)]);
  await settled();
  assert.equal(shown(bytes.element), "words|row 4|[Copy]|[×]|PNG · 3 B");
  const revoked = mock.method(URL, "revokeObjectURL", () => {});
  bytes.ctx.close();
  assert.equal(revoked.mock.callCount(), 1);
  mock.restoreAll();
});

const PAIR = { a: { branch: null, version: 1 }, b: { branch: "b", version: 2 }, key: ["id"] };
const ROW = {
  kind: "~",
  label: "b:2",
  branch: "b",
  version: 2,
  row_id: 9,
  fragment: 3,
  offset: 40,
  position: 17,
  hidden: 1,
  nodes: [leaf("id", "7"), leaf("n", "2")],
  old: [null, leaf("n", "1")],
};

async function change(level, { answer, place = null, cells = [], type }) {
  const ctx = fakeContext();
  const done = changeDetail(ctx, { level, pair: PAIR, kinds: ["~"], row: 5, place, cells });
  if (type) {
    const asked = ctx.kernel.last(type);
    if (answer instanceof Error) await asked.fail(answer);
    else await asked.answer(answer);
  }
  await done;
  return { ctx, ...last(ctx) };
}

test("a changed row has both values of what changed", async () => {
  const { ctx, title, content } = await change("rows", { type: "changes.row", answer: ROW });
  assert.deepEqual(ctx.kernel.last("changes.row").args, { ...PAIR, kinds: ["~"], row: 5 });
  assert.equal(title, "Row");
  assert.equal(
    shown(content),
    "~|changed|b:2 · row id 9 · fragment 3, offset 40" +
      "|[Row history]{Show what happened to this row, version by version}|[Open in Rows]" +
      "|n|int64|1{was}|2{is}|unchanged|1|id|int64|7|and 1 more column",
  );
  assert.equal(content.querySelector("details.lnb-section").hasAttribute("open"), false);
  button(content, "Open in Rows").click();
  assert.deepEqual(ctx.went, [["rows", { row: 17 }]]);
  button(content, "Row history").click();
  assert.deepEqual(ctx.kernel.last("biography.steps").args, {
    branch: "b",
    version: 2,
    fragment: 3,
    offset: 40,
    key: ["id"],
    upto: 1,
  });
});

test("a removed row is opened where it still is", async () => {
  const answer = { ...ROW, kind: "-", row_id: null, old: [null, null], hidden: 0 };
  const { ctx, content } = await change("rows", { type: "changes.row", answer });
  assert.match(shown(content), /^−\|removed\|b:2 · fragment 3, offset 40\|/);
  assert.match(shown(content), /\[Open in Rows\]\|id\|int64\|7\|n\|int64\|2$/);
  button(content, "Open in Rows").click();
  assert.deepEqual(ctx.went, [["rows", { filter: "_rowaddr = 12884901928" }]]);
  assert.deepEqual(ctx.travels, [{ branch: "b", version: 2 }]);
  const none = await change("rows", {
    type: "changes.row",
    answer: { ...answer, position: null },
  });
  assert.equal(button(none.content, "Open in Rows"), undefined);
});

test("other changes: transactions, fragments, settings, and what cannot be read", async () => {
  const place = { branch: null, version: 2 };
  const detail = {
    label: "main:2",
    time: "today",
    time_ms: null,
    operation: "Append",
    description: "",
    message: "why",
    counts: [{ label: "rows", value: "3" }],
    properties: [],
    transaction: [{ label: "uuid", value: "u" }],
    schema: { lines: [], hidden: 0, columns: 0 },
  };
  const transaction = await change("transactions", { type: "detail", answer: detail, place });
  assert.deepEqual(transaction.ctx.kernel.last("detail").args, place);
  assert.equal(transaction.title, "Transaction");
  assert.match(
    shown(transaction.content),
    /^\+\|Rows added\|Append\|main:2\|why\|\[Go to main:2\]\|today/,
  );
  button(transaction.content, "Go to").click();
  assert.deepEqual(transaction.ctx.travels, [place]);
  const cells = [
    { name: "id", text: "4", look: "number" },
    { name: "rows", text: "2", look: "number", old: { text: "1" } },
    { name: "path", text: "", look: "text" },
    { name: "none", text: "null", look: "null" },
  ];
  const files = [
    { kind: "+", columns: "a, b", size: "1 KB", format: "2.0", path: "data/x" },
    { kind: "-", columns: "", size: "2 KB", format: "2.0", path: "data/y" },
  ];
  const fragment = await change("fragments", {
    type: "changes.files",
    answer: { files },
    place: { fragment: 4 },
    cells,
  });
  assert.equal(fragment.title, "Fragment 4");
  assert.equal(
    shown(fragment.content),
    "rows|1|→|2|[Open in Storage]|Files|2|+{added}|a, b|1 KB · format 2.0|data/x" +
      "|−{removed}|no columns left|2 KB · format 2.0|data/y",
  );
  button(fragment.content, "Open in Storage").click();
  assert.deepEqual(fragment.ctx.went, [["storage", { fragment: 4 }]]);
  const deletions = await change("deletions", { place: { fragment: 6 }, cells });
  assert.equal(deletions.title, "Fragment 6");
  assert.equal(shown(deletions.content), "rows|1|→|2|[Open in Storage]");
  const settings = await change("config", { cells });
  assert.equal(settings.title, "4");
  assert.equal(shown(settings.content), "id|4|rows|1|→|2");
  const failed = await change("rows", { type: "changes.row", answer: new Error("lost") });
  assert.equal(shown(failed.content), "problem: lost");
});

const STEP = {
  event: "updated",
  operation: "Update",
  branch: null,
  version: 6,
  label: "main:6",
  time: "then",
  time_ms: null,
  fragment: 1,
  offset: 2000,
  message: "",
  hidden: 0,
  changes: true,
  cells: [],
};

test("the life of a row is read step by step", async () => {
  const ctx = fakeContext();
  openBiography(ctx, { branch: null, version: 7, fragment: 1, offset: 2, key: null });
  const { title, content, focus } = last(ctx);
  assert.equal(title, "Biography of a row");
  assert.equal(focus, true);
  const status = () => shown(content.querySelector(".lnb-bio-status"));
  assert.equal(status(), "Reading…|[Stop]");
  const steps = (count) =>
    Array.from({ length: count }, (_one, at) => ({ ...STEP, version: 50 - at }));
  const answer = (count, whole = false) =>
    ctx.kernel
      .last("biography.steps")
      .answer({ label: "row id", followed: "why", steps: steps(count), whole });
  assert.equal(ctx.kernel.last("biography.steps").args.upto, 1);
  await answer(1);
  assert.equal(ctx.kernel.last("biography.steps").args.upto, 3);
  assert.equal(status(), "1 step, reading older steps…|[Stop]");
  await answer(3);
  assert.equal(ctx.kernel.last("biography.steps").args.upto, 7);
  await answer(7);
  assert.equal(ctx.kernel.last("biography.steps").args.upto, 12);
  await answer(12);
  assert.equal(status(), "12 steps|so far|[Older steps]");
  assert.equal(content.querySelectorAll("li").length, 12);
  button(content, "Older steps").click();
  assert.equal(ctx.kernel.last("biography.steps").args.upto, 24);
  button(content, "Stop").click();
  assert.equal(ctx.kernel.cancelled, 1);
  await ctx.kernel.last("biography.steps").fail({ kind: "CancelledError", message: "" });
  assert.equal(status(), "Stopped after 12 steps|[Continue]");
  button(content, "Continue").click();
  await answer(13, true);
  assert.equal(status(), "13 steps, the complete history");
  assert.match(shown(content.querySelector(".lnb-bio-by")), /^followed by\|row id\|.*why/);
  assert.equal(content.querySelectorAll("li").length, 13);
});

test("steps of a life say what happened, where, and to which values", async () => {
  const ctx = fakeContext();
  openBiography(ctx, { find: { version: 7, row: 3 } });
  await ctx.kernel.last("biography.find").answer({ fragment: 1, offset: 2 });
  const { content } = last(ctx);
  const steps = [
    {
      ...STEP,
      cells: [
        ["n", "1", "2"],
        ["m", null, "4"],
      ],
      hidden: 2,
      message: "why",
    },
    { ...STEP, event: "created", operation: "Append", changes: false, cells: [["n", null, "1"]] },
    { ...STEP, event: "other", operation: "", time_ms: Date.now() - 7200000 },
  ];
  await ctx.kernel
    .last("biography.steps")
    .answer({ label: "a key", followed: "", steps, whole: true });
  assert.deepEqual([...content.querySelectorAll("li")].map(shown), [
    "~|updated|[main:6]{go to this version}|~ Rows changed (Update) ·|then" +
      "|· fragment 1, offset 2,000|why" +
      "|n|1|→|2|m|4|and 2 more columns",
    "+|created|[main:6]{go to this version}|+ Rows added (Append) ·|then" +
      "|· fragment 1, offset 2,000" +
      "|its values|n|1",
    "•|other|[main:6]{go to this version}|operation not recorded ·|2 hours ago" +
      "|· fragment 1, offset 2,000",
  ]);
  button(content, "main:6").click();
  assert.deepEqual(ctx.travels, [{ branch: null, version: 6 }]);
  const lost = openBiography(ctx, { find: { version: 7 } });
  await ctx.kernel.last("biography.find").fail({ message: "no such row" });
  await lost;
  assert.equal(shown(last(ctx).content), "problem: no such row");
  biographyButton(ctx, { version: 1, fragment: 0, offset: 0 }).click();
  await ctx.kernel.last("biography.steps").fail({ message: "unreadable" });
  assert.match(shown(last(ctx).content), /problem: unreadable$/);
});

const PROFILE = {
  column: 2,
  kind: "number",
  sampled: 10,
  nulls: 0.25,
  distinct: 3,
  low: "1",
  high: "9",
  bars: [10, 20],
  labels: ["a", ""],
  counts: [1500, 2],
  edges: [0, 10],
  wheres: ["n = 1", ""],
  exact: false,
  sample: "random",
  estimated: false,
  odd: [
    { kind: "null", label: "null", count: 2, height: 40 },
    { kind: "above", label: "more", count: 1, height: 20 },
  ],
  statistics: [
    ["mean", "4.5"],
    ["median", "5"],
  ],
};

function pane(profile = PROFILE, { waits = false, order = [] } = {}) {
  const ctx = fakeContext();
  const did = [];
  let arrive = null;
  columnPane(ctx, {
    at: 2,
    column: { name: "n", raw: "t.n", type: "int64" },
    profile,
    comes: (notify) => {
      arrive = notify;
      return waits;
    },
    args: () => ({ version: 3 }),
    order,
    sort: (wanted) => did.push(["sort", wanted]),
    brush: (where) => did.push(["brush", where]),
    learned: (found) => did.push(["learned", found]),
  });
  return { ctx, did, arrive: (found) => arrive(found), content: last(ctx).content };
}

test("a column has its values, bounds and orders in the pane", async () => {
  const { ctx, did, content } = pane();
  assert.equal(last(ctx).title, "n");
  assert.match(
    shown(content),
    /^int64\|.*<from: >\|to\|<to: >\|\[Filter\]\|\[a\]\{.* value\}\|1,500\|\(empty text\)/,
  );
  assert.match(
    shown(content),
    /\[null\].*\|2 · 20\.0 %\|.*more than.*\|1 · 10\.0 %\|\[Count every row\]\|\[Clear filter\]/,
  );
  assert.deepEqual(texts(content, "dt"), ["mean", "median"]);
  assert.deepEqual(texts(content, "dd"), ["4.5", "5"]);
  button(content, "a").click();
  await ctx.kernel.last("rows.range").answer({ where: "n = 1" });
  button(content, "null").click();
  assert.deepEqual(ctx.kernel.last("rows.range").args, {
    version: 3,
    column: 2,
    odd: "null",
    place: 10,
  });
  await ctx.kernel.last("rows.range").answer({ where: "n IS NULL" });
  const [from] = content.querySelectorAll("input");
  from.value = "2.5";
  button(content, "Filter").click();
  assert.deepEqual(ctx.kernel.last("rows.range").args, {
    version: 3,
    column: 2,
    low: 2.5,
    high: null,
    closed: true,
    ms: false,
  });
  await ctx.kernel.last("rows.range").fail({ message: "too far" });
  assert.match(shown(content), /too far/);
  button(content, "Clear").click();
  assert.deepEqual(did.at(-1), ["brush", null]);
  assert.ok(did.some(([, where]) => where === "n IS NULL"));
  const pressed = () =>
    [...content.querySelectorAll("[aria-pressed]")].map((one) => one.getAttribute("aria-pressed"));
  button(content, "descending").click();
  assert.deepEqual(did.at(-1), ["sort", [{ column: "t.n", ascending: false }]]);
  assert.deepEqual(pressed(), ["false", "true"]);
  button(content, "ascending").click();
  assert.deepEqual(did.at(-1), ["sort", [{ column: "t.n", ascending: true }]]);
  button(content, "ascending").click();
  assert.deepEqual(did.at(-1), ["sort", []]);
  assert.deepEqual(pressed(), ["false", "false"]);
});

test("every row of a column is counted when it is asked for", async () => {
  const { ctx, did, content } = pane();
  button(content, "Count every row").click();
  const asked = ctx.kernel.last("rows.exact");
  assert.deepEqual(asked.args, { version: 3, column: 2 });
  assert.match(shown(content), /\[Cancel\].*Counting every row…/);
  asked.options.progress(1, 3);
  assert.match(shown(content), /Counting every row… 33 %/);
  button(content, "Cancel").click();
  assert.equal(ctx.kernel.cancelled, 1);
  const exact = { ...PROFILE, exact: true };
  await asked.answer({ profile: exact });
  assert.deepEqual(did, [["learned", exact]]);
  assert.match(shown(content), /\[Count again\]/);
  button(content, "Count again").click();
  await ctx.kernel.last("rows.exact").fail({ message: "cancelled" });
  assert.match(shown(content), /cancelled/);
});

test("a profile that is on its way is painted when it comes", () => {
  const waiting = pane(null, { waits: true });
  assert.match(shown(waiting.content), /^int64\|Computing column statistics…\|\[Clear filter\]/);
  waiting.arrive({ ...PROFILE, kind: "time", nulls: 0, odd: [] });
  assert.match(shown(waiting.content), /<from: >/);
  assert.equal(waiting.content.querySelector("input").getAttribute("type"), "date");
  assert.doesNotMatch(shown(waiting.content), /\[null\]/);
  const none = pane(null);
  assert.match(shown(none.content), /There is no profile for values of this type\./);
  const sorted = pane(PROFILE, { order: [{ column: "t.n", ascending: false }] });
  assert.equal(button(sorted.content, "descending").getAttribute("aria-pressed"), "true");
});

const FRAGMENT = {
  id: 4,
  rows: 2000,
  deleted: 500,
  bytes: 4000,
  deletion_file: null,
  hidden_files: 1,
  files: [
    {
      path: "data/x.lance",
      name: "x.lance",
      columns: ["a", "b"],
      num_columns: 3,
      bytes: 3000,
      written: "version 2",
      file_version: "2.0",
      tombstoned: 1,
      dropped: 2,
    },
    {
      path: "data/y.lance",
      name: "y.lance",
      columns: [],
      num_columns: 0,
      bytes: null,
      written: "version 3",
      file_version: "2.1",
      tombstoned: 0,
      dropped: 0,
    },
  ],
  indices: [
    { name: "by id", covered: true },
    { name: "by n", covered: false },
  ],
};
const PAGES = {
  hidden: 2,
  columns: [
    {
      name: "a",
      pages: 1200,
      bytes: 1000,
      plain: 2500,
      encodings: [
        { pages: 2, encoding: "flat" },
        { pages: 1, encoding: "rle" },
      ],
    },
    { name: "b", pages: 1, bytes: 10, plain: 0, encodings: [{ pages: 1, encoding: "flat" }] },
  ],
};

test("a fragment has its files, what was lost of them, and indices", async () => {
  const ctx = fakeContext();
  const place = { branch: null, version: 3 };
  const element = fragmentDetail(ctx, place, FRAGMENT);
  assert.equal(
    shown(element),
    "rows|1,500 of 2,000 stored|deleted|500 · 25.0 %|size|4.0 KB|bytes per row|2 B|Files|3" +
      "|a, b|, and 1 more|[Pages]|3.0 KB · written by version 2 · format 2.0{x.lance}" +
      "|† 1 column replaced since, 2 fields dropped: these bytes are no longer read" +
      "|no columns left|[Pages]|size unknown · written by version 3 · format 2.1{y.lance}" +
      "|and 1 more file|Indices|✓ by id|covered|– by n|not covered",
  );
  const bare = { ...FRAGMENT, bytes: null, deleted: 0, indices: [], files: [], hidden_files: 0 };
  assert.equal(
    shown(fragmentDetail(ctx, place, bare)),
    "rows|2,000 of 2,000 stored|deleted|none|size|unknown|bytes per row|–|Files|0",
  );
  const deletion_file = { kind: "bitmap", version: 2 };
  assert.match(
    shown(fragmentDetail(ctx, place, { ...bare, deletion_file })),
    /\|Deleted rows\|bitmap file, based on version 2\|/,
  );
  const [toggle] = element.querySelectorAll("button");
  toggle.click();
  assert.equal(toggle.getAttribute("aria-expanded"), "true");
  assert.match(shown(element), /Reading the file's metadata…/);
  const asked = ctx.kernel.last("storage.pages");
  assert.deepEqual(asked.args, { ...place, path: "data/x.lance" });
  await asked.answer(PAGES);
  assert.match(shown(element), /layout and codecs\|a\|1,200/);
  toggle.click();
  assert.equal(toggle.getAttribute("aria-expanded"), "false");
  assert.doesNotMatch(shown(element), /1,200/);
  toggle.click();
  assert.match(shown(element), /1,200/);
  assert.equal(ctx.kernel.count("storage.pages"), 1);
  element.querySelectorAll("button")[1].click();
  await ctx.kernel.last("storage.pages").fail({ message: "damaged" });
  assert.match(shown(element), /problem: damaged/);
});

test("pages of a file by column", () => {
  assert.equal(
    shown(pageTable(PAGES)),
    "column|pages|bytes|ratio|layout and codecs" +
      "|a|1,200|1.0 KB|2.5×{2.5 KB without compression}|2× flat|1× rle" +
      "|b|1|10 B|–{The ratio is not known for this type}|flat|and 2 more columns",
  );
});

function actions() {
  const ctx = fakeContext();
  const did = [];
  const columns = [
    { name: "n", raw: "t.n", type: "int64", look: "number" },
    { name: "v", raw: "v", type: "list", look: "vector" },
  ];
  const grid = {
    state: { row: 5, column: 0, numRows: 250_000 },
    store: { column: (at) => columns[at] },
    profiles: { of: () => PROFILE, comes: () => false, learn: () => {}, crossed: () => ({}) },
    bar: () => ({
      fail: (error) => did.push(["fail", error.message]),
      brush: (...what) => did.push(["brush", ...what]),
      focus: () => did.push(["focus"]),
      search: { focus: () => did.push(["focus search"]) },
      settle: () => did.push(["settle"]),
    }),
    criteria: { order: null, near: null, filter: null, system: false },
    selected: 0,
  };
  ctx.rows = {
    criteria: grid.criteria,
    wanted: grid.criteria,
    query: { filter: "f" },
    numFound: 0,
    selection: {
      get rows() {
        return grid.selected;
      },
      wanted: () => ({ ranges: [[0, 2]] }),
      all: (most) => did.push(["all", most]),
    },
    look: (wanted) => did.push(["look", wanted]),
  };
  return { ctx, did, grid, act: new GridActions(ctx, grid) };
}

test("letters sort by the column: ascending, descending, as stored", () => {
  const { did, grid, act } = actions();
  act.letters.s();
  assert.deepEqual(did.pop(), [
    "look",
    { near: null, order: [{ column: "t.n", ascending: true }] },
  ]);
  grid.criteria.order = [{ column: "t.n", ascending: true }];
  act.letters.s();
  assert.deepEqual(did.pop(), [
    "look",
    { near: null, order: [{ column: "t.n", ascending: false }] },
  ]);
  grid.criteria.order = [{ column: "t.n", ascending: false }];
  act.letters.s();
  assert.deepEqual(did.pop(), ["look", { near: null, order: null }]);
  grid.store.column = () => undefined; // its page is on its way
  act.letters.s();
  assert.deepEqual(did.pop(), ["look", { near: null, order: null }]);
  grid.state.column = 1;
  act.letters.s();
  assert.deepEqual(did, []);
});

test("bars that a brush moves over are asked for, and only the last ones are used", async () => {
  const { ctx, did, grid, act } = actions();
  const pressed = act.histogram(0);
  grid.store.column = () => undefined; // other rows are on their way
  assert.equal(act.histogram(0), null);
  act.brush(pressed, 1, 2, true);
  const first = ctx.kernel.last("rows.range");
  act.brush(pressed, 1, 3);
  const second = ctx.kernel.last("rows.range");
  await second.answer({ where: "n < 3" });
  await first.answer({ where: "n < 2" });
  assert.deepEqual(did, [["brush", "t.n", "n < 3", { bars: [1, 3], moves: false }]]);
  act.brush(pressed, -1, -1, true);
  assert.deepEqual(did.pop(), ["settle"]);
  act.brush(pressed, 1, 1); // a value that is no condition
  await ctx.kernel.last("rows.range").answer({ where: "" });
  assert.deepEqual(did.pop(), ["settle"]);
  act.brush(pressed, 1, 2, true);
  act.brushOdd(pressed, { kind: "null" });
  const [moves, odd] = ctx.kernel.asked.filter((one) => one.type === "rows.range").slice(-2);
  await odd.answer({ where: "n IS NULL" });
  await moves.answer({ where: "n < 2" }); // late
  assert.deepEqual(did.pop(), ["brush", "t.n", "n IS NULL"]);
});

test("rows are exported under a name that follows what they are", async () => {
  const ctx = fakeContext({ version: 7, card: { name: "my photos.lance" } });
  ctx.range = { get: () => ({ a: { branch: null, version: 5 }, b: { branch: null, version: 7 } }) };
  Object.assign(ctx.rows.query, { filter: "id > 1", arranged: "p1" });
  ctx.rows.selection.select(2);
  exportPane(ctx);
  const { content } = ctx.details.at(-1);
  const [what, format] = content.querySelectorAll("select");
  const name = content.querySelector("input");
  assert.deepEqual(texts(what, "option"), [
    "1 selected row",
    "all that the grid shows, 0 rows",
    "what changed from main:5",
  ]);
  const choose = (select, value) => {
    Object.defineProperty(select, "value", { value, configurable: true });
    send(select, "change", {});
    return name.value;
  };
  Object.defineProperty(format, "value", { value: "parquet", configurable: true });
  assert.equal(choose(what, "selected"), "my-photos-7-selected.parquet");
  assert.equal(choose(what, "changes"), "my-photos-7-changes.parquet");
  assert.equal(choose(format, "csv"), "my-photos-7-changes.csv");
  name.value = "mine.csv";
  send(name, "input", {});
  assert.equal(choose(what, "selected"), "mine.csv");
  assert.equal(choose(format, "lance"), "mine.lance");
  button(content, "Export").click();
  const asked = ctx.kernel.last("rows.export");
  assert.deepEqual(
    [asked.args.what, asked.args.name, asked.args.filter, asked.args.ranges],
    ["selected", "mine.lance", "id > 1", [[2, 3]]],
  );
  asked.options.progress(3, 9);
  assert.match(shown(content), /Writing… 3 of 9 rows\|\[Cancel\]/);
  await asked.fail({ message: "mine.lance exists already" });
  assert.match(shown(content), /exists already/);
  choose(what, "changes");
  button(content, "Export").click();
  const again = ctx.kernel.last("rows.export");
  assert.deepEqual(again.args.a, { branch: null, version: 5 });
  const code = { python: "ds.export('mine.lance')" };
  await again.answer({ path: "/w/mine.lance", rows: 1200, bytes: 2048, code });
  assert.match(shown(content), /Written:\|1,200 rows, 2.0 KB\|\/w\/mine.lance.*ds.export/);
});

test("letters ask for a value, for similar rows, for the column and the keys", async () => {
  const { ctx, did, grid, act } = actions();
  const place = { branch: null, version: 3, filter: "f" };
  act.letters["="]();
  assert.deepEqual(ctx.kernel.last("rows.value").args, { ...place, row: 5, column: 0 });
  await ctx.kernel.last("rows.value").answer({ where: "n = 5" });
  assert.deepEqual(did.pop(), ["brush", "t.n", "n = 5"]);
  act.letters["="]();
  await ctx.kernel.last("rows.value").fail({ message: "too long" });
  assert.deepEqual(did.pop(), ["fail", "too long"]);
  grid.state.column = 1;
  act.letters.n();
  assert.deepEqual(ctx.kernel.last("rows.like").args, { ...place, row: 5, column: 1 });
  await ctx.kernel.last("rows.like").answer({ like: 9, row: "row 5", column: "v" });
  const near = { like: 9, k: 10, metric: "l2", row: "row 5", column: "v", at: 1 };
  assert.deepEqual(did.pop(), ["look", { order: null, within: null, near }]);
  assert.equal(ctx.details.at(-1), null);
  grid.criteria.near = near;
  grid.state.column = 0; // among neighbours their vector is followed: it stands one further
  act.letters.n();
  assert.equal(ctx.kernel.last("rows.like").args.column, 2);
  grid.criteria.near = null;
  const columnOf = grid.store.column;
  grid.store.column = () => ({ raw: "text", look: "text" });
  act.letters.n();
  const words = ctx.kernel.last("rows.words");
  assert.deepEqual(words.args, { ...place, row: 5, column: 0 });
  const search = { text: "rare words", columns: ["text"], any: true };
  await words.answer({ search });
  assert.deepEqual(did.pop(), ["look", { order: null, within: null, search }]);
  grid.store.column = columnOf;
  act.letters["/"]();
  assert.deepEqual(did.pop(), ["focus"]);
  act.letters.f();
  assert.deepEqual(did.pop(), ["focus search"]);
  act.letters["?"]();
  assert.equal(last(ctx).title, "Keys of the grid");
  assert.match(shown(last(ctx).content), /Enter\|whole value\|Shift\+Enter\|whole row/);
  act.letters.c();
  assert.equal(last(ctx).title, "n");
});

test("a selection or a cell is copied", async () => {
  const { ctx, grid, act } = actions();
  const copied = [];
  Object.defineProperty(globalThis, "navigator", {
    value: { clipboard: { writeText: async (text) => copied.push(text) } },
    configurable: true,
  });
  act.letters.copy();
  assert.deepEqual(ctx.kernel.last("cell").args, {
    branch: null,
    version: 3,
    filter: "f",
    row: 5,
    column: 0,
  });
  await ctx.kernel.last("cell").answer({ text: "7" });
  grid.selected = 2;
  act.letters.copy();
  assert.deepEqual(ctx.kernel.last("rows.text").args.ranges, [[0, 2]]);
  assert.equal(ctx.kernel.last("rows.text").args.form, "text");
  await ctx.kernel.last("rows.text").answer({ text: "7\t8", rows: 2, wanted: 2 });
  act.letters.copy();
  await ctx.kernel.last("rows.text").answer({ text: "x", rows: 2, wanted: 1000 });
  assert.deepEqual(copied, ["7", "7\t8", "x"]);
  assert.deepEqual(ctx.announced, ["Cell copied", "2 rows copied", "2 rows copied of 1000"]);
  assert.deepEqual(texts(document.body, "textarea"), []);
});

test("every row is selected, or as many as a selection has", () => {
  const { ctx, did, grid, act } = actions();
  act.letters.all();
  assert.deepEqual(did.pop(), ["all", 100_000]);
  assert.equal(ctx.announced.at(-1), "100,000 rows selected, the first of 250,000");
  grid.state.numRows = 7;
  act.letters.all();
  assert.equal(ctx.announced.at(-1), "7 rows selected");
});

test("a selection is copied as Markdown and as code", async () => {
  const { ctx, grid, act } = actions();
  grid.selected = 2;
  for (const form of ["markdown", "code"]) {
    act.copy(form);
    assert.equal(ctx.kernel.last("rows.text").args.form, form);
    await ctx.kernel.last("rows.text").fail({ message: form });
  }
});
