// What writes: forms of refs, their cards, the merge page, staged changes.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { writeGuard } from "../../lance_nb/explorer/js/write_guard.js";
import { MergePage } from "../../lance_nb/explorer/refs/merge_page.js";
import { placeText, refCard } from "../../lance_nb/explorer/refs/ref_card.js";
import { refForm } from "../../lance_nb/explorer/refs/ref_form.js";
import { isOpen, stageCard } from "../../lance_nb/explorer/stage/stage_card.js";
import { StageForm } from "../../lance_nb/explorer/stage/stage_form.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, send, shown } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
});

function tools(ctx) {
  const did = [];
  const note =
    (name) =>
    (...what) =>
      did.push([name, ...what.filter((one) => one?.type !== "click")]);
  const names = ["done", "close", "again", "show", "create", "merge", "review"];
  return { did, guard: writeGuard(ctx), ...Object.fromEntries(names.map((n) => [n, note(n)])) };
}

function form(of) {
  const ctx = fakeContext({ locked: false });
  const own = tools(ctx);
  const element = refForm(ctx, { kind: "tag", action: "create", at: "main:3", ...of }, own);
  document.body.append(element);
  return { ctx, element, ...own };
}

const CHECKED = {
  reason: "",
  problem: "",
  consequences: [
    { level: "ok", text: "free" },
    { level: "warn", text: "note it" },
  ],
  place: { branch: null, version: 3, label: "main:3" },
  code: { python: "ds.tags.create()" },
};

test("a new tag is checked while it is typed, then written", async () => {
  const { ctx, element, did } = form({});
  const check = ctx.kernel.last("refs.check");
  assert.deepEqual(check.args, { kind: "tag", action: "create", name: "", at: "main:3" });
  const [name, note] = element.querySelectorAll(":scope > .lnb-rf-fields > input");
  assert.equal(
    shown(element),
    "New tag|<name of the tag: >|at|<version: main:3>|<note: >|(Create it at …)|[Cancel]",
  );
  check.answer(CHECKED); // without a name it cannot be made
  assert.match(shown(element), /\|✓\|free\|!\|note it\|\(Create it at main:3\)\|\[Cancel\]$/);
  assert.deepEqual(ctx.codes, [CHECKED.code]);
  name.value = " v1 ";
  send(name, "input");
  assert.equal(ctx.kernel.last("refs.check").args.name, "v1");
  ctx.kernel.last("refs.check").answer({ ...CHECKED, code: null });
  assert.equal(ctx.codes.length, 1);
  note.value = "first";
  button(element, "Create it").click();
  const create = ctx.kernel.last("refs.create");
  const args = { kind: "tag", name: "v1", branch: null, version: 3, note: "first" };
  assert.deepEqual(create.args, args);
  await create.answer({ made: 1 });
  assert.deepEqual(did, [["close"], ["done", { made: 1 }]]);
});

test("what stops a ref from being written is said", async () => {
  const { ctx, element, did } = form({});
  const [name] = element.querySelectorAll("input");
  name.value = "v1";
  const answer = (change) => {
    send(name, "input");
    ctx.kernel.last("refs.check").answer({ ...CHECKED, ...change });
    return shown(element).split("<note: >|")[1];
  };
  assert.equal(
    answer({ reason: "taken" }),
    "taken|✓|free|!|note it|(Create it at main:3)|[Cancel]",
  );
  assert.equal(name.getAttribute("aria-invalid"), "true");
  assert.equal(
    answer({ problem: "no such version", place: null }),
    "no such version|(Create it at …)|[Cancel]",
  );
  assert.equal(name.getAttribute("aria-invalid"), "false");
  const version = element.querySelector(".lnb-ref-box input");
  assert.equal(version.getAttribute("aria-invalid"), "true");
  assert.equal(
    answer({ consequences: [{ level: "stop", text: "never" }] }),
    "✕|never|(Create it at main:3)|[Cancel]",
  );
  assert.equal(answer({ consequences: [] }), "[Create it at main:3]|[Cancel]");
  button(element, "Create it").click();
  await ctx.kernel.last("refs.create").fail({ message: "somebody was faster" });
  assert.match(shown(element), /problem: somebody was faster\|\[Refresh\]/);
  button(element, "Refresh").click();
  button(element, "Cancel").click();
  assert.deepEqual(did, [["again"], ["close"]]);
  send(name, "input");
  ctx.kernel.last("refs.check").fail({ message: "no kernel" });
  assert.match(shown(element), /problem: no kernel/);
});

