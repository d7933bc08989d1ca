// Where the bars of a histogram are, and choosing them by dragging over it, or by clicking one.

import { followPointer } from "../js/pointer_drag.js";

export const ODD_WIDE = 4; // of 100: a bar for nulls, NaN and the like, on the right

/**
 * How much of the width, of 100, the histogram takes beside bars for odd values.
 * @param {Lnb.Profile} profile
 */
export const barsWide = ({ odd = [] }) => (odd.length ? 100 - ODD_WIDE * (odd.length + 1) : 100);

/**
 * @param {HTMLElement} element shows a profile
 * @param {() => Lnb.Profile|null} profileOf called once for each press
 * @param {(from: number, to: number) => void} chosen first and last bar
 * @param {(odd: Lnb.OddValues) => void} [chosenOdd]
 * @param {(from: number, to: number) => void} [moved] while they are chosen; -1, -1 when that ends
 *   without a choice
 */
export function selectBars(element, profileOf, chosen, chosenOdd, moved = () => {}) {
  element.addEventListener("pointerdown", (event) => {
    const profile = profileOf();
    if (!profile || event.button) return;
    const box = element.getBoundingClientRect();
    const wide = barsWide(profile);
    /** @param {number} x */
    const share = (x) => (100 * (x - box.left)) / box.width;
    const odd = oddAt(profile, share(event.clientX));
    if (!odd && !profile.bars.length) return;
    event.preventDefault();
    if (odd) {
      chosenOdd?.(odd);
      return;
    }
    const slots = slotsOf(profile);
    /** @param {number} x */
    const barAt = (x) =>
      Math.max(0, Math.min(profile.bars.length - 1, Math.floor((share(x) / wide) * slots)));
    const start = barAt(event.clientX);
    let end = start;
    const ranged = profile.kind === "number" || profile.kind === "time";
    const draw = () => placeBrush(element, profile, Math.min(start, end), Math.max(start, end));
    /** @param {PointerEvent} position */
    const move = (position) => {
      const before = end;
      if (ranged) end = barAt(position.clientX);
      draw();
      if (end !== before) moved(Math.min(start, end), Math.max(start, end));
    };
    element.classList.add("lnb-brushing");
    draw();
    followPointer(element, event, {
      move,
      end(isDone) {
        element.classList.remove("lnb-brushing");
        if (isDone) chosen(Math.min(start, end), Math.max(start, end));
        else moved(-1, -1);
      },
    });
  });
}

/**
 * Say where the bars are that are chosen, for the style sheet.
 * @param {HTMLElement} element @param {Lnb.Profile} profile @param {number} from
 * @param {number} to
 */
function placeBrush(element, profile, from, to) {
  const [wide, slots] = [barsWide(profile), slotsOf(profile)];
  element.style.setProperty("--lnb-from", `${(wide * from) / slots}%`);
  element.style.setProperty("--lnb-to", `${(wide * (to + 1)) / slots}%`);
}

/**
 * Mark the bars that are chosen, while none are being chosen.
 * @param {HTMLElement} element @param {Lnb.Profile | null} profile
 * @param {[from: number, to: number] | null} bars
 */
export function markBars(element, profile, bars) {
  if (element.classList.contains("lnb-brushing")) return;
  const isMarked = Boolean(profile && bars);
  if (element.classList.contains("lnb-brushed") !== isMarked)
    element.classList.toggle("lnb-brushed", isMarked);
  if (profile && bars) placeBrush(element, profile, ...bars);
}

/**
 * The odd values whose bar is at a place.
 * @param {Lnb.Profile} profile @param {number} index of 100
 */
function oddAt({ odd = [] }, index) {
  return odd[Math.floor((index - (100 - ODD_WIDE * odd.length)) / ODD_WIDE)] ?? null;
}

/**
 * How many bars fit in the width: few bars are not drawn wider than a quarter.
 * @param {Lnb.Profile} profile
 */
export const slotsOf = (profile) => Math.max(profile.bars.length, 4);

/**
 * The condition that bars of a profile mean.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args place and query @param {Lnb.Profile} profile
 * @param {number} from @param {number} to @returns {Promise<string>}
 */
export async function conditionOf(ctx, args, profile, from, to) {
  if (!profile.edges) return profile.wheres[from] ?? "";
  const [low, high] = profile.edges;
  const width = (high - low) / profile.bars.length;
  const last = to === profile.bars.length - 1;
  // The ends are open, for values that a sample did not see, unless the others have their own bars.
  const odd = new Set((profile.odd ?? []).map(({ kind }) => kind));
  const isLowest = !from && !odd.has("below") && !odd.has("-inf");
  const isHighest = last && !odd.has("above") && !odd.has("inf");
  const range = {
    low: isLowest ? null : low + from * width,
    high: isHighest ? null : last ? high : low + (to + 1) * width,
    closed: last && !isHighest,
  };
  const { result } = await ctx.kernel.ask("rows.range", {
    ...args,
    column: profile.column,
    ...range,
  });
  return result.where;
}

/**
 * The condition of values that have a bar of their own.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args place and query @param {Lnb.Profile} profile
 * @param {Lnb.OddValues} odd @returns {Promise<string>}
 */
export async function conditionOfOdd(ctx, args, profile, odd) {
  const place = profile.edges?.[odd.kind === "below" ? 0 : 1] ?? null;
  const { result } = await ctx.kernel.ask("rows.range", {
    ...args,
    column: profile.column,
    odd: odd.kind,
    place,
  });
  return result.where;
}
