// Where every version stands on the timeline: lanes share one axis of version numbers. Branches of
// which nobody has written to yet have no lane, until somebody wants to see all.

import { count, plural } from "../js/dom.js";
import { titleOfOperation } from "../js/operations.js";
import { flagSpots } from "./tag_flags.js";

const AXIS = 20;
const LANE_GAP = 4;
const SLOT = { least: 4, readable: 14, most: 56 }; // pixels of one version
const TAIL = 72; // pixels after the newest version, for its flag and its handle

/**
 * @param {Lnb.Timeline} model @param {string|null} branch @param {number} version
 * @param {Lnb.LaneMap|null} before the map of the screen before: its details are kept
 * @param {{bar: {main: number, branch: number}, flag: number, isWhole?: boolean}} sizes `isWhole`:
 *   empty branches have lanes, too
 * @returns {Lnb.LaneMap}
 */
export function laneMap(model, branch, version, before, sizes) {
  const { shown, empty } = lanesOf(model, branch);
  const lanes = (sizes.isWhole ? model.lanes : shown).map((lane, index) =>
    makeLane(lane, index, model.tags, before),
  );
  const numbers = [...new Set(lanes.flatMap((lane) => lane.numbers))].sort((a, b) => a - b);
  /** @type {Lnb.LaneMap} */
  const map = {
    lanes,
    numbers,
    slot: 14,
    width: 0,
    height: 0,
    mostRows: 1,
    hidden: model.hidden_branches,
    empty,
    older: model.lanes.reduce((sum, lane) => sum + lane.older, 0),
    here: {
      lane: Math.max(
        0,
        lanes.findIndex((lane) => lane.branch === branch),
      ),
      version,
    },
    fit(room, chosen) {
      const automatic = Math.floor((room - TAIL) / Math.max(1, numbers.length));
      map.slot = chosen
        ? Math.max(SLOT.least, Math.min(SLOT.most, chosen))
        : Math.max(SLOT.readable, Math.min(SLOT.most, automatic));
      map.width = Math.max(room, map.slot * numbers.length + TAIL);
      arrange();
    },
    measure() {
      map.mostRows = 1;
      for (const lane of lanes) {
        for (const facts of lane.details.values()) {
          map.mostRows = Math.max(map.mostRows, (facts.added ?? 0) + (facts.removed ?? 0));
        }
      }
    },
    indexOf: (number) => lowerBound(numbers, number),
    x: (number) => lowerBound(numbers, number) * map.slot,
    visible(left, room, overscan) {
      const first = Math.max(0, Math.floor(left / map.slot) - overscan);
      const last = Math.min(numbers.length - 1, Math.ceil((left + room) / map.slot) + overscan);
      return [first, last];
    },
    numbersBetween(lane, first, last) {
      if (last < first) return [];
      return lane.numbers.slice(
        lowerBound(lane.numbers, numbers[first]),
        lowerBound(lane.numbers, numbers[last] + 1),
      );
    },
    /** The version of a lane that stands nearest to a point of the axis, or null. */
    nearest(lane, x) {
      if (!lane.numbers.length) return null;
      const slot = Math.max(0, Math.min(numbers.length - 1, Math.floor(x / map.slot)));
      const index = Math.min(lane.numbers.length - 1, lowerBound(lane.numbers, numbers[slot]));
      const before = lane.numbers[Math.max(0, index - 1)];
      return Math.abs(map.x(before) - x) < Math.abs(map.x(lane.numbers[index]) - x) &&
        before < numbers[slot]
        ? before
        : lane.numbers[index];
    },
    /**
     * Runs of versions that were cleaned up, as pixels: [left, width, words], the newest `most`.
     */
    gaps(lane, most) {
      /** @type {[number, number, string][]} */
      const runsFound = [];
      const { runs } = lane;
      if (!lane.index && !lane.older && runs.length && runs[0][0] > 1)
        runsFound.push([0, 5, gapWords(1, runs[0][0] - 1)]);
      for (let index = Math.max(1, runs.length - most); index < runs.length; index += 1) {
        const last = runs[index - 1][0] + runs[index - 1][1] - 1;
        const left = map.x(last) + map.slot - 3;
        runsFound.push([
          left,
          map.x(runs[index][0]) + 3 - left,
          gapWords(last + 1, runs[index][0] - 1),
        ]);
      }
      return runsFound;
    },
    /**
     * Rows added and removed by the versions after `from` up to `to` of one lane; null while
     * unknown.
     */
    changed(lane, from, to) {
      const sums = { versions: 0, added: 0, removed: 0, unknown: 0, gone: 0 };
      let next = from + 1;
      for (
        let index = lowerBound(lane.numbers, from + 1);
        index < lane.numbers.length && lane.numbers[index] <= to;
        index += 1
      ) {
        const facts = lane.details.get(lane.numbers[index]);
        sums.versions += 1;
        sums.gone += lane.numbers[index] - next;
        next = lane.numbers[index] + 1;
        if (facts?.orphaned) sums.gone += 1;
        else if (!facts || facts.added === null) sums.unknown += 1;
        else {
          sums.added += facts.added ?? 0;
          sums.removed += facts.removed ?? 0;
        }
      }
      return sums;
    },
    /** The place that a key leads to from `from`, or null. */
    step(key, from) {
      const lane = lanes[from.lane];
      const index = lowerBound(lane.numbers, from.version);
      const by = {
        ArrowLeft: index - 1,
        ArrowRight: index + 1,
        PageUp: index - 10,
        PageDown: index + 10,
        Home: 0,
        End: lane.numbers.length,
      }[key];
      if (by !== undefined) {
        const version = lane.numbers[Math.max(0, Math.min(lane.numbers.length - 1, by))];
        return version === undefined ? null : { lane: from.lane, version };
      }
      const other = lanes[from.lane + ({ ArrowUp: -1, ArrowDown: 1 }[key] ?? NaN)];
      if (!other?.numbers.length) return null;
      const near = Math.min(other.numbers.length - 1, lowerBound(other.numbers, from.version));
      return { lane: other.index, version: other.numbers[near] };
    },
  };
  function arrange() {
    let top = 0;
    for (const lane of lanes) {
      const middles = lane.tags.map(({ version }) => map.x(version) + map.slot / 2);
      lane.flags = flagSpots(lane.tags, middles, map.width || Infinity);
      lane.top = top;
      lane.head = sizes.flag * Math.max(0, ...lane.flags.map(({ level }) => level + 1)) || 4;
      lane.height = (lane.index ? sizes.bar.branch : sizes.bar.main) + lane.head;
      top += lane.height + LANE_GAP;
    }
    map.height = top + AXIS;
  }
  arrange();
  map.measure();
  return map;
}