test("a tag is moved to another version", async () => {
  const { ctx, element, did } = form({ action: "move", name: "v1", seen: "s", at: "2" });
  assert.equal(shown(element), "Move tag v1|to|<version: 2>|(Move it to …)|[Cancel]");
  assert.deepEqual(ctx.kernel.last("refs.check").args, {
    kind: "tag",
    action: "move",
    name: "v1",
    at: "2",
  });
  ctx.kernel.last("refs.check").answer(CHECKED);
  button(element, "Move it to main:3").click();
  const args = { name: "v1", branch: null, version: 3, seen: "s" };
  assert.deepEqual(ctx.kernel.last("refs.move").args, args);
  await ctx.kernel.last("refs.move").answer({});
  assert.deepEqual(did, [["close"], ["done", {}]]);
});

const REF = {
  kind: "branch",
  name: "dev",
  label: "dev",
  note: "a note",
  seen: "s",
  place: { branch: "dev", version: 5, label: "dev:5" },
  fork: { branch: null, version: 3, label: "main:3" },
  facts: [{ label: "rows", value: "7" }],
  metadata: [{ label: "key", value: "v" }],
  tags: { lines: [{ name: "v1", label: "v1", place: { label: "dev:4" } }], hidden: 2 },
  children: { lines: [], hidden: 0 },
};

function card(model) {
  const ctx = fakeContext({ locked: false });
  const own = tools(ctx);
  const element = refCard(ctx, { ...REF, ...model }, own);
  document.body.append(element);
  return { ctx, element, ...own };
}

test("a branch has its facts, its tags and what can be done with it", () => {
  const { ctx, element, did } = card({});
  assert.equal(
    shown(element),
    "a note|rows|7|[Go to it]|[Compare with fork]{what changed from main:3 to dev:5}|[Merge…]" +
      "|[Review…]{what it changes, checks, and the discussion}|[New tag…]|[New branch…]" +
      "|[Note…]|[Delete…]|Metadata|key|v|Tags on it|[v1]|dev:4|and 2 more",
  );
  for (const words of ["Go to it", "Compare", "Merge", "Review", "New tag", "New branch", "v1"])
    button(element, words).click();
  assert.deepEqual(ctx.travels, [{ branch: "dev", version: 5 }]);
  const pair = { a: { branch: null, version: 3 }, b: { branch: "dev", version: 5 } };
  assert.deepEqual(ctx.went, [["changes", pair]]);
  assert.deepEqual(did, [
    ["merge", { source: "dev", into: "main" }],
    ["review", { branch: "dev", into: null }],
    ["create", "tag", "dev:5"],
    ["create", "branch", "dev:5"],
    ["show", "tag", "v1"],
  ]);
  const main = card({ name: null, label: "main", note: "", fork: null, metadata: [] });
  assert.equal(
    shown(main.element),
    "rows|7|[Go to it]|[Merge…]|[New tag…]|[New branch…]|Tags on it|[v1]|dev:4|and 2 more",
  );
  button(main.element, "Merge").click();
  assert.deepEqual(main.did, [["merge", { into: "main" }]]);
  assert.equal(placeText({ branch: null, version: 2 }), "main:2");
});

test("a tag is moved, noted and deleted from its card", async () => {
  const { ctx, element, did } = card({ kind: "tag", name: "v1", label: "v1", fork: null });
  assert.match(shown(element), /\[New branch…\]\|\[Move…\]\|\[Note…\]\|\[Delete…\]\|Metadata/);
  assert.match(shown(element), /Other tags there/);
  button(element, "Move").click();
  assert.match(shown(element), /Move tag v1\|to\|<version: main:3>/);
  button(element, "Cancel").click();
  assert.doesNotMatch(shown(element), /Move tag/);
  button(element, "Note").click();
  const note = element.querySelector(".lnb-rf-note");
  assert.equal(note.getAttribute("value"), "a note");
  note.value = "new";
  button(element, "Save").click();
  const args = { kind: "tag", name: "v1", note: "new", before: "a note" };
  assert.deepEqual(ctx.kernel.last("refs.note").args, args);
  await ctx.kernel.last("refs.note").answer({ n: 1 });
  assert.deepEqual(did.splice(0), [
    ["done", { n: 1 }],
    ["show", "tag", "v1"],
  ]);
  button(element, "Save").click();
  await ctx.kernel.last("refs.note").fail({ message: "changed since" });
  assert.match(shown(element), /problem: changed since\|\[Refresh\]/);
  button(element, "Refresh").click();
  assert.deepEqual(did.splice(0), [["show", "tag", "v1"]]);
  button(element, "Delete").click();
  assert.match(shown(element), /Checking what depends on it…\|\[Cancel\]/);
  assert.deepEqual(ctx.kernel.last("refs.explain").args, { kind: "tag", name: "v1" });
  await ctx.kernel.last("refs.explain").answer({
    code: { python: "del" },
    consequences: [{ level: "warn", text: "unprotected" }],
    seen: "known",
    refused: false,
    button: "Delete tag v1",
    typed: "",
  });
  await settled();
  assert.deepEqual(ctx.codes, [{ python: "del" }]);
  assert.match(
    shown(element),
    /Delete tag v1\?\|!\|unprotected\|\[Delete tag v1\]\|\[How many bytes\?\]\|\[Keep it\]/,
  );
  button(element, "How many bytes").click();
  assert.deepEqual(ctx.kernel.last("refs.bytes").args, { name: "v1" });
  ctx.kernel.last("refs.bytes").options.progress(1, 2);
  assert.match(shown(element), /Counting… 1 of 2 manifests/);
  await ctx.kernel.last("refs.bytes").answer({ words: "3 MB" });
  await settled();
  assert.match(shown(element), /\|3 MB\|\[Delete tag v1\]/);
  button(element, "Delete tag v1").click();
  const asked = { kind: "tag", name: "v1", seen: "known", typed: "" };
  assert.deepEqual(ctx.kernel.last("refs.delete").args, asked);
  await ctx.kernel.last("refs.delete").answer({ deleted: 1 });
  await settled();
  assert.deepEqual(did, [["done", { deleted: 1 }]]);
  assert.equal(ctx.details.at(-1), null);
});

