// The two handles of the timeline: B is the version shown, A the one that it is compared with.

/** @param {Lnb.Context} ctx @returns {Lnb.VersionRange} */
export function versionRange(ctx) {
  /** @type {Set<(range: Lnb.Range, how: {dragging: boolean}) => void>} */
  const listeners = new Set();
  /** @type {Set<(end: "a" | "b") => void>} */
  const reachListeners = new Set();
  /** @type {Set<() => void>} */
  const comparedListeners = new Set();
  /** @type {{a: Lnb.Place, b: Lnb.Place, counts: Lnb.RowCounts} | null} */
  let compared = null;
  /** @type {Lnb.Place | null} A as the user put it; without, A is the version before B */
  let pinned = null;
  /** @type {{a: Lnb.Place | null, b: Lnb.Place | null} | null} both handles while one is dragged */
  let moving = null;

  const current = () => ({ branch: ctx.screen().branch ?? null, version: ctx.screen().version });
  /** @type {Lnb.VersionRange} */
  const range = {
    get() {
      const b = moving?.b ?? current();
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
      notify(dragging);
    },
    /** A drag was given up: the handles stand where they stood. */
    giveUp() {
      moving = null;
      notify(false);
    },
    /** Somebody reaches for handle "a" or "b": what a drag needs can be looked for. */
    reach(end) {
      for (const listener of reachListeners) listener(end);
    },
    onReach(listener) {
      reachListeners.add(listener);
      return () => reachListeners.delete(listener);
    },
    /** How many rows differ between two versions, null where nobody has compared them. */
    compared: (a, b) =>
      compared && samePlace(compared.a, a) && samePlace(compared.b, b) ? compared.counts : null,
    /** Two versions were compared: all views tell the same numbers. */
    compare(a, b, counts) {
      compared = { a, b, counts };
      for (const listener of comparedListeners) listener();
    },
    onCompared(listener) {
      comparedListeners.add(listener);
      return () => comparedListeners.delete(listener);
    },
    /** Call `listener(range, {dragging})` on every move. Returns how to stop. */
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  /** @param {boolean} dragging */
  function notify(dragging) {
    for (const listener of listeners) listener(range.get(), { dragging });
  }
  ctx.onScreen(() => notify(false));
  return range;
}

/**
 * The version before a place on its branch, or where the branch was forked; null when there is
 * none.
 * @param {Lnb.Timeline | undefined} timeline @param {Lnb.Place} place @returns {Lnb.Place | null}
 */
export function versionBefore(timeline, { branch, version }) {
  const lane = timeline?.lanes?.find((lane_) => (lane_.branch ?? null) === branch);
  if (!lane) return null;
  let match = null;
  for (const [first, length] of lane.runs) {
    if (first >= version) break;
    match = Math.min(version - 1, first + length - 1);
  }
  if (match !== null) return { branch, version: match };
  return lane.fork ? { branch: lane.fork[0] ?? null, version: lane.fork[1] } : null;
}

/** @param {Lnb.Place | null | undefined} left @param {Lnb.Place | null | undefined} other */
export function samePlace(left, other) {
  return (
    Boolean(left && other) &&
    left?.version === other?.version &&
    (left?.branch ?? null) === (other?.branch ?? null)
  );
}

/** "main:12". @param {Lnb.Place | null} place */
export function placeLabel(place) {
  return place ? `${place.branch ?? "main"}:${place.version}` : "nothing";
}