/**
 * The lanes without those of two or more branches that have no version of their own, no tag, and
 * are not shown now; and how many these are.
 * @param {Lnb.Timeline} model @param {string | null} branch that is shown
 */
function lanesOf({ lanes, tags }, branch) {
  const isEmpty = (/** @type {Lnb.TimelineLane} */ lane) =>
    lane.fork &&
    lane.branch !== branch &&
    lane.runs.length === 1 &&
    lane.runs[0][1] === 1 &&
    !tags.some((tag) => tag.branch === lane.branch);
  const shown = lanes.filter((lane) => !isEmpty(lane));
  const empty = lanes.length - shown.length;
  return empty > 1 ? { shown, empty } : { shown: lanes, empty: 0 };
}

/**
 * @param {Lnb.TimelineLane} lane @param {number} index @param {Lnb.Tag[]} tags
 * @param {Lnb.LaneMap | null} before @returns {Lnb.Lane}
 */
function makeLane(lane, index, tags, before) {
  const old = before?.lanes.find((other) => other.branch === lane.branch);
  const details = old?.details ?? new Map();
  for (const facts of lane.details) details.set(facts.version, facts);
  return {
    index,
    top: 0,
    head: 0,
    height: 0,
    flags: [],
    branch: lane.branch,
    label: lane.label,
    fork: lane.fork,
    runs: lane.runs,
    older: lane.older,
    numbers: lane.runs.flatMap(([first, length]) =>
      Array.from({ length }, (_, index) => first + index),
    ),
    details,
    asked: old?.asked ?? new Set(),
    tags: tagsOf(lane.branch, tags),
  };
}