test("a branch that is needed is not deleted", async () => {
  const { ctx, element, did } = card({});
  button(element, "Delete").click();
  await ctx.kernel.last("refs.explain").answer({
    consequences: [], seen: "", refused: true, button: "Delete branch dev", typed: "dev",
  }); // biome-ignore format: one answer
  await settled();
  assert.match(shown(element), /Delete branch dev\?\|\(Delete branch dev\)\|\[Keep it\]/);
  button(element, "Keep it").click();
  assert.doesNotMatch(shown(element), /Delete branch/);
  button(element, "Delete").click();
  await ctx.kernel.last("refs.explain").fail({ message: "lost" });
  await settled();
  assert.match(shown(element), /problem: lost\|\[Refresh\]/);
  button(element, "Refresh").click();
  assert.equal(ctx.kernel.count("refs.explain"), 3);
  assert.deepEqual(did, []);
});

test("a branch of many versions is deleted only with its name", async () => {
  const { ctx, element } = card({});
  button(element, "Delete").click();
  await ctx.kernel.last("refs.explain").answer({
    consequences: [], seen: "id", refused: false, typed: "dev",
    button: "Delete branch dev with 12 versions",
  }); // biome-ignore format: one answer
  await settled();
  const act = () => button(element, "Delete branch dev");
  const box = element.querySelector(".lnb-cc-input");
  assert.equal(box.getAttribute("aria-label"), "type dev to confirm");
  assert.equal(act().disabled, true);
  box.value = "de";
  send(box, "input");
  assert.equal(act().disabled, true);
  box.value = "dev";
  send(box, "input");
  assert.equal(act().disabled, false);
  act().click();
  assert.equal(ctx.kernel.last("refs.delete").args.typed, "dev");
});

const PLAN = {
  plan: 7,
  kind: "merge",
  title: "dev into main",
  words: "merge",
  strategy: "replay",
  base: { label: "main:3" },
  source: { label: "dev:5" },
  target: { label: "main:7", branch: null },
  unresolved: 0,
  code: { python: "ds.merge()" },
  rows: [10, 12],
  columns: ["n"],
  operation: "Update",
  fragments: { new: 1, changed: 2, dropped: 0, lines: [], hidden: 0 },
  conflicts: [],
  hidden_conflicts: 0,
  grid: { source: [], target: [], cells: [], verdicts: [], hidden_source: 0, hidden_target: 0 },
  sample: { columns: [], rows: [] },
  notes: ["a note"],
  message: "Merge dev:5 into main",
  refusal: "",
  offers: [],
  cells: null,
};

function merging() {
  const ctx = fakeContext({ locked: false });
  const own = tools(ctx);
  const page = new MergePage(ctx, own);
  document.body.append(page.element);
  return { ctx, page, element: page.element, ...own };
}

