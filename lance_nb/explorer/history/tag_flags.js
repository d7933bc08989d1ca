// The flags of tags over a lane of the timeline. Crowded ones stand on one another, up to three, so
// that each keeps its name; the staff of a flag crosses no name.

import { h, setBox } from "../js/dom.js";

const LETTER = 7.6; // pixels of one letter, about
const BESIDE = 20; // the staff and the sign
const LEAST = 40; // less room than this shows the sign only
const MOST = 210;
const GAP = 4;
const LEVELS = 3;
const HEIGHT = 18;

/**
 * Where the flag of every tag stands and how much room its words have, in pixels. Level 0 is the
 * highest.
 * @param {{names: string[]}[]} tags @param {number[]} places @param {number} end
 * @returns {Lnb.Flag[]}
 */
export function flagSpots(tags, places, end) {
  /** @type {Lnb.Flag[]} the last flag of each level */
  const last = [];
  return tags.map((tag, index) => {
    const x = places[index];
    const need = Math.min(MOST, BESIDE + LETTER * tag.names.join(", ").length);
    const flip = x + need > end && last.every((flag) => endOf(flag) < x - need) && x > need;
    const start = flip ? x - need : x;
    const isFree = (/** @type {number} */ level) => !last[level] || endOf(last[level]) <= start;
    // Below it, too, there is nothing that its staff would cross.
    let level = 0;
    while (level < LEVELS && !last.every((_flag, under) => under < level || isFree(under)))
      level += 1;
    if (level === LEVELS) {
      level -= 1;
      const before = last[level];
      before.room = Math.min(before.room, start - before.x - GAP);
    }
    const flag = { level, flip, x, room: Math.min(need, flip ? x : end - x) };
    last[level] = flag;
    return flag;
  });
}

/** @param {Lnb.Flag} flag */
const endOf = ({ flip, x, room }) => (flip ? x : x + room) + GAP;

/**
 * @param {Pick<Lnb.Lane, "tags" | "top" | "head" | "label" | "flags">} lane
 * @param {(version: number) => void} go
 */
export function tagFlags(lane, go) {
  return lane.flags.map(({ level, flip, room, x }, index) => {
    const { version, names, pins } = lane.tags[index];
    const all = names.join(", ");
    const words =
      BESIDE + LETTER * all.length > room && names.length > 1
        ? `${names[0]} +${names.length - 1}`
        : all;
    const flag = h(
      "button",
      {
        class: `lnb-tl-flag${flip ? " lnb-flip" : ""}${pins ? " lnb-pin" : ""}`,
        type: "button",
        tabindex: "-1",
        title: `tag ${all}: ${lane.label}:${version}${pins ? ", kept for a merge" : ""}`,
        on: { click: () => go(version) },
      },
      h("span", { "aria-hidden": "true" }, pins ? "⊙" : "⚑"),
      room >= Math.min(LEAST, BESIDE + LETTER * words.length) ? h("em", words) : null,
    );
    setBox(flag, {
      left: x,
      top: lane.top + level * HEIGHT,
      height: lane.head - level * HEIGHT - 2,
    });
    flag.style.maxWidth = `${Math.max(16, Math.ceil(room))}px`;
    return flag;
  });
}
