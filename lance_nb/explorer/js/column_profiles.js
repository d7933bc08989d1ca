// What the values of the columns in sight look like: asked for in the background, drawn in the
// head.

import { barsWide, ODD_WIDE, slotsOf } from "./bar_selection.js";
import { count, svg } from "./dom.js";

const AT_ONCE = 12;
const PAUSE_MS = 250; // the rows come first

/** @param {Lnb.Context} ctx @param {() => void} changed called when profiles arrived */
export function columnProfiles(ctx, changed) {
  /** @type {Lnb.Args | null} */
  let place = null;
  /** @type {Map<number, Lnb.Profile | null>} */
  let known = new Map();
  /** @type {Lnb.Asked | null} */
  let asking = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {{columns: number[], numRows: number} | null} */
  let sight = null;
  /** @type {{at: number, notify: (profile: Lnb.Profile | null) => void} | null} */
  let waiting = null; // who wants one profile as soon as it is known

  async function look() {
    if (!sight) return;
    const { columns, numRows } = sight;
    const missing = columns.filter((at) => !known.has(at));
    if (!missing.length || asking || !numRows || ctx.kernel.state !== "live") return;
    const first = missing[0];
    const last = missing.filter((at) => at < first + AT_ONCE).at(-1) ?? first;
    const wanted = last - first + 1;
    const asked = place;
    asking = ctx.kernel.ask(
      "rows.profile",
      { ...asked, first, count: wanted, num_rows: numRows },
      { quiet: true },
    );
    /** @type {Lnb.Profile[]} */
    let found = [];
    try {
      ({
        result: { profiles: found },
      } = await asking);
    } catch {
      // Columns whose values cannot be read have no picture; the rows themselves say why.
    }
    asking = null;
    if (asked === place) {
      for (let at = first; at < first + wanted; at += 1) known.set(at, null);
      for (const profile of found) known.set(profile.column, profile);
      changed();
      if (waiting && known.has(waiting.at)) waiting.notify(known.get(waiting.at) ?? null);
    }
    if (!timer) look();
  }

  ctx.onClose(() => {
    clearTimeout(timer);
    asking?.cancel();
  });
  return {
    /** @param {Lnb.Args | null} next */
    reset(next) {
      asking?.cancel(); // nobody waits for what the version before looks like
      place = next;
      known = new Map();
      clearTimeout(timer);
      timer = undefined;
    },
    /** @param {number[]} columns @param {number} numRows */
    want(columns, numRows) {
      sight = { columns, numRows };
      if (!timer)
        timer = setTimeout(() => {
          timer = undefined;
          look();
        }, PAUSE_MS);
    },
    of: (/** @type {number} */ index) => known.get(index) ?? null,
    /**
     * Whether one is on its way; `notify(profile)` is called then, of the newest that was waited
     * for.
     * @param {number} index @param {(profile: Lnb.Profile | null) => void} notify
     */
    comes(index, notify) {
      const coming = !known.has(index) && (sight?.numRows ?? 0) > 0 && ctx.kernel.state === "live";
      waiting = coming ? { at: index, notify } : null;
      return coming;
    },
    /** Keep a profile that was made on demand. @param {Lnb.Profile} profile */
    learn(profile) {
      known.set(profile.column, profile);
      changed();
    },
    /**
     * Draw into a cell of the head; returns the same as words.
     * @param {Lnb.Recycled} element @param {number} index
     */
    draw(element, index) {
      const profile = known.get(index) ?? null;
      if (element.lnb === profile) return profile ? profileWords(profile) : "";
      element.lnb = profile;
      element.replaceChildren(...(profile ? [profilePicture(profile)] : []));
      return profile ? profileWords(profile) : "";
    },
  };
}

const WIDE = 100;
const HIGH = 16;

/** The bars of a profile, then those of odd values. @param {Lnb.Profile} profile */
export function profilePicture(profile) {
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
  const bars = profile.bars.map((height, at) => bar(at * each, height, each, null));
  const first = WIDE - ODD_WIDE * profile.odd.length;
  const odd = profile.odd.map(({ kind, height }, at) =>
    bar(
      first + at * ODD_WIDE,
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
    bars,
    odd,
  );
}

/** @type {Record<string, (sampled: string) => string>} */
const SAMPLES = {
  all: (sampled) => `all ${sampled} rows`,
  first: (sampled) => `the first ${sampled} rows`,
  index: (sampled) => `all ${sampled} rows, exact, from the index`,
  random: (sampled) => `a random sample of ${sampled} rows`,
};

/** The same as words. @param {Lnb.Profile} profile */
export function profileWords(profile) {
  const { kind, sampled, nulls, low, high, labels, sample, odd } = profile;
  const others = odd.filter((one) => one.kind !== "null");
  return [
    SAMPLES[sample]?.(count(sampled)) ?? SAMPLES.random(count(sampled)),
    nulls ? `${(nulls * 100).toFixed(1)} % null` : "no nulls",
    distinctWords(profile),
    low && `${low} to ${high}`,
    ...others.map((one) => `${count(one.count)} ${one.label}`),
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
