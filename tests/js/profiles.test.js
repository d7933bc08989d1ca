// Column profiles and the chips of a diff.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { changeChips, exactly } from "../../lance_nb/explorer/changes/change_chips.js";
import { h } from "../../lance_nb/explorer/js/dom.js";
import {
  ColumnProfiles,
  profileFacts,
  profilePicture,
  profileWords,
} from "../../lance_nb/explorer/rows/column_profiles.js";
import { fakeContext, settled } from "./fake_context.js";
import { observers, send, texts } from "./light_page.js";

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

const PROFILE = {
  column: 2,
  kind: "number",
  sampled: 1000,
  nulls: 0.25,
  distinct: 7,
  low: "1",
  high: "9",
  bars: [0, 255],
  labels: [],
  counts: [],
  edges: [0, 1],
  wheres: [],
  exact: false,
  sample: "random",
  estimated: false,
  odd: [],
  statistics: [],
};

/** Columns from one to another, which is not among them. */
const places = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);

test("profiles as words and as bars", () => {
  assert.equal(
    profileWords(PROFILE),
    "a random sample of 1,000 rows · 25.0 % null · at least 7 distinct · 1 to 9",
  );
  assert.equal(
    profileWords({
      ...PROFILE,
      exact: true,
      sample: "all",
      nulls: 0,
      estimated: true,
      distinct: 123456,
      low: "",
      kind: "text",
      labels: ["a", "b", "c", "d", "e"],
    }),
    "all 1,000 rows · no nulls · about 123,456 distinct · commonest: a, b, c, d",
  );
  assert.doesNotMatch(profileWords({ ...PROFILE, labels: ["a"] }), /commonest/);
  assert.match(
    profileWords({ ...PROFILE, sample: "index", exact: true }),
    /^all 1,000 rows, exact, from the index/,
  );
  assert.match(
    profileWords({ ...PROFILE, indexed_range: true }),
    / · 1 to 9 \(range and nulls: all rows, from the index\)$/,
  );
  const bars = (profile) =>
    [...profilePicture(profile).querySelectorAll("rect")].map((rect) =>
      ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name))),
    );
  assert.deepEqual(bars(PROFILE), [
    [0, 16, 24, 0],
    [25, 1, 24, 15],
  ]);
  assert.deepEqual(bars({ ...PROFILE, bars: [] }), []);
  const odd = [
    { kind: "null", label: "null", count: 250, height: 255 },
    { kind: "nan", label: "NaN", count: 3, height: 51 },
  ];
  const picture = profilePicture({ ...PROFILE, odd });
  assert.deepEqual(bars({ ...PROFILE, odd }), [
    [0, 16, 21, 0],
    [22, 1, 21, 15],
    [92, 1, 3, 15],
    [96, 13, 3, 3],
  ]);
  assert.equal(picture.querySelectorAll(".lnb-profile-null").length, 1);
  assert.equal(picture.querySelectorAll(".lnb-profile-odd").length, 1);
  assert.match(profileWords({ ...PROFILE, odd, sample: "first" }), /^the first 1,000 .* · 3 NaN$/);
});

