// Choosing bars of a histogram by dragging over it, or by clicking one.

/**
 * @param {HTMLElement} element shows a profile @param {() => Lnb.Profile|null} profileOf
 * @param {(from: number, to: number) => void} chosen first and last bar
 */
export function selectBars(element, profileOf, chosen) {
  element.addEventListener("pointerdown", (event) => {
    const profile = profileOf();
    if (!profile?.bars.length || event.button) return;
    event.preventDefault();
    element.setPointerCapture(event.pointerId);
    const box = element.getBoundingClientRect();
    const slots = slotsOf(profile);
    /** @param {number} x */
    const barAt = (x) =>
      Math.max(
        0,
        Math.min(profile.bars.length - 1, Math.floor(((x - box.left) / box.width) * slots)),
      );
    const start = barAt(event.clientX);
    let end = start;
    const ranged = profile.kind === "number" || profile.kind === "time";
    const draw = () => {
      const [from, to] = [Math.min(start, end), Math.max(start, end)];
      element.style.setProperty("--lnb-from", `${(100 * from) / slots}%`);
      element.style.setProperty("--lnb-to", `${(100 * (to + 1)) / slots}%`);
    };
    /** @param {PointerEvent} at */
    const move = (at) => {
      if (ranged) end = barAt(at.clientX);
      draw();
    };
    /** @param {PointerEvent} done */
    const finish = (done) => {
      element.classList.remove("lnb-brushing");
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerup", finish);
      element.removeEventListener("pointercancel", finish);
      if (done.type === "pointerup") chosen(Math.min(start, end), Math.max(start, end));
    };
    element.classList.add("lnb-brushing");
    draw();
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", finish);
    element.addEventListener("pointercancel", finish);
  });
}

/**
 * How many bars fit in the width: few bars are not drawn wider than a quarter.
 * @param {Lnb.Profile} profile
 */
export const slotsOf = (profile) => Math.max(profile.bars.length, 4);

/**
 * The condition that bars of a profile mean.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args place and lens @param {Lnb.Profile} profile
 * @param {number} from @param {number} to @returns {Promise<string>}
 */
export async function conditionOf(ctx, args, profile, from, to) {
  if (!profile.edges) return profile.wheres[from] ?? "";
  const [low, high] = profile.edges;
  const width = (high - low) / profile.bars.length;
  const last = to === profile.bars.length - 1;
  const range = {
    low: from ? low + from * width : null,
    high: last ? null : low + (to + 1) * width,
    closed: false,
  };
  if (last && !from) range.low = null;
  const { result } = await ctx.kernel.ask("rows.range", {
    ...args,
    column: profile.column,
    ...range,
  });
  return result.where;
}
