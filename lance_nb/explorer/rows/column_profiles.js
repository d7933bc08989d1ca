// What the values of the columns in sight look like: asked for in the background, drawn in the
// head. Under a filter they are drawn over those of all rows: of a sample at once, of all rows
// behind it.

import { shortNumber } from "../js/columns.js";
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

export class ColumnProfiles {
  /** @type {Lnb.Args | null} */
  place = null;
  /** @type {Lnb.Args | null} */
  base = null; // the same without the filter
  /** @type {Map<number, Lnb.Profile | null>} */
  profiles = new Map();
  /** @type {Map<number, Lnb.Profile>} */
  over = new Map(); // of the rows that pass
  /** @type {Set<number>} */
  fresh = new Set(); // those of them for the conditions of now
  /** @type {Conditions} */
  conditions = [];
  filter = "";
  /** @type {Passing | null} */
  counts = null;
  rests = false; // whether the conditions are final, so that every row may be counted
  /** @type {Lnb.Asked | null} */
  asking = null;
  /** @type {Lnb.Asked | null} */
  counting = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** @type {{columns: number[], numRows: number} | null} */
  sight = null;
  /** @type {{at: number, notify: (profile: Lnb.Profile | null) => void} | null} */
  watching = null; // who shows one profile

  /**
   * @param {Lnb.Context} ctx
   * @param {() => void} changed called when profiles arrived
   * @param {(passing: Passing, filter: string) => void} [passed] called when those of the sample
   *   are counted
   * @param {(words: string) => void} [say] what the histograms under a filter are of
   */
  constructor(ctx, changed, passed = () => {}, say = () => {}) {
    this.ctx = ctx;
    this.changed = changed;
    this.passed = passed;
    this.say = say;
    this.crossing = ctx.kernel.line({ quiet: true, progress: () => {} });
    ctx.onClose(() => {
      this.stop();
      this.asking?.cancel();
      this.crossing.cancel();
    });
  }

  /** @param {number} index */
  of = (index) => this.over.get(index) ?? this.profiles.get(index) ?? null;

  async look() {
    if (!this.sight) return;
    const { columns, numRows } = this.sight;
    const missing = columns.filter((index) => !this.profiles.has(index));
    if (!missing.length || this.asking || !numRows || this.ctx.kernel.state !== "live") return;
    const first = missing[0];
    const last = missing.filter((index) => index < first + AT_ONCE).at(-1) ?? first;
    const numMissing = last - first + 1;
    const baseThen = this.base;
    this.asking = this.ctx.kernel.ask(
      "rows.profile",
      { ...baseThen, first, count: numMissing, num_rows: numRows },
      { quiet: true },
    );
    /** @type {Lnb.Profile[]} */
    let arrived = [];
    try {
      arrived = (await this.asking).result.profiles;
    } catch {
      // Columns whose values cannot be read have no picture; the rows themselves say why.
    }
    this.asking = null;
    if (baseThen === this.base) {
      for (let index = first; index < first + numMissing; index += 1)
        this.profiles.set(index, null);
      for (const profile of arrived) this.profiles.set(profile.column, profile);
      this.tell();
      this.cross();
    }
    if (!this.timer) this.look();
  }

  tell() {
    this.changed();
    if (this.watching && this.profiles.has(this.watching.at))
      this.watching.notify(this.of(this.watching.at));
  }

  /** Profile the sampled rows that pass, in the columns in sight. */
  cross() {
    if (!this.conditions.length || !this.sight || this.ctx.kernel.state !== "live") return;
    const columns = this.sight.columns
      .filter((index) => this.profiles.get(index) && !this.fresh.has(index))
      .slice(0, AT_ONCE);
    if (this.counts && !columns.length) return;
    const conditionsThen = this.conditions;
    this.crossing(
      "rows.cross",
      { ...this.place, filter: this.filter, columns, conditions: this.conditions },
      ({ result }) => {
        if (conditionsThen !== this.conditions) return;
        const { profiles: arrived, ...passing } = result;
        this.counts = passing;
        for (const index of columns) this.fresh.add(index);
        for (const profile of arrived) this.over.set(profile.column, profile);
        this.passed(passing, this.filter);
        this.tell();
        this.cross();
        if (!this.timer) this.countRows();
      },
      () => {}, // the filter itself is asked for beside this, and says what is wrong
    );
  }

