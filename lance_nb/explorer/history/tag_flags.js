// The flags of tags over a lane of the timeline: none stands on another, whatever their names.

import { h } from "../js/dom.js";

const LETTER = 7.6; // pixels of one letter, about
const BESIDE = 20; // the staff and the sign
const LEAST = 40; // less room than this shows the sign only
const MOST = 210;

/**
 * Where the flag of every tag stands and how much room its words have, in pixels.
 * @param {{names: string[]}[]} tags @param {number[]} places @param {number} end
 */
function spots(tags, places, end) {
  return tags
    .map((tag, index) => {
      const need = Math.min(MOST, BESIDE + LETTER * tag.names.join(", ").length);
      return { need, right: (places[index + 1] ?? end) - places[index] - 4 };
    })
    .map(({ need, right }, index, all) => {
      const last = index === all.length - 1;
      // Only the last one may turn round: it knows what the one before has taken.
      const before = index
        ? places[index - 1] + Math.min(all[index - 1].need, all[index - 1].right) + 6
        : 0;
      const left = places[index] - before;
      const flip = last && need > right && left > right;
      return { flip, room: Math.min(need, flip ? left : right) };
    });
}

/**
 * @param {Pick<Lnb.Lane, "tags" | "top" | "label">} lane
 * @param {(version: number) => number} middle of a version's bar @param {number} end of the plane
 * @param {(version: number) => void} go
 */
export function tagFlags(lane, middle, end, go) {
  const places = lane.tags.map((tag) => middle(tag.version));
  return spots(lane.tags, places, end).map(({ flip, room }, index) => {
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
    flag.style.left = `${places[index]}px`;
    flag.style.top = `${lane.top}px`;
    flag.style.maxWidth = `${Math.max(16, Math.ceil(room))}px`;
    return flag;
  });
}
