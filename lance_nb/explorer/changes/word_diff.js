// What differs between two texts, by words: the shortest list of edits (Myers, 1986), with a limit.

import { h } from "../js/dom.js";

const MOST_EDITS = 400; // more of them than this are not told apart
const LEAST_SAME = 0.4; // of the longer text must stay, else the words are no help
const LEAST_WORDS = 3;
const LONGEST_CHARS = 20000;

/** @typedef {[sign: " " | "-" | "+", text: string][]} Parts */

// Words, spaces, pictures of several characters, and any other character by itself.
const PICTURE = "\\p{Extended_Pictographic}\\p{M}*\\p{EMod}?";
const TOKENS = new RegExp(
  `\\s+|[\\p{L}\\p{N}\\p{M}_\\u200c\\u200d]+|${PICTURE}(?:\\u200d${PICTURE})*|[^]`,
  "gu",
);

/**
 * Parts of two texts in order: those of both (" "), of the old one ("-") and of the new one ("+").
 * Null where they are the same, have too little in common, are no sentences, or are very long.
 * @param {string} before @param {string} after @returns {Parts | null}
 */
export function wordDiff(before, after) {
  if (before === after || Math.max(before.length, after.length) > LONGEST_CHARS) return null;
  if (wordsOf(before) < LEAST_WORDS || wordsOf(after) < LEAST_WORDS) return null;
  const old = before.match(TOKENS) ?? [];
  const now = after.match(TOKENS) ?? [];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (tail < most && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const middle = edits(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const parts = joined([
    [" ", old.slice(0, head).join("")],
    ...middle,
    [" ", old.slice(old.length - tail).join("")],
  ]);
  const same = parts.reduce((sum, [sign, { length }]) => sum + (sign === " " ? length : 0), 0);
  return same >= LEAST_SAME * Math.max(before.length, after.length) ? parts : null;
}

/** @param {string} text */
function wordsOf(text) {
  return text.trim().split(/\s+/).length;
}

/** @param {string[]} old @param {string[]} now @returns {Parts} */
function edits(old, now) {
  /** @type {Int32Array[]} how far each diagonal was followed, after each number of edits */
  const trace = [];
  const limit = Math.min(MOST_EDITS, old.length + now.length);
  const far = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  for (let count = 0; count <= limit; count += 1) {
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      const down =
        diagonal === -count ||
        (diagonal !== count && far[middle + diagonal - 1] < far[middle + diagonal + 1]);
      let x = down ? far[middle + diagonal + 1] : far[middle + diagonal - 1] + 1;
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1;
      far[middle + diagonal] = x;
      if (x >= old.length && x - diagonal >= now.length) return walkedBack(old, now, trace, count);
    }
    trace.push(far.slice(middle - count - 1, middle + count + 2));
  }
  return [
    ["-", old.join("")],
    ["+", now.join("")],
  ];
}

/**
 * @param {string[]} old @param {string[]} now @param {Int32Array[]} trace @param {number} count
 * @returns {Parts}
 */
function walkedBack(old, now, trace, count) {
  /** @type {Parts} */
  const parts = [];
  let x = old.length;
  let y = now.length;
  for (let step = count; step > 0; step -= 1) {
    const far = trace[step - 1];
    /** @param {number} diagonal */
    const reach = (diagonal) => far[diagonal + step] ?? -1;
    const diagonal = x - y;
    const down =
      diagonal === -step || (diagonal !== step && reach(diagonal - 1) < reach(diagonal + 1));
    const from = down ? diagonal + 1 : diagonal - 1;
    const start = reach(from);
    const [left, top] = down ? [start, start - from + 1] : [start + 1, start - from];
    for (; x > left && y > top; x -= 1, y -= 1) parts.push([" ", old[x - 1]]);
    parts.push(down ? ["+", now[top - 1]] : ["-", old[left - 1]]);
    x = start;
    y = start - from;
  }
  for (; x > 0; x -= 1) parts.push([" ", old[x - 1]]);
  return parts.reverse();
}

/**
 * Neighbours of a kind as one part, what went before what came; a space between two changes is part
 * of them.
 * @param {Parts} parts @returns {Parts}
 */
function joined(parts) {
  /** @type {Parts} */
  const edits = [];
  let [deleted, come] = ["", ""];
  const flush = () => {
    if (deleted) edits.push(["-", deleted]);
    if (come) edits.push(["+", come]);
    [deleted, come] = ["", ""];
  };
  const filled = parts.filter(([, text]) => text);
  filled.forEach(([sign, text], index) => {
    if (sign === "-") deleted += text;
    else if (sign === "+") come += text;
    else if (
      (deleted || come) &&
      !text.trim() &&
      filled[index + 1] &&
      filled[index + 1][0] !== " "
    ) {
      deleted += text;
      come += text;
    } else {
      flush();
      const last = edits[edits.length - 1];
      if (last?.[0] === " ") last[1] += text;
      else edits.push([" ", text]);
    }
  });
  flush();
  return edits;
}

/**
 * Elements of the parts; of what stays, `around` characters beside a change.
 * @param {Parts} parts @param {number} [around]
 */
export function wordParts(parts, around = Infinity) {
  return parts.map(([sign, text], index) => {
    if (sign !== " ") return h(sign === "-" ? "del" : "ins", {}, text);
    const [first, last] = [index === 0, index === parts.length - 1];
    if (text.length <= (first || last ? around : 2 * around)) return text;
    const [head, tail] = [first ? "" : text.slice(0, around), last ? "" : text.slice(-around)];
    return `${head}…${tail}`;
  });
}