test("profiles are asked for after a pause, some columns at once", async () => {
  const ctx = fakeContext();
  let changed = 0;
  const profiles = new ColumnProfiles(ctx, () => {
    changed += 1;
  });
  profiles.reset({ version: 3 });
  profiles.want(places(0, 20), 500);
  profiles.want(places(1, 20), 500);
  assert.equal(ctx.kernel.count("rows.profile"), 0);
  await pass(250);
  const asked = ctx.kernel.last("rows.profile");
  assert.deepEqual(asked.args, {
    version: 3, filter: null, arranged: null, first: 1, count: 12, num_rows: 500,
  }); // biome-ignore format: one request
  assert.equal(asked.options.quiet, true);
  let told = null;
  assert.equal(
    profiles.comes(2, (profile) => {
      told = profile;
    }),
    true,
  );
  await asked.answer({ profiles: [PROFILE] });
  assert.equal(told, PROFILE);
  assert.equal(changed, 1);
  assert.equal(profiles.of(2), PROFILE);
  assert.equal(profiles.of(3), null);
  assert.equal(
    profiles.comes(3, () => {}),
    false,
  );
  assert.deepEqual(ctx.kernel.last("rows.profile").args.first, 13);
  assert.equal(ctx.kernel.last("rows.profile").args.count, 7);
  const late = ctx.kernel.last("rows.profile");
  profiles.reset({ version: 4 });
  assert.equal(ctx.kernel.cancelled, 1);
  await late.answer({ profiles: [PROFILE] });
  assert.equal(profiles.of(2), null);
  assert.equal(changed, 1);
  const cell = h("span");
  profiles.learn(PROFILE);
  assert.equal(changed, 2);
  assert.match(profiles.draw(cell, 2), /1,000 rows/);
  assert.equal(cell.children.length, 1);
  const [picture] = cell.children;
  profiles.draw(cell, 2);
  assert.equal(cell.firstChild, picture);
  assert.equal(profiles.draw(cell, 9), "");
  assert.equal(cell.children.length, 0);
});

test("profiles are not asked for without rows or a kernel", async () => {
  const ctx = fakeContext();
  const profiles = new ColumnProfiles(ctx, () => {});
  profiles.reset({});
  profiles.want(places(0, 3), 0);
  assert.equal(
    profiles.comes(0, () => {}),
    false,
  );
  await pass(250);
  ctx.kernel.state = "static";
  profiles.want(places(0, 3), 5);
  await pass(250);
  assert.equal(ctx.kernel.count("rows.profile"), 0);
  assert.equal(
    profiles.comes(0, () => {}),
    false,
  );
  ctx.kernel.state = "live";
  profiles.want(places(0, 3), 5);
  ctx.close();
  await pass(250);
  assert.equal(ctx.kernel.count("rows.profile"), 0);
});

const ALL = { ...PROFILE, column: 0, bars: [100, 255], counts: [40, 100] };
const TEXT = {
  ...ALL, column: 1, kind: "text", edges: null, wheres: ["t = 'a'", "t = 'b'"], labels: ["a", "b"],
}; // biome-ignore format: one profile
const WHERE = [[null, "id > 1"], ["x", "x < 5"]]; // biome-ignore format: pairs

/** Profiles of two columns that are known, with what is said and counted of the rows that pass. */
async function crossed() {
  const ctx = fakeContext();
  const said = [];
  const passed = [];
  const profiles = new ColumnProfiles(
    ctx,
    () => {},
    (passing, text) => passed.push([passing.passing, text]),
    (words) => said.push(words),
  );
  profiles.reset({ version: 3, filter: null, arranged: null });
  profiles.want([0, 1], 500);
  await pass(250);
  await ctx.kernel.last("rows.profile").answer({ profiles: [ALL, TEXT] });
  const passing = (column, more = {}) => ({ ...[ALL, TEXT][column], sample: "passing", ...more });
  const answer = (rows, profiles) =>
    ctx.kernel.last("rows.cross").answer({ sampled: 100, passing: 7, num_rows: rows, profiles });
  return { ctx, profiles, said, passed, passing, answer };
}

