// Merges on the timeline: a line from the version that was merged to the version that holds it.

import { svg } from "../js/dom.js";

const TURN = 5; // pixels of a rounded corner
const TIP = 4; // and of half an arrow

/**
 * Draw the merges whose two versions are on the timeline, as far as the details are known.
 * @param {Lnb.LaneMap} map
 */
export function mergeEdges(map) {
  const paths = [];
  for (const lane of map.lanes) {
    for (const [version, { merge }] of lane.details) {
      if (!merge?.there) continue;
      const source = map.lanes.find((other) => other.branch === merge.branch);
      if (!source?.numbers.includes(merge.version)) continue;
      const middle = map.slot / 2;
      const from = { x: map.x(merge.version) + middle, y: source.top + source.height - 0.5 };
      const up = lane.top <= source.top;
      const to = { x: map.x(version) + middle, y: up ? lane.top + lane.height : lane.top + 2 };
      const kind = `lnb-tl-merge${merge.kind === "merge" ? "" : " lnb-tl-picked"}`;
      paths.push(
        svg("path", { class: kind, d: lane === source ? bow(from, to) : line(from, to, up) }),
      );
    }
  }
  return paths;
}

/** @typedef {{x: number, y: number}} Point */

/** @param {Point} from @param {Point} to @param {boolean} up */
function line(from, to, up) {
  const end = to.y + (up ? TIP : -TIP);
  const half = (from.y + end) / 2;
  const way =
    up && to.x - from.x > 2 * TURN
      ? `H${to.x - TURN}Q${to.x} ${from.y} ${to.x} ${from.y - TURN}V${end}`
      : `C${from.x} ${half} ${to.x} ${half} ${to.x} ${end}`;
  return `M${from.x} ${from.y}${way}M${to.x - TIP} ${end}L${to.x} ${to.y}L${to.x + TIP} ${end}`;
}

/** A change that was picked or reverted on its own branch. @param {Point} from @param {Point} to */
function bow(from, to) {
  return `M${from.x} ${from.y}Q${(from.x + to.x) / 2} ${from.y - 16} ${to.x} ${from.y}`;
}