test("a merge is shown before it is made", async () => {
  const { ctx, page, element, did } = merging();
  assert.equal(element.hidden, true);
  page.open({ source: "dev" });
  assert.equal(element.hidden, false);
  assert.equal(document.lastFocused, element);
  const head =
    "[← Branches and tags]|[Merge]|[Cherry-pick]|[Revert]" +
    "|merge|<source: dev>|into|<target branch: main>|[Preview]";
  assert.ok(shown(element).startsWith(head));
  assert.deepEqual(ctx.kernel.last("refs.plan").args, {
    kind: "merge",
    source: "dev",
    into: "main",
    strategy: "auto",
    on_conflict: "fail",
    key: "",
    copy: false,
    choices: null,
  });
  assert.match(shown(element), /Reading the changes of both sides…/);
  await ctx.kernel.last("refs.plan").answer(PLAN);
  await settled();
  assert.deepEqual(ctx.codes, [PLAN.code]);
  assert.deepEqual(ctx.announced, ["merge"]);
  assert.match(
    shown(element),
    /3\|rows 10 → 12 \(\+2\) · fragments: 1 new, 2 changed · .* \(Update\)\|columns: n\|/,
  );
  const message = element.querySelector(".lnb-mp-acts input");
  assert.equal(message.value, "Merge dev:5 into main");
  message.value = "why";
  button(element, "Merge into").click();
  assert.deepEqual(ctx.kernel.last("refs.merge").args, { plan: 7, message: "why" });
  await ctx.kernel.last("refs.merge").answer({ version: 8 });
  await settled();
  assert.deepEqual(did, [["close"], ["done", { version: 8 }, { travel: true }]]);
});

test("conflicts are listed, and have to be decided", async () => {
  const { ctx, page, element } = merging();
  page.open({ source: "dev", into: "main" });
  const sample = {
    columns: ["id", "n"],
    rows: [
      { base: ["1", "2"], source: ["1", "3"], target: null },
      { base: null, source: ["4", null], target: ["4", "5"] },
    ],
  };
  await ctx.kernel.last("refs.plan").answer({
    ...PLAN,
    unresolved: 2,
    rows: [12, 10],
    sample,
    operation: "",
    columns: [],
    fragments: {
      new: 0,
      changed: 0,
      dropped: 0,
      hidden: 1200,
      lines: [
        { change: "new", id: 5, before: 0, after: 1000 },
        { change: "dropped", id: 4, before: 7, after: 1 },
      ],
    },
    conflicts: [
      { kind: "rows", text: "2 rows", resolution: null, remedy: "Choose a side" },
      { kind: "column", text: "n", resolution: "ours" },
      { kind: "config", text: "k", resolution: "theirs" },
    ],
    hidden_conflicts: 4,
  });
  await settled();
  assert.deepEqual(ctx.announced, ["2 conflicts"]);
  const text = shown(element);
  const figures =
    "rows 12 → 10 (−2) · fragments: none touched|resulting fragments|+|fragment 5: 0 → 1,000 rows" +
    "|−|fragment 4: 7 → 1 row|and 1,200 more|";
  assert.ok(text.includes(figures));
  assert.match(text, /Rows in conflict are not counted\./);
  const conflicts =
    "✕|rows|2 rows.|Choose a side.|!|column|n.|The target's is kept." +
    "|!|config|k.|The source's is taken.|and 4 more";
  assert.ok(text.includes(conflicts));
  const rows = "id|n|main:3|1|2|dev:5|1|3|main:7|deleted|main:3|absent|dev:5|4|null|main:7|4|5";
  assert.ok(text.includes(rows));
  assert.deepEqual(
    [...element.querySelectorAll(".lnb-mp-cell")].map((cell) => cell.textContent),
    ["3"],
  );
  assert.match(text, /\(Merge into main\)\|2 conflicts to decide first$/);
});

test("a refused merge offers what helps", async () => {
  const { ctx, page, element } = merging();
  page.open({ source: "dev", into: "main" });
  await ctx.kernel.last("refs.plan").answer({
    ...PLAN,
    unresolved: 1,
    refusal: "main has new versions",
    conflicts: [{ kind: "rows", text: "1 row", resolution: null, remedy: "Choose columns" }],
    offers: [{ label: "Match rows by id", set: { key: "id" } }],
  });
  await settled();
  assert.match(shown(element), /\|main has new versions\.\|/);
  button(element, "Match rows by id").click();
  assert.equal(ctx.kernel.last("refs.plan").args.key, "id");
  await ctx.kernel.last("refs.plan").answer({
    ...PLAN,
    offers: [{ label: "Take all of dev", set: { on_conflict: "theirs" } }],
  });
  await settled();
  button(element, "Take all of dev").click();
  assert.equal(ctx.kernel.last("refs.plan").args.on_conflict, "theirs");
});

const CELLS = {
  total: 1, rows: 1, deleted_rows: 0, open: 1, key: "id", hidden: 0,
  columns: [{ name: "v", label: "v", type: "int64", count: 1 }],
}; // biome-ignore format: one table
const LINE = {
  row: "5", label: "5", column: "v", name: "v", base: { text: "0" }, ours: { text: "9" },
  theirs: { text: "7" }, take: null, value: null,
}; // biome-ignore format: one line

