// What the values of the columns in sight look like: asked for in the background, drawn in the
// head. Under a filter they are drawn over those of all rows: of a sample at once, of all rows
// behind it.

import { count, svg } from "../js/dom.js";
import { same } from "../js/shown_rows.js";
import { barsWide, ODD_WIDE, slotsOf } from "./bar_selection.js";

const AT_ONCE = 12;
const PAUSE_MS = 250; // the rows come first
const COUNTED_ROWS = 10_000_000; // of versions with more, every row is counted on request only

/**
 * @typedef {[column: string | null, where: string][]} Conditions
 * @typedef {{sampled: number, passing: number, num_rows: number}} Passing see
 *   rows/cross_filter.py
 */

/**
 * @param {Lnb.Context} ctx
 * @param {() => void} changed called when profiles arrived
 * @param {(passing: Passing, filter: string) => void} [passed] called when those of the sample are
 *   counted
 * @param {(words: string) => void} [say] what the histograms under a filter are of
 */
export function columnProfiles(ctx, changed, passed = () => {}, say = () => {}) {
  /** @type {Lnb.Args | null} */
  let place = null;
  /** @type {Lnb.Args | null} */
  let base = null; // the same without the filter
  /** @type {Map<number, Lnb.Profile | null>} */
  let knownProfiles = new Map();
  /** @type {Map<number, Lnb.Profile>} */
  const over = new Map(); // of the rows that pass
  /** @type {Set<number>} */
  const fresh = new Set(); // those of them for the conditions of now
  /** @type {Conditions} */
  let conditions = [];
  let filter = "";
  /** @type {Passing | null} */
  let crossed = null;
  let rests = false; // whether the conditions are final, so that every row may be counted
  /** @type {Lnb.Asked | null} */
  let asking = null;
  /** @type {Lnb.Asked | null} */
  let counting = null;
  const crossing = ctx.kernel.line({ quiet: true, progress: () => {} });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {{columns: number[], numRows: number} | null} */
  let sight = null;
  /** @type {{at: number, notify: (profile: Lnb.Profile | null) => void} | null} */
  let watching = null; // who shows one profile

  /** @param {number} index */
  const of = (index) => over.get(index) ?? knownProfiles.get(index) ?? null;

  async function look() {
    if (!sight) return;
    const { columns, numRows } = sight;
    const missing = columns.filter((index) => !knownProfiles.has(index));
    if (!missing.length || asking || !numRows || ctx.kernel.state !== "live") return;
    const first = missing[0];
    const last = missing.filter((index) => index < first + AT_ONCE).at(-1) ?? first;
    const numMissing = last - first + 1;
    const baseThen = base;
    asking = ctx.kernel.ask(
      "rows.profile",
      { ...baseThen, first, count: numMissing, num_rows: numRows },
      { quiet: true },
    );
    /** @type {Lnb.Profile[]} */
    let profiles = [];
    try {
      ({
        result: { profiles },
      } = await asking);
    } catch {
      // Columns whose values cannot be read have no picture; the rows themselves say why.
    }
    asking = null;
    if (baseThen === base) {
      for (let index = first; index < first + numMissing; index += 1)
        knownProfiles.set(index, null);
      for (const profile of profiles) knownProfiles.set(profile.column, profile);
      tell();
      cross();
    }
    if (!timer) look();
  }

  function tell() {
    changed();
    if (watching && knownProfiles.has(watching.at)) watching.notify(of(watching.at));
  }

  /** Profile the sampled rows that pass, in the columns in sight. */
  function cross() {
    if (!conditions.length || !sight || ctx.kernel.state !== "live") return;
    const columns = sight.columns
      .filter((index) => knownProfiles.get(index) && !fresh.has(index))
      .slice(0, AT_ONCE);
    if (crossed && !columns.length) return;
    const conditionsThen = conditions;
    crossing(
      "rows.cross",
      { ...place, filter, columns, conditions },
      ({ result }) => {
        if (conditionsThen !== conditions) return;
        const { profiles, ...passing } = result;
        crossed = passing;
        for (const index of columns) fresh.add(index);
        for (const profile of profiles) over.set(profile.column, profile);
        passed(passing, filter);
        tell();
        cross();
        if (!timer) countRows();
      },
      () => {}, // the filter itself is asked for beside this, and says what is wrong
    );
  }

  /** Count every row that passes, column by column. */
  async function countRows() {
    if (!crossed || !sight || counting) return;
    const conditionsThen = conditions;
    const sample = `a sample of ${count(crossed.sampled)} rows`;
    const nextInexact = () =>
      sight?.columns.find(
        (index) => fresh.has(index) && over.has(index) && !over.get(index)?.exact,
      );
    const isSmall = crossed.num_rows <= COUNTED_ROWS;
    let inexact = nextInexact();
    if (inexact !== undefined)
      say(`histograms: ${sample}${rests && isSmall ? "; counting every row…" : ""}`);
    while (rests && isSmall && inexact !== undefined && conditionsThen === conditions) {
      counting = ctx.kernel.ask(
        "rows.exact",
        { ...place, column: inexact, conditions },
        { quiet: true, progress: () => {} },
      );
      try {
        const { result } = await counting;
        if (conditionsThen !== conditions) break;
        over.set(inexact, result.profile);
        tell();
      } catch {
        break; // what the sample says stays
      }
      inexact = nextInexact();
    }
    counting = null;
    if (conditionsThen !== conditions) countRows();
    else if (inexact === undefined && over.size) say("histograms: every row");
  }

  function stop() {
    counting?.cancel();
    clearTimeout(timer);
    timer = undefined;
  }

  /**
   * Filter by other conditions; `text` is the filter that they make. Those of a brush that moves
   * are not final.
   * @param {Conditions} next @param {string} text
   */
  function setConditions(next, text) {
    if (same(next, conditions)) return;
    counting?.cancel();
    conditions = next;
    filter = text;
    crossed = null;
    rests = false;
    fresh.clear();
    if (next.length) return;
    crossing.cancel();
    over.clear();
    say("");
    tell();
  }

  function later() {
    timer ||= setTimeout(() => {
      timer = undefined;
      look();
      cross();
      countRows();
    }, PAUSE_MS);
  }

  ctx.onClose(() => {
    stop();
    asking?.cancel();
    crossing.cancel();
  });
  return {
    /**
     * Show other rows. Rows that are chosen otherwise than by a filter are profiled by themselves.
     * @param {Lnb.Args | null} next @param {Conditions} [wanted] what makes its filter
     * @param {boolean} [chosen]
     */
    reset(next, wanted = [], chosen = false) {
      stop();
      const otherArgs = next && !chosen ? { ...next, filter: null, arranged: null } : next;
      place = next;
      if (!same(otherArgs, base)) {
        asking?.cancel(); // nobody waits for what the version before looks like
        base = otherArgs;
        knownProfiles = new Map();
        over.clear();
        fresh.clear();
      }
      setConditions(chosen ? [] : wanted, next?.filter ?? "");
      rests = true;
      cross();
      later();
    },
    /** Filter by what is brushed now. @param {Conditions} next @param {string} text */
    brush(next, text) {
      setConditions(next, text);
      cross();
    },
    /** What requests about the rows that pass need beside the place. */
    crossed: () => (conditions.length ? { conditions } : {}),
    /** @param {number[]} columns @param {number} numRows */
    want(columns, numRows) {
      // Where no row passes there may be rows to profile.
      sight = { columns, numRows: place?.filter ? Math.max(1, numRows) : numRows };
      later();
    },
    of,
    /**
     * Whether one is on its way; `notify(profile)` is called whenever it changes, for the newest
     * that is watched.
     * @param {number} index @param {(profile: Lnb.Profile | null) => void} notify
     */
    comes(index, notify) {
      watching = { at: index, notify };
      return !knownProfiles.has(index) && (sight?.numRows ?? 0) > 0 && ctx.kernel.state === "live";
    },
    /** Keep a profile that was made on demand. @param {Lnb.Profile} profile */
    learn(profile) {
      if (conditions.length) over.set(profile.column, profile);
      else knownProfiles.set(profile.column, profile);
      changed();
    },
    /**
     * Draw into a cell of the head; returns the same as words.
     * @param {Lnb.Recycled} element @param {number} index
     */
    draw(element, index) {
      const profile = of(index);
      const all = over.has(index) ? (knownProfiles.get(index) ?? null) : null;
      const words = profile ? profileWords(profile) : "";
      if (element.lnb?.profile === profile && element.lnb?.all === all) return words;
      element.lnb = { profile, all };
      element.replaceChildren(...(profile ? [profilePicture(profile, all)] : []));
      return words;
    },
  };
}