test("rows that pass are drawn over all rows, by a sample and then exactly", async () => {
  const { ctx, profiles, said, passed, passing, answer } = await crossed();
  profiles.brush(WHERE, "id > 1 AND x < 5");
  assert.deepEqual(ctx.kernel.last("rows.cross").args, {
    version: 3, filter: "id > 1 AND x < 5", arranged: null, columns: [0, 1], conditions: WHERE,
  }); // biome-ignore format: one request
  await answer(5_000_000, [
    passing(0, { bars: [255, 0] }),
    passing(1, { wheres: ["t = 'b'"], bars: [9] }),
  ]);
  assert.deepEqual(passed, [[7, "id > 1 AND x < 5"]]);
  assert.equal(profiles.of(0).sample, "passing");
  assert.match(profileWords(profiles.of(0)), /^1,000 rows that pass, of a random sample/);
  const cell = h("span");
  profiles.draw(cell, 0);
  assert.equal(cell.querySelectorAll(".lnb-profile-behind").length, 2);
  profiles.draw(cell, 1);
  const behind = cell.querySelectorAll(".lnb-profile-behind");
  assert.deepEqual(
    [...behind].map((one) => one.getAttribute("height")),
    ["15.00"],
  );
  assert.equal(said.at(-1), "histograms: a sample of 100 rows"); // the brush may move on
  assert.equal(ctx.kernel.count("rows.exact"), 0);
  profiles.reset({ version: 3, filter: "id > 1 AND x < 5", arranged: "p1" }, WHERE);
  assert.equal(ctx.kernel.count("rows.cross"), 1);
  await pass(250);
  assert.equal(said.at(-1), "histograms: a sample of 100 rows; counting every row…");
  assert.deepEqual(ctx.kernel.last("rows.exact").args, {
    version: 3, filter: "id > 1 AND x < 5", arranged: "p1", column: 0, conditions: WHERE,
  }); // biome-ignore format: one request
  const exact = passing(0, { exact: true, sample: "all" });
  await ctx.kernel.last("rows.exact").answer({ profile: exact });
  assert.equal(profiles.of(0), exact);
  assert.equal(ctx.kernel.last("rows.exact").args.column, 1);
  await ctx.kernel.last("rows.exact").answer({ profile: passing(1, { exact: true }) });
  assert.equal(said.at(-1), "histograms: every row");
  assert.equal(ctx.kernel.count("rows.profile"), 1);
  profiles.reset({ version: 3, filter: null, arranged: null }, []);
  assert.equal(profiles.of(0), ALL);
  assert.equal(said.at(-1), "");
});

test("the next brush ends the count of the one before", async () => {
  const { ctx, profiles, passing, answer } = await crossed();
  profiles.reset({ version: 3, filter: "x < 5", arranged: "p1" }, [["x", "x < 5"]]);
  await answer(500, [passing(0), passing(1)]);
  await pass(250);
  const counting = ctx.kernel.last("rows.exact");
  const before = ctx.kernel.cancelled;
  profiles.brush([["x", "x < 3"]], "x < 3");
  assert.ok(ctx.kernel.cancelled > before);
  await counting.answer({ profile: passing(0, { exact: true }) });
  assert.equal(profiles.of(0).exact, false);
  const late = ctx.kernel.last("rows.cross");
  profiles.brush([["x", "x < 2"]], "x < 2");
  await late.answer({
    sampled: 1,
    passing: 1,
    num_rows: 1,
    profiles: [passing(0, { sampled: 1 })],
  });
  assert.equal(profiles.of(0).sampled, 1000);
  await answer(500, [passing(0, { sampled: 2 }), passing(1)]);
  assert.equal(profiles.of(0).sampled, 2);
  await pass(1000);
  assert.equal(ctx.kernel.count("rows.exact"), 1); // it moves still
});

test("large versions are counted on request, chosen rows by themselves", async () => {
  const { ctx, profiles, said, passing, answer } = await crossed();
  profiles.reset({ version: 3, filter: "x < 5", arranged: "p1" }, [["x", "x < 5"]]);
  await answer(50_000_000, [passing(0), passing(1)]);
  await pass(250);
  assert.equal(said.at(-1), "histograms: a sample of 100 rows");
  assert.equal(ctx.kernel.count("rows.exact"), 0);
  assert.deepEqual(profiles.crossed(), { conditions: [["x", "x < 5"]] });
  const exact = passing(0, { exact: true });
  profiles.learn(exact);
  assert.equal(profiles.of(0), exact);
  profiles.reset({ version: 3, filter: "x < 5", arranged: "o2" }, [["x", "x < 5"]], true);
  assert.deepEqual(profiles.crossed(), {});
  assert.equal(profiles.of(0), null);
  await pass(250);
  assert.equal(ctx.kernel.last("rows.profile").args.arranged, "o2");
  assert.equal(ctx.kernel.last("rows.profile").args.filter, "x < 5");
});