test("cells are chosen while the rest of the preview is planned again", async () => {
  const { ctx, page, element } = merging();
  page.open({ source: "dev", into: "main" });
  const rows = { kind: "rows", text: "1 row", resolution: null, remedy: "", num_rows: 1 };
  const setting = { ...rows, kind: "settings", text: "key k" };
  await ctx.kernel
    .last("refs.plan")
    .answer({ ...PLAN, unresolved: 1, conflicts: [rows, setting], cells: CELLS });
  await settled();
  assert.match(shown(element), /settings\|key k/);
  assert.doesNotMatch(shown(element), /rows\|1 row/, "rows stand in the table of cells");
  ctx.kernel.last("refs.cells").answer({ lines: [LINE] });
  assert.match(shown(element), /\(Merge into main\)\|1 row to choose first$/);
  const message = element.querySelector(".lnb-mp-acts input");
  message.value = "mine";
  button(element, "7").click();
  mock.timers.tick(300);
  const choices = [{ row: "5", column: "v", take: "theirs" }];
  assert.deepEqual(ctx.kernel.last("refs.plan").args.choices, choices);
  const table = element.querySelector(".lnb-ct-table");
  await ctx.kernel.last("refs.plan").answer({ ...PLAN, plan: 8, cells: { ...CELLS, open: 0 } });
  await settled();
  assert.equal(element.querySelector(".lnb-ct-table"), table, "the table stays");
  assert.equal(ctx.kernel.count("refs.cells"), 1);
  assert.equal(message.value, "mine", "what was typed stays");
  assert.equal(ctx.announced.at(-1), "every conflict is decided");
  button(element, "Merge into").click();
  assert.deepEqual(ctx.kernel.last("refs.merge").args, { plan: 8, message: "mine" });
});

test("what is shown belongs to what is asked", async () => {
  const { ctx, page, element } = merging();
  page.open({});
  assert.equal(ctx.kernel.count("refs.plan"), 0);
  assert.equal(document.lastFocused, element.querySelector("input"));
  const source = element.querySelector("input");
  source.value = "main:6";
  button(element, "Revert").click();
  assert.match(shown(element), /revert the change of\|<source: main:6>\|on\|/);
  assert.equal(element.querySelector('select[aria-label="strategy"]').hidden, true);
  send(element.querySelector("form"), "submit");
  assert.equal(ctx.kernel.last("refs.plan").args.kind, "revert");
  const before = ctx.kernel.last("refs.plan");
  button(element, "Cherry-pick").click();
  assert.match(shown(element), /apply the change of\|<source: main:6>\|to\|/);
  await before.answer(PLAN);
  await settled();
  assert.doesNotMatch(shown(element), /dev into main/);
  send(element.querySelector("form"), "submit");
  await ctx.kernel
    .last("refs.plan")
    .answer({ ...PLAN, kind: "cherry-pick", strategy: "up-to-date", target: { label: "b:2" } });
  await settled();
  assert.match(shown(element), /\|base main:3\|dev:5 has no change that b:2 lacks\.\|a note$/);
});

const CARD = {
  id: "c1",
  title: "delete n > 1",
  on: "main:3",
  state: "ready",
  lines: ["2 rows go"],
  facts: [{ label: "rows", value: "2" }],
  problem: null,
  where: { name: "local", reason: "small", size: "1 MB", tasks: 1, movable: false, asked: "auto" },
  samples: [
    { label: "gone", sign: "−", columns: [{ name: "n", type: "int64" }], rows: [["2"]], cut: 0 },
  ],
  fragments: [{ change: "changed", id: 4, before: 1000, after: 1 }],
  num_fragments: 1,
  meetings: [],
  has_rows: true,
  message: "",
  outcome: null,
};

function staged(change = {}, how = {}) {
  const did = [];
  const names = ["commit", "prepare", "rerun", "look", "remove", "earlier", "undo", "go"];
  const act = Object.fromEntries(
    names.map((name) => [
      name,
      (...what) => did.push([name, ...what.filter((one) => one?.type !== "click")]),
    ]),
  );
  const element = stageCard({ ...CARD, ...change }, { first: true, locked: false, ...how }, act);
  return { did, element };
}

test("a staged change says what it does, and is committed with a message", () => {
  const { did, element } = staged();
  assert.equal(
    shown(element),
    "delete n > 1|main:3|[×]{Discard the change and delete its files}".replace(
      "main:3",
      "main:3|ready",
    ) +
      "|2 rows go|rows|2|ran here: small|gone|sign|n{int64}|−|2" +
      "|1 changed fragment|~ fragment 4: 1,000 → 1 row" +
      "|✓ No other commits since main:3|<commit message: >|[Commit]",
  );
  element.querySelector(".lnb-sg-message").value = "why";
  button(element, "Commit").click();
  button(element, "×").click();
  assert.deepEqual(did, [["commit", "why"], ["remove"]]);
  assert.equal(send(element.querySelector(".lnb-sg-message"), "keydown").cancelBubble, true);
});