const WIDE = 100;
const HIGH = 16;

/**
 * The bars of a profile, then those of odd values; behind them those of all rows.
 * @param {Lnb.Profile} profile @param {Lnb.Profile | null} [all]
 */
export function profilePicture(profile, all = null) {
  const each = profile.bars.length ? barsWide(profile) / slotsOf(profile) : 0;
  /** @param {number} x @param {number} height @param {number} wide @param {string | null} look */
  const bar = (x, height, wide, look) =>
    svg("rect", {
      class: look,
      x: x.toFixed(2),
      y: (HIGH - (height * (HIGH - 1)) / 255).toFixed(2),
      width: Math.max(0.5, wide - 1).toFixed(2),
      height: ((height * (HIGH - 1)) / 255).toFixed(2),
    });
  const behind = barsBehind(profile, all).map((height, index) =>
    bar(index * each, height, each, "lnb-profile-behind"),
  );
  const bars = profile.bars.map((height, index) => bar(index * each, height, each, null));
  const first = WIDE - ODD_WIDE * profile.odd.length;
  const odd = profile.odd.map(({ kind, height }, index) =>
    bar(
      first + index * ODD_WIDE,
      height,
      ODD_WIDE,
      kind === "null" ? "lnb-profile-null" : "lnb-profile-odd",
    ),
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${HIGH + 1}`,
      preserveAspectRatio: "none",
      class: `lnb-profile-${profile.kind}`,
    },
    behind,
    bars,
    odd,
  );
}

/**
 * The heights of all rows in the bars of a profile; none where these are other bars.
 * @param {Lnb.Profile} profile @param {Lnb.Profile | null} all
 */
function barsBehind({ edges, bars, wheres }, all) {
  if (!all) return [];
  if (edges) return same(edges, all.edges) && bars.length === all.bars.length ? all.bars : [];
  return wheres.map((where) => all.bars[all.wheres.indexOf(where)] ?? 0);
}

/** @type {Record<string, (sampled: string) => string>} */
const SAMPLES = {
  all: (sampled) => `all ${sampled} rows`,
  passing: (sampled) => `${sampled} rows that pass, of a random sample`,
  first: (sampled) => `the first ${sampled} rows`,
  index: (sampled) => `all ${sampled} rows, exact, from the index`,
  random: (sampled) => `a random sample of ${sampled} rows`,
};

/** The same as words. @param {Lnb.Profile} profile */
export function profileWords(profile) {
  const { kind, sampled, nulls, low, high, labels, sample, odd, indexed_range } = profile;
  const otherBars = odd.filter((oddity) => oddity.kind !== "null");
  return [
    SAMPLES[sample]?.(count(sampled)) ?? SAMPLES.random(count(sampled)),
    nulls ? `${(nulls * 100).toFixed(1)} % null` : "no nulls",
    distinctWords(profile),
    low &&
      `${low} to ${high}${indexed_range ? " (range and nulls: all rows, from the index)" : ""}`,
    ...otherBars.map((oddity) => `${count(oddity.count)} ${oddity.label}`),
    labels.length &&
      (kind === "text" || kind === "bool") &&
      `commonest: ${labels.slice(0, 4).join(", ")}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

/** @param {Lnb.Profile} profile */
function distinctWords({ distinct, exact, estimated }) {
  if (distinct < 0) return "";
  if (estimated) return `about ${count(distinct)} distinct`;
  return `${exact ? "" : "at least "}${count(distinct)} distinct`;
}