test("chips of a diff", () => {
  const chosen = [];
  const chips = changeChips((level) => chosen.push(level), "panel");
  const chip = (id, more) => ({
    id,
    label: id,
    added: 0,
    removed: 0,
    changed: 0,
    bound: false,
    note: "",
    ...more,
  });
  const models = [
    chip("rows", { added: 1200, removed: 1, bound: true }),
    chip("schema", { changed: 3, note: "x" }),
    chip("config"),
    chip("drift", { note: "0" }),
  ];
  chips.paint(models);
  assert.deepEqual(
    texts(chips.element, "span").map((words) => words.trim()),
    ["≤ +1,200 −1", "~3 x", "", ""],
  );
  assert.deepEqual(
    [...chips.element.children].map((one) => one.classList.contains("lnb-chip-none")),
    [false, false, true, false],
  );
  assert.match(chips.element.firstChild.title, /^Upper bound/);
  assert.equal(chips.element.lastChild.title, "");
  chips.choose("schema");
  const state = () =>
    [...chips.element.children].map(
      (one) => `${one.getAttribute("aria-selected")} ${one.getAttribute("tabindex")}`,
    );
  assert.deepEqual(state(), ["false -1", "true 0", "false -1", "false -1"]);
  const press = (name, held = {}) =>
    send(chips.element, "keydown", {
      key: name,
      altKey: false,
      ctrlKey: false,
      metaKey: false,
      ...held,
    });
  press("ArrowRight");
  press("ArrowLeft");
  press("Home");
  press("End");
  press("End", { ctrlKey: true });
  assert.equal(press("x").defaultPrevented, false);
  assert.deepEqual(chosen, ["config", "rows", "rows", "drift"]);
  chips.choose("rows");
  press("ArrowLeft");
  assert.equal(chosen.at(-1), "drift");
  chips.choose(null);
  assert.deepEqual(state(), ["false 0", "false -1", "false -1", "false -1"]);
  const kept = chips.element.firstChild;
  chips.paint([chip("rows"), ...models.slice(1)]);
  assert.equal(chips.element.firstChild, kept);
  assert.equal(kept.lastElementChild.textContent, "");
  const [exact, other] = exactly(models, { added: 5, removed: 6, changed: 7 });
  assert.deepEqual(
    [exact.added, exact.removed, exact.changed, exact.bound, exact.note],
    [5, 6, 7, false, ""],
  );
  assert.equal(other, models[1]);
  chips.element.children[2].click();
  assert.equal(chosen.at(-1), "config");
  assert.equal(chips.models.length, 4);
});

test("a line of facts has the range, the share of nulls and the distinct values", () => {
  const profile = {
    nulls: 0,
    low: "",
    high: "",
    distinct: -1,
    exact: false,
    estimated: false,
    sample: "random",
  };
  const facts = (more) => profileFacts({ ...profile, ...more });
  assert.equal(facts({}), "");
  const range = { low: "0.000093361463012", high: "0.99989" };
  assert.equal(
    facts({ ...range, nulls: 0.256, distinct: 4480 }),
    "0.00009336 – 0.99989 · 26 % null · ≥ 4,480 distinct",
  );
  assert.equal(facts({ low: "7", high: "7", distinct: 1, sample: "all" }), "7 · 1 distinct");
  assert.equal(facts({ distinct: 90, estimated: true }), "~90 distinct");
  assert.equal(facts({ distinct: 90, exact: true }), "90 distinct");
});
