// What differs between two texts, by words.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { test } from "node:test";
import { wordDiff, wordParts } from "../../lance_nb/explorer/changes/word_diff.js";
import { h } from "../../lance_nb/explorer/js/dom.js";

const FOX = "the quick brown fox jumps over the dog";

test("words that went and came are parts of their own", () => {
  assert.deepEqual(wordDiff(FOX, "the slow brown fox leaps high over the dog"), [
    [" ", "the "],
    ["-", "quick"],
    ["+", "slow"],
    [" ", " brown fox "],
    ["-", "jumps"],
    ["+", "leaps high"],
    [" ", " over the dog"],
  ]);
  assert.equal(wordDiff(FOX, FOX), null);
  assert.deepEqual(wordDiff("a b c", "a b c d"), [
    [" ", "a b c"],
    ["+", " d"],
  ]);
});

test("texts with little in common, short ones and very long ones are not divided", () => {
  assert.equal(wordDiff("one two three four", "five six seven eight nine"), null);
  assert.equal(wordDiff("11.25", "11.50"), null);
  assert.equal(wordDiff("cat", "cats"), null);
  assert.equal(wordDiff("", FOX), null);
  const long = `${FOX} `.repeat(1000);
  assert.equal(wordDiff(long, `${long}!`), null);
});

test("a picture of several characters and a word with joiners stay whole", () => {
  assert.deepEqual(wordDiff("see 👨‍👩‍👧 here and now", "see 👨‍👩‍👦 here and now"), [
    [" ", "see "],
    ["-", "👨‍👩‍👧"],
    ["+", "👨‍👩‍👦"],
    [" ", " here and now"],
  ]);
  const [, gone] = wordDiff("من می‌خواهم کتاب را بخوانم", "من دفتر کتاب را بخوانم");
  assert.deepEqual(gone, ["-", "می‌خواهم"]);
});

test("the parts make both texts, whatever they are, in bounded time", () => {
  const tokens = ["a", "b", " ", "c", ".", "<b>"];
  let seed = 7;
  const random = (most) => {
    seed = (seed * 48271) % 2147483647;
    return seed % most;
  };
  const text = (most) => Array.from({ length: random(most) }, () => tokens[random(6)]).join("");
  let divided = 0;
  for (let times = 0; times < 500; times += 1) {
    const old = text(40);
    const at = random(old.length + 1);
    const now = old.slice(0, at) + text(10) + old.slice(at + random(8));
    const parts = wordDiff(old, now);
    if (!parts) continue;
    divided += 1;
    const without = (sign) => parts.filter(([one]) => one !== sign).map(([, part]) => part);
    assert.equal(without("+").join(""), old);
    assert.equal(without("-").join(""), now);
  }
  assert.ok(divided > 50);
  const began = performance.now();
  wordDiff("a b ".repeat(5000), "b c ".repeat(5000));
  assert.ok(performance.now() - began < 1000);
});

test("what stays is shortened around the changes, and is text", () => {
  const parts = [
    [" ", "x".repeat(50)],
    ["-", "<img src=x>"],
    ["+", "new"],
    [" ", "y".repeat(50)],
    ["+", "more"],
    [" ", "z".repeat(50)],
  ];
  const element = h("span", {}, wordParts(parts, 10));
  assert.equal(
    element.textContent,
    `…${"x".repeat(10)}<img src=x>new${"y".repeat(10)}…${"y".repeat(10)}more${"z".repeat(10)}…`,
  );
  assert.equal(element.querySelector("img"), null);
  assert.equal(element.querySelectorAll("ins").length, 2);
  assert.equal(h("span", {}, wordParts(parts)).textContent.length, 168);
});