  /** Count every row that passes, column by column. */
  async countRows() {
    if (!this.counts || !this.sight || this.counting) return;
    const conditionsThen = this.conditions;
    const sample = `a sample of ${count(this.counts.sampled)} rows`;
    const nextInexact = () =>
      this.sight?.columns.find(
        (index) => this.fresh.has(index) && this.over.has(index) && !this.over.get(index)?.exact,
      );
    const isSmall = this.counts.num_rows <= COUNTED_ROWS;
    let inexact = nextInexact();
    if (inexact !== undefined)
      this.say(`histograms: ${sample}${this.rests && isSmall ? "; counting every row…" : ""}`);
    while (this.rests && isSmall && inexact !== undefined && conditionsThen === this.conditions) {
      this.counting = this.ctx.kernel.ask(
        "rows.exact",
        { ...this.place, column: inexact, conditions: this.conditions },
        { quiet: true, progress: () => {} },
      );
      try {
        const { result } = await this.counting;
        if (conditionsThen !== this.conditions) break;
        this.over.set(inexact, result.profile);
        this.tell();
      } catch {
        break; // what the sample says stays
      }
      inexact = nextInexact();
    }
    this.counting = null;
    if (conditionsThen !== this.conditions) this.countRows();
    else if (inexact === undefined && this.over.size) this.say("histograms: every row");
  }

  stop() {
    this.counting?.cancel();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /**
   * Filter by other conditions; `text` is the filter that they make. Those of a brush that moves
   * are not final.
   * @param {Conditions} next @param {string} text
   */
  setConditions(next, text) {
    if (same(next, this.conditions)) return;
    this.counting?.cancel();
    this.conditions = next;
    this.filter = text;
    this.counts = null;
    this.rests = false;
    this.fresh.clear();
    if (next.length) return;
    this.crossing.cancel();
    this.over.clear();
    this.say("");
    this.tell();
  }

  later() {
    this.timer ||= setTimeout(() => {
      this.timer = undefined;
      this.look();
      this.cross();
      this.countRows();
    }, PAUSE_MS);
  }

  /**
   * Show other rows. Rows that are chosen otherwise than by a filter are profiled by themselves.
   * @param {Lnb.Args | null} next @param {Conditions} [wanted] what makes its filter
   * @param {boolean} [chosen]
   */
  reset(next, wanted = [], chosen = false) {
    this.stop();
    const otherArgs = next && !chosen ? { ...next, filter: null, arranged: null } : next;
    this.place = next;
    if (!same(otherArgs, this.base)) {
      this.asking?.cancel(); // nobody waits for what the version before looks like
      this.base = otherArgs;
      this.profiles = new Map();
      this.over.clear();
      this.fresh.clear();
    }
    this.setConditions(chosen ? [] : wanted, next?.filter ?? "");
    this.rests = true;
    this.cross();
    this.later();
  }

  /** Filter by what is brushed now. @param {Conditions} next @param {string} text */
  brush(next, text) {
    this.setConditions(next, text);
    this.cross();
  }

  /** What requests about the rows that pass need beside the place. */
  crossed = () => (this.conditions.length ? { conditions: this.conditions } : {});

  /** @param {number[]} columns @param {number} numRows */
  want(columns, numRows) {
    // Where no row passes there may be rows to profile.
    this.sight = { columns, numRows: this.place?.filter ? Math.max(1, numRows) : numRows };
    this.later();
  }

  /**
   * Whether one is on its way; `notify(profile)` is called whenever it changes, for the newest
   * that is watched.
   * @param {number} index @param {(profile: Lnb.Profile | null) => void} notify
   */
  comes(index, notify) {
    this.watching = { at: index, notify };
    return (
      !this.profiles.has(index) &&
      (this.sight?.numRows ?? 0) > 0 &&
      this.ctx.kernel.state === "live"
    );
  }

  /** Keep a profile that was made on demand. @param {Lnb.Profile} profile */
  learn(profile) {
    if (this.conditions.length) this.over.set(profile.column, profile);
    else this.profiles.set(profile.column, profile);
    this.changed();
  }

  /**
   * Draw into a cell of the head; returns the same as words.
   * @param {Lnb.Recycled} element @param {number} index
   */
  draw(element, index) {
    const profile = this.of(index);
    const all = this.over.has(index) ? (this.profiles.get(index) ?? null) : null;
    const words = profile ? profileWords(profile) : "";
    if (element.lnb?.profile === profile && element.lnb?.all === all) return words;
    element.lnb = { profile, all };
    element.replaceChildren(...(profile ? [profilePicture(profile, all)] : []));
    return words;
  }
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

/** Range, nulls and distinct values in a line. @param {Lnb.Profile} profile */
export function profileFacts(profile) {
  const { nulls, low, high, distinct, exact, estimated } = profile;
  const about = estimated ? "~" : exact || profile.sample === "all" ? "" : "≥ ";
  return [
    low && [...new Set([low, high].map((end) => shortNumber(end) ?? end))].join(" – "),
    nulls && `${Number((nulls * 100).toPrecision(2))} % null`,
    distinct >= 0 && `${about}${count(distinct)} distinct`,
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