test("a change that is planned can be prepared, moved and done earlier", () => {
  const where = { ...CARD.where, tasks: 3, movable: true, reason: "large", name: "spark" };
  const { did, element } = staged({ state: "planned", where }, { first: false });
  assert.match(
    shown(element),
    /\|planned\|\[↑\]\{Commit this one earlier: .* the version numbers\}/,
  );
  assert.match(shown(element), /will run on Spark: large · 1 MB in 3 tasks\|<where it runs: /);
  assert.match(
    shown(element),
    /\[Prepare\]\{Run the work now and look at the result; nothing is committed\}\|\[Commit\]$/,
  );
  assert.doesNotMatch(shown(element), /No other commits/);
  button(element, "↑").click();
  button(element, "Prepare").click();
  const select = element.querySelector("select");
  select.value = "local";
  send(select, "change");
  assert.deepEqual(did, [["earlier"], ["prepare", null], ["prepare", "local"]]);
  const reason = { ...where, reason: "12 tasks" };
  assert.match(shown(staged({ where: reason }).element), /ran on Spark: 12 tasks\|</);
  const locked = staged({ state: "planned", where }, { first: false, locked: true });
  assert.match(shown(locked.element), /\(↑\).*\(×\).*\(Prepare\).*\(Commit\)/);
});

test("commits of others are listed with what they mean", () => {
  const meeting = {
    verdict: "rebasable",
    version: 4,
    operation: "Append",
    author: "",
    time: null,
    message: "",
    words: "fits",
    overlap: "",
    rows: [],
  };
  const other = {
    ...meeting,
    verdict: "incompatible",
    version: 5,
    author: "ann",
    time: Date.now() - 60000,
    message: "new",
    words: "the same rows",
    overlap: "2 rows",
    rows: [],
  };
  const fits = staged({ meetings: [meeting] });
  assert.match(
    shown(fits.element),
    /1 version by others since main:3:\|↷\|version 4: Rows added \(Append\)\|: fits\|/,
  );
  assert.match(shown(fits.element), /\[Re-run on the newest version\]\{.*\}\|\[Commit\]$/);
  assert.match(button(fits.element, "Commit").className, /lnb-sg-go/);
  const { did, element } = staged({ meetings: [meeting, other] });
  assert.match(
    shown(element),
    /2 versions .*✕\|version 5: Rows added .*\|by ann\|1 minute ago\|“new”\|: the same rows\|\(2/,
  );
  assert.match(shown(element), /\[Commit\]\{A commit now would be refused\}$/);
  assert.doesNotMatch(button(element, "Commit").className, /lnb-sg-go/);
  assert.match(button(element, "Re-run").className, /lnb-sg-go/);
  button(element, "Re-run").click();
  assert.deepEqual(did, [["rerun"]]);
  const rows = ["id = 4", "id = 9"];
  const same = staged({ meetings: [{ ...other, rows, more_rows: 3 }] });
  assert.match(shown(same.element), /\(2 rows: id = 4; id = 9 and 3 more\)/);
  const checking = staged({ meetings: [meeting], checking: true });
  assert.match(shown(checking.element), /… Checking what others committed since main:3/);
  assert.doesNotMatch(shown(checking.element), /version 4/);
  assert.doesNotMatch(button(checking.element, "Commit").className, /lnb-sg-go/);
  const failed = staged({ state: "failed" });
  assert.match(shown(failed.element), /\|! not committed\|/);
  assert.match(shown(failed.element), /\[Re-run on the newest version\]\{[^}]*\}$/);
  const tag = staged({ has_rows: false, state: "ready" });
  assert.doesNotMatch(shown(tag.element), /commit message|No other commits/);
});

