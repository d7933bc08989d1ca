// The two handles of the timeline: B is the version shown, A the one that it is compared with.

/**
 * @typedef {{branch: string|null, version: number}} Place
 * @typedef {{a: Place|null, b: Place}} Range
 */

/** @param {import("./view.js").Context} ctx */
export function versionRange(ctx) {
  const listeners = new Set();
  const reached = new Set();
  let pinned = null; // A as a person put it; without, A is the version before B
  let moving = null; // both handles while one is dragged

  const here = () => ({ branch: ctx.screen().branch ?? null, version: ctx.screen().version });
  const range = {
    /** @returns {Range} */
    get() {
      const b = moving?.b ?? here();
      return { a: moving?.a ?? pinned ?? versionBefore(ctx.screen().timeline, b), b };
    },
    get pinned() {
      return pinned !== null;
    },
    /**
     * Move the handles: `a` null lets A follow B again. While `dragging` only listeners hear of it;
     * a move of B that is no drag travels there.
     */
    set({ a, b }, { dragging = false } = {}) {
      const stays = range.get().a;
      if (dragging) moving = { a: a ?? stays, b: b ?? moving?.b ?? null };
      else {
        // Who drags B means a range: A stays where it was meanwhile.
        if (moving) pinned = stays;
        moving = null;
        if (a !== undefined) pinned = a;
        if (b) ctx.travel(b);
      }
      tell(dragging);
    },
    /** Somebody reaches for handle "a" or "b": what a drag needs can be looked for. */
    reach(end) {
      for (const told of reached) told(end);
    },
    onReach(told) {
      reached.add(told);
      return () => reached.delete(told);
    },
    /** Hear of every move: `told(range, {dragging})`. Returns how to stop. */
    on(told) {
      listeners.add(told);
      return () => listeners.delete(told);
    },
  };

  function tell(dragging) {
    for (const told of listeners) told(range.get(), { dragging });
  }
  ctx.onScreen(() => tell(false));
  return range;
}

/** The version before a place on its branch, or where the branch was forked; null when there is none. */
export function versionBefore(timeline, { branch, version }) {
  const lane = timeline?.lanes?.find((one) => (one.branch ?? null) === branch);
  if (!lane) return null;
  let found = null;
  for (const [first, length] of lane.runs) {
    if (first >= version) break;
    found = Math.min(version - 1, first + length - 1);
  }
  if (found !== null) return { branch, version: found };
  return lane.fork ? { branch: lane.fork[0] ?? null, version: lane.fork[1] } : null;
}

export function samePlace(one, other) {
  return (
    Boolean(one && other) &&
    one.version === other.version &&
    (one.branch ?? null) === (other.branch ?? null)
  );
}

/** "main:12". */
export function placeLabel(place) {
  return place ? `${place.branch ?? "main"}:${place.version}` : "nothing";
}
