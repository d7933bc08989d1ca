// Numbers that follow a dragged handle: those of the versions near it are fetched ahead, so that a
// frame of the drag takes no journey to the kernel.

import { samePlace } from "../js/version_range.js";

const AROUND = 15; // versions on either side that are fetched ahead
const CLOSE = 6; // ask when one so near is missing: a request for each step would delay painting
const MOST = 500; // pairs remembered

/** @param {Lnb.Context} ctx @param {(counts: Lnb.Json) => void} paint */
export function dragCounts(ctx, paint) {
  /** @type {Map<string, Lnb.Json>} */
  const changedCounts = new Map();
  /** @type {WeakMap<Lnb.TimelineLane, number[]>} */
  const numbers = new WeakMap();
  const line = ctx.kernel.line();
  const near = ctx.kernel.line({ quiet: true });
  /** @type {Lnb.Pair | null} */
  let now = null;

  /** @param {Lnb.Pair} pair */
  const keyOf = ({ a, b, key }) => JSON.stringify([a.branch, a.version, b.branch, b.version, key]);

  /** The versions of a lane, oldest first. @param {Lnb.TimelineLane} lane @returns {number[]} */
  function versionsOf(lane) {
    if (!numbers.has(lane))
      numbers.set(
        lane,
        lane.runs.flatMap(([first, length]) => Array.from({ length }, (_, index) => first + index)),
      );
    return numbers.get(lane) ?? [];
  }

  /**
   * Versions near the end that moves whose numbers are not known, the nearest first; with `close`
   * if one is that.
   * @param {Lnb.Pair} pair @param {"a" | "b"} end @param {boolean} close
   */
  function missing(pair, end, close) {
    const place = pair[end];
    const lane = ctx
      .screen()
      .timeline?.lanes?.find((candidate) => (candidate.branch ?? null) === (place.branch ?? null));
    if (!lane) return [place.version];
    const all = versionsOf(lane);
    const index = all.findIndex((number) => number >= place.version);
    /** @param {number} reach */
    const lacking = (reach) =>
      all
        .slice(Math.max(0, index - reach), index + reach + 1)
        .filter((version) => !changedCounts.has(keyOf({ ...pair, [end]: { ...place, version } })));
    return (close && !lacking(CLOSE).length ? [] : lacking(AROUND)).sort(
      (number, other) => Math.abs(number - place.version) - Math.abs(other - place.version),
    );
  }

  /** @param {Lnb.Pair} pair @param {"a" | "b"} end */
  function ahead(pair, end, close = true) {
    if (now !== pair) return;
    const versions = missing(pair, end, close);
    if (!versions.length) return;
    near(
      "changes.near",
      { ...pair, end, versions },
      ({ result }) => {
        for (const { version, counts } of result.near)
          changedCounts.set(keyOf({ ...pair, [end]: { ...pair[end], version } }), counts);
        while (changedCounts.size > MOST)
          changedCounts.delete(changedCounts.keys().next().value ?? "");
        if (now !== pair || !result.near.length) return;
        if (versions[0] === pair[end].version) show(pair);
        ahead(pair, end, false);
      },
      () => alone(pair),
    );
  }

  /** Where nothing is fetched ahead: this one. @param {Lnb.Pair} pair */
  function alone(pair) {
    line(
      "changes.counts",
      pair,
      ({ result }) => now === pair && paint(result),
      () => {},
    );
  }

  /** @param {Lnb.Pair} pair */
  function show(pair) {
    const counts = changedCounts.get(keyOf(pair));
    if (counts) paint(counts);
    return Boolean(counts);
  }

  return {
    /** The handles stand here for now. @param {Lnb.Pair} pair */
    at(pair) {
      now = pair;
      show(pair);
      const { branch, version } = ctx.screen();
      ahead(pair, samePlace(pair.b, { branch, version }) ? "a" : "b");
    },
    /** Somebody reaches for a handle. @param {Lnb.Pair} pair @param {"a" | "b"} end */
    soon(pair, end) {
      now = pair;
      ahead(pair, end);
    },
    /** The drag is over: nothing more is fetched. */
    stop() {
      now = null;
    },
  };
}