test("a commit leads to its version, or is asked about when it is not known", () => {
  const outcome = { version: 8, text: "version 8", undo: { version: 7 } };
  const done = staged({ state: "committed", outcome }, { locked: true });
  assert.match(
    shown(done.element),
    /\|✓ committed\|\[×\]\{Remove from the list\}\|.*\[Show version 8\]\|\(Undo: .* 7\)\{/,
  );
  assert.doesNotMatch(shown(done.element), /ran here|changed fragment|gone/);
  button(done.element, "Show version").click();
  assert.deepEqual(done.did, [["go"]]);
  const plain = staged({ state: "committed", outcome: { version: null, text: "tag made" } });
  assert.match(shown(plain.element), /✓ tag made$/);
  const unknown = staged({ state: "unknown" });
  button(unknown.element, "Check again").click();
  button(unknown.element, "Commit again").click();
  assert.deepEqual(unknown.did, [["look"], ["commit", ""]]);
  const states = ["planned", "ready", "failed", "unknown", "committed"];
  assert.deepEqual(
    states.map((state) => isOpen({ state })),
    [true, true, true, false, false],
  );
});

const MENU = {
  verbs: [
    {
      name: "delete",
      label: "Delete rows",
      group: "Rows",
      is_heavy: true,
      fields: [{ name: "where", kind: "filter", label: "where", hint: "n > 1" }],
    },
    {
      name: "compact",
      label: "Compact",
      group: "Files",
      is_heavy: false,
      fields: [
        { name: "mode", kind: "choice", label: "mode", hint: "", choices: ["fast", "small"] },
        { name: "columns", kind: "columns", label: "columns", hint: "" },
        { name: "set", kind: "set", label: "set", hint: "sql" },
        { name: "tag", kind: "tag", label: "tag", hint: "" },
      ],
    },
  ],
  columns: [
    { name: "n", type: "int64", value: "n", sql: "n" },
    { name: "a,b", type: "text", value: "a,b", sql: "`a,b`" },
  ],
  versions: ["7"],
  tags: ["v1", "v2"],
  branches: ["dev"],
  rows: [],
};

function staging() {
  const ctx = fakeContext();
  const [edits, codes] = [[], []];
  const part = new StageForm(ctx, {
    stage: (edit) => edits.push(edit),
    code: (c) => codes.push(c),
  });
  document.body.append(part.element);
  part.offer(structuredClone(MENU));
  return { ctx, edits, codes, part, element: part.element };
}

test("a change is checked while it is typed", () => {
  const { ctx, edits, codes, part, element } = staging();
  assert.equal(part.verb, "delete");
  const asked = () => ctx.kernel.last("stage.check");
  const edit = { verb: "delete", args: { where: "" }, engine: "auto" };
  assert.deepEqual(asked().args, { branch: null, version: 3, ...edit });
  asked().fail({ message: "where is missing" });
  const said = element.querySelector(".lnb-sg-said");
  assert.equal(said.textContent, "");
  assert.equal(codes.at(-1), null);
  const input = element.querySelector(".lnb-sg-fields input");
  input.value = "n > x";
  send(input, "input");
  asked().fail({ message: "unknown column in n > x" });
  assert.equal(said.textContent, "unknown column in n > x");
  assert.equal(said.classList.contains("lnb-sg-wrong"), true);
  assert.equal(input.getAttribute("aria-invalid"), "true");
  input.value = "n > 1";
  send(input, "input");
  asked().answer({ note: "2 rows", where: { name: "spark", reason: "large" }, code: "c" });
  assert.equal(said.textContent, "2 rows · runs on Spark: large");
  assert.equal(input.hasAttribute("aria-invalid"), false);
  assert.equal(codes.at(-1), "c");
  send(input, "input");
  asked().answer({ note: "", where: { name: "local", reason: "small" }, code: "c" });
  assert.equal(said.textContent, "runs here: small");
  assert.equal(send(element, "submit").defaultPrevented, true);
  assert.deepEqual(edits, [{ ...edit, args: { where: "n > 1" } }]);
  part.enable(false);
  assert.match(shown(element), /\(Stage\)/);
  part.clear();
  assert.equal(element.querySelector(".lnb-sg-fields input").value, "");
  ctx.kernel.state = "static";
  const count = ctx.kernel.count("stage.check");
  part.ask();
  assert.equal(ctx.kernel.count("stage.check"), count);
});

test("a form is filled from another view, its fields by kind", () => {
  const { ctx, part, element } = staging();
  part.fill({ verb: "materialize", columns: ["n", "a,b"], set: { n: "1" }, tag: "v" });
  assert.equal(part.verb, "compact");
  assert.deepEqual(ctx.kernel.last("stage.check").args, {
    branch: null,
    version: 3,
    verb: "compact",
    args: { mode: "fast", columns: ["n", "a,b"], set: { n: "1" }, tag: "v" },
    engine: "auto",
  });
  const fields = element.querySelectorAll(".lnb-sg-fields input");
  assert.equal(fields[0].value, "n, `a,b`");
  button(element, "Add column").click();
  const pair = [...element.querySelectorAll(".lnb-sg-pair")].at(-1).querySelectorAll("input");
  pair[0].value = "m";
  pair[1].value = "n + 1";
  send(pair[1], "input");
  assert.deepEqual(ctx.kernel.last("stage.check").args.args.set, { n: "1", m: "n + 1" });
  const tag = [...element.querySelectorAll(".lnb-sg-tag input")][0];
  send(tag, "focus");
  const offered = () =>
    [...tag.parentElement.querySelectorAll("[role=option]")].map((one) => one.textContent);
  assert.deepEqual(offered(), ["v1", "v2"]);
  tag.value = "2";
  send(tag, "input");
  assert.deepEqual(offered(), ["v2"]);
  part.offer({ ...structuredClone(MENU), tags: ["v1", "v22"] });
  assert.equal(part.verb, "compact");
  assert.equal(tag.value, "2"); // what is typed stays
});

test("names are completed at the caret, in the way that the field takes them", () => {
  const { ctx, part, element } = staging();
  const caret = (input, text) => {
    Object.defineProperty(document, "activeElement", { value: input, configurable: true });
    input.value = text;
    input.selectionStart = text.length;
    send(input, "input");
  };
  const options = (input) =>
    [...input.parentElement.querySelectorAll("[role=option]")].map((one) => one.textContent);
  const put = (input) => {
    const ranges = [];
    input.setRangeText = (...range) => ranges.push(range);
    const before = ctx.kernel.count("stage.check");
    input.parentElement.querySelector("[role=option]").click();
    assert.equal(ctx.kernel.count("stage.check"), before + 1);
    return ranges[0];
  };
  const where = element.querySelector(".lnb-sg-filter input");
  assert.equal(where.getAttribute("inputmode"), null);
  caret(where, "");
  assert.deepEqual(options(where), []); // an expression may begin with anything
  caret(where, "x > 1 AND A");
  assert.deepEqual(options(where), ["a,btext"]);
  assert.deepEqual(put(where), ["`a,b` ", 10, 11, "end"]);
  caret(where, "n = 'a");
  assert.deepEqual(options(where), []); // within a text
  caret(where, "n = 'b' AND a");
  assert.deepEqual(options(where), ["a,btext"]);
  part.fill({ verb: "compact" });
  const columns = element.querySelector(".lnb-sg-columns input");
  caret(columns, "n, a");
  assert.deepEqual(options(columns), ["a,btext"]);
  assert.deepEqual(put(columns), ["`a,b`", 3, 4, "end"]);
  caret(columns, "");
  assert.equal(options(columns).length, 2);
  const tag = element.querySelector(".lnb-sg-tag input");
  caret(tag, "v");
  assert.deepEqual(put(tag), ["v1", 0, 1, "end"]);
  caret(tag, "v1");
  assert.deepEqual(options(tag), []); // it is there already
  const [left, right] = element.querySelector(".lnb-sg-pair").querySelectorAll("input");
  caret(left, "A");
  assert.deepEqual(put(left), ["a,b", 0, 1, "end"]);
  caret(right, "A");
  assert.deepEqual(put(right), ["`a,b` ", 0, 1, "end"]);
  caret(tag, "");
  const tags = Array.from({ length: 20 }, (_one, at) => `v${at}`);
  part.offer({ ...structuredClone(MENU), tags });
  send(tag, "focus");
  assert.equal(options(tag).length, 12);
  part.offer({ ...structuredClone(MENU), tags: ["new"] });
  assert.deepEqual(options(tag), ["new"]); // what could stand there is renewed
  send(tag, "blur");
  part.offer({ ...structuredClone(MENU), tags: ["newer"] });
  assert.doesNotMatch(options(tag).join(), /newer/);
});

test("a form says where it runs, and keeps its keys from the notebook", () => {
  const { ctx, part, element } = staging();
  const engine = element.querySelector('select[aria-label="where it runs"]');
  assert.equal(engine.hidden, false);
  engine.value = "spark";
  send(engine, "change");
  assert.equal(ctx.kernel.last("stage.check").args.engine, "spark");
  part.fill({ verb: "compact" });
  assert.equal(engine.hidden, true);
  assert.equal(ctx.kernel.last("stage.check").args.engine, "auto");
  assert.equal(document.lastFocused, button(element, "Stage"));
  assert.equal(send(element, "keydown", { key: "a" }).cancelBubble, true);
  assert.equal(send(element, "keydown", { key: "Escape" }).cancelBubble, false);
  part.say("staged");
  const said = element.querySelector(".lnb-sg-said");
  assert.equal(said.textContent, "staged");
  assert.equal(said.classList.contains("lnb-sg-wrong"), false);
  const before = ctx.kernel.count("stage.check");
  part.clear();
  assert.equal(said.textContent, "");
  assert.equal(ctx.kernel.count("stage.check"), before);
  part.fill({ verb: "materialize", mode: "small" });
  assert.equal(ctx.kernel.last("stage.check").args.args.mode, "small");
});