/** @param {number} first @param {number} last */
function gapWords(first, last) {
  return first === last
    ? `version ${first} was cleaned up`
    : `versions ${first} to ${last} were cleaned up`;
}

/**
 * Tags of one lane by version, oldest first; several names may share a version.
 * @param {string | null} branch @param {Lnb.Tag[]} tags
 */
function tagsOf(branch, tags) {
  const byVersion = new Map();
  for (const tag of tags) {
    if ((tag.branch ?? null) !== branch) continue;
    if (!byVersion.has(tag.version)) byVersion.set(tag.version, []);
    byVersion.get(tag.version).push(tag);
  }
  return [...byVersion]
    .sort(([a], [b]) => a - b)
    .map(([version, tags]) => ({
      version,
      names: tags.map((/** @type {Lnb.Tag} */ tag) => tag.name),
      pins: tags.every((/** @type {Lnb.Tag} */ tag) => tag.pin),
    }));
}

/**
 * The first position in ascending `numbers` whose value is not below `number`.
 * @param {number[]} numbers @param {number} number
 */
function lowerBound(numbers, number) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The height of a bar in pixels.
 * @param {Lnb.VersionBar | undefined} facts @param {number} tall @param {number} most */
export function barHeight(facts, tall, most) {
  if (!facts) return 5;
  const rows = (facts.added ?? 0) + (facts.removed ?? 0);
  return rows ? 8 + (tall - 26) * (Math.log1p(rows) / Math.log1p(Math.max(most, 1))) : 5;
}

/** @param {Lnb.VersionBar} facts */
export function rowWords(facts) {
  if (facts.operation === "Damaged") return "";
  if (facts.orphaned) {
    const rows = facts.rows === null ? "" : ` · ${plural(facts.rows, "row")} now`;
    return `parent version is gone: changes unknown${rows}`;
  }
  if (facts.added === null)
    return facts.rows === null ? "row count not recorded" : plural(facts.rows, "row");
  const parts = [
    facts.added && `+${plural(facts.added, "row")}`,
    facts.removed && `−${plural(facts.removed, "row")}`,
  ];
  return parts.filter(Boolean).join(" ") || "no rows changed";
}

/** @param {Lnb.Lane} lane @param {number} version @param {Lnb.VersionBar | undefined} facts */
export function sentence(lane, version, facts) {
  const tags = lane.tags.find((tag) => tag.version === version);
  const words = [`${lane.label} version ${version}`, tags && `tagged ${tags.names.join(", ")}`];
  if (facts) words.push(titleOfOperation(facts.operation), facts.merge?.words, rowWords(facts));
  return words.filter(Boolean).join(", ");
}

/**
 * What versions changed together; walking `back`, what was added goes away again. The two versions
 * may have been compared: then those numbers are told, which leave out what came and went between.
 * @param {Lnb.Sums} sums @param {boolean} back @param {Lnb.RowCounts | null} [compared]
 */
export function rangeWords({ versions, added, removed, unknown, gone = 0 }, back, compared) {
  const number = `${plural(versions, "version")}${back ? " back" : ""}`;
  if (compared) return `${number} · ${comparedWords(compared)}`;
  const [more, less] = back ? [removed, added] : [added, removed];
  const rows = more || less || unknown ? `+${count(more)} −${count(less)} rows` : "no rows changed";
  const suffix =
    (unknown ? ` and ${count(unknown)} not counted yet` : "") +
    (gone ? `, without ${plural(gone, "version")} that cannot be compared: cleaned up` : "");
  return `${number} · ${rows}${suffix}`;
}

/** How many rows differ between two versions. @param {Lnb.RowCounts} counts */
export function comparedWords({ added, removed, changed, bound, note }) {
  const parts = [
    added && `+${count(added)}`,
    removed && `−${count(removed)}`,
    changed && `~${count(changed)}`,
  ].filter(Boolean);
  if (!parts.length) return note || "no rows changed";
  return `${bound ? "≤ " : ""}${parts.join(" ")} rows`;
}
