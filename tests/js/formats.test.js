// Words, numbers and looks: what needs no page.

import "./light_page.js";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import {
  barHeight,
  rangeWords,
  rowWords,
  sentence,
} from "../../lance_nb/explorer/history/lanes.js";
import { percent } from "../../lance_nb/explorer/js/canvas.js";
import { age, ageOf, bytes, count, plural, renewAges } from "../../lance_nb/explorer/js/dom.js";
import {
  lookOfOperation,
  OPERATIONS,
  titleOfOperation,
} from "../../lance_nb/explorer/js/operations.js";
import { isInOrder, isKnown, isRepeatable } from "../../lance_nb/explorer/js/request_kinds.js";

test("counts and plurals", () => {
  assert.equal(count(1204), "1,204");
  assert.equal(plural(1, "row"), "1 row");
  assert.equal(plural(0, "row"), "0 rows");
  assert.equal(plural(2000, "row"), "2,000 rows");
});

for (const [value, words] of [
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.0 KB"],
  [99_440, "99.4 KB"],
  [99_600, "100 KB"],
  [3_400_000, "3.4 MB"],
  [999_500, "1.0 MB"],
  [5e15, "5.0 PB"],
  [5e18, "5000 PB"],
])
  test(`${value} bytes are ${words}`, () => assert.equal(bytes(value), words));

const SECOND = 1000;
for (const [passed, words] of [
  [-5 * SECOND, "just now"],
  [0, "just now"],
  [9.9 * SECOND, "just now"],
  [10 * SECOND, "10 seconds ago"],
  [59.9 * SECOND, "59 seconds ago"],
  [60 * SECOND, "1 minute ago"],
  [3599 * SECOND, "59 minutes ago"],
  [3600 * SECOND, "1 hour ago"],
  [86400 * SECOND, "1 day ago"],
  [2591999 * SECOND, "29 days ago"],
  [2592000 * SECOND, "1 month ago"],
  [31536000 * SECOND, "1 year ago"],
  [3 * 31536000 * SECOND, "3 years ago"],
])
  test(`what was ${passed} ms before is ${words}`, () => {
    mock.timers.enable({ apis: ["Date"], now: 1e12 });
    assert.equal(age(1e12 - passed), words);
    mock.timers.reset();
  });

test("ages are renewed", () => {
  mock.timers.enable({ apis: ["Date"], now: 1e12 });
  const root = document.createElement("p");
  root.append(ageOf(1e12));
  assert.equal(root.textContent, "just now");
  mock.timers.tick(120 * SECOND);
  renewAges(root);
  assert.equal(root.textContent, "2 minutes ago");
  mock.timers.reset();
});

test("shares are never 0 % for something small", () => {
  assert.equal(percent(0, 10), "0 %");
  assert.equal(percent(1, 0), "0 %");
  assert.equal(percent(-1, 10), "0 %");
  assert.equal(percent(1, 2000), "< 0.1 %");
  assert.equal(percent(1, 1000), "0.1 %");
  assert.equal(percent(1, 3), "33.3 %");
});

test("operations have a family and a glyph", () => {
  assert.deepEqual(lookOfOperation("Append"), { family: "add", glyph: "+" });
  assert.deepEqual(lookOfOperation("Delete"), { family: "remove", glyph: "−" });
  assert.deepEqual(lookOfOperation("Something"), { family: "upkeep", glyph: "•" });
  assert.deepEqual(lookOfOperation(""), { family: "upkeep", glyph: "" });
});

test("titles say what happened, and Lance's term", () => {
  assert.equal(titleOfOperation("Rewrite"), "Compacted (Rewrite)");
  assert.equal(titleOfOperation("Newer"), "Newer");
  assert.equal(titleOfOperation(""), "operation not recorded");
  for (const [operation, [family, glyph, title]] of Object.entries(OPERATIONS))
    assert.ok(family && glyph && title, operation);
});

test("what is not known is neither repeated nor taken for lost", () => {
  assert.deepEqual([isKnown("rows"), isRepeatable("rows"), isInOrder("rows")], [true, true, true]);
  assert.deepEqual([isRepeatable("changes.rows"), isInOrder("changes.rows")], [true, false]);
  assert.deepEqual([isRepeatable("refs.create"), isInOrder("refs.create")], [false, true]);
  assert.deepEqual([isRepeatable("refs.merge"), isInOrder("refs.merge")], [false, false]);
  assert.deepEqual([isKnown("x"), isRepeatable("x"), isInOrder("x")], [false, false, false]);
  for (const type of ["stage.commit", "lock", "changes.row", "cell"]) assert.ok(isKnown(type));
});

const facts = (more) => ({ operation: "Append", rows: 7, added: 2, removed: 0, ...more });

test("a bar is as high as the rows that changed, in logarithms", () => {
  assert.equal(barHeight(undefined, 58, 10), 5);
  assert.equal(barHeight(facts({ added: 0 }), 58, 10), 5);
  assert.equal(barHeight(facts({ added: null, removed: null }), 58, 10), 5);
  assert.equal(barHeight(facts({ added: 6, removed: 4 }), 58, 10), 40);
  assert.equal(barHeight(facts({ added: 1, removed: 0 }), 58, 0), 40);
  const half = barHeight(facts({ added: 9, removed: 0 }), 58, 99);
  assert.ok(Math.abs(half - 24) < 0.01);
});

test("rows of a version in words", () => {
  assert.equal(rowWords(facts()), "+2 rows");
  assert.equal(rowWords(facts({ added: 1, removed: 3 })), "+1 row −3 rows");
  assert.equal(rowWords(facts({ added: 0 })), "no rows changed");
  assert.equal(rowWords(facts({ added: null })), "7 rows");
  assert.equal(rowWords(facts({ added: null, rows: null })), "row count not recorded");
  assert.equal(rowWords(facts({ operation: "Damaged" })), "");
  const orphan = facts({ added: null, removed: null, orphaned: true });
  assert.equal(rowWords(orphan), "parent version is gone: changes unknown · 7 rows now");
  assert.equal(rowWords({ ...orphan, rows: null }), "parent version is gone: changes unknown");
});

test("a version as a sentence", () => {
  const lane = { label: "main", tags: [{ version: 2, names: ["a", "b"] }] };
  assert.equal(
    sentence(lane, 2, facts()),
    "main version 2, tagged a, b, Rows added (Append), +2 rows",
  );
  assert.equal(sentence(lane, 3, undefined), "main version 3");
});

test("a range in words, forward and back", () => {
  const sums = { versions: 2, added: 5, removed: 3, unknown: 0 };
  assert.equal(rangeWords(sums, false), "2 versions · +5 −3 rows");
  assert.equal(rangeWords(sums, true), "2 versions back · +3 −5 rows");
  assert.equal(
    rangeWords({ versions: 1, added: 0, removed: 0, unknown: 0 }, false),
    "1 version · no rows changed",
  );
  assert.equal(
    rangeWords({ versions: 1, added: 0, removed: 0, unknown: 1 }, false),
    "1 version · +0 −0 rows and 1 not counted yet",
  );
  assert.equal(
    rangeWords({ ...sums, gone: 3 }, false),
    "2 versions · +5 −3 rows, without 3 versions that cannot be compared: cleaned up",
  );
  for (const one of [{ added: 1 }, { removed: 1 }])
    assert.match(
      rangeWords({ versions: 1, added: 0, removed: 0, unknown: 0, ...one }, false),
      /rows$/,
    );
});
