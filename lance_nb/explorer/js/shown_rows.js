// Which rows are shown and which are selected: one place for the filter, the order and the
// selection of a card. The grid and the other tabs set them here and follow them here.

import { gridSelection } from "./grid_selection.js";

const MAX_PLACES = 64; // grids in which the held rows are known

/** @returns {Lnb.Look} every row and column, as stored */
export const allRows = () => ({
  filter: null,
  system: false,
  order: null,
  near: null,
  within: null,
  search: null,
  choice: null,
});

/** @param {Lnb.Json} left @param {Lnb.Json} other */
export const same = (left, other) => JSON.stringify(left) === JSON.stringify(other);

/**
 * Whether both show the same rows in the same order.
 * @param {Lnb.Look} left @param {Lnb.Look} other
 */
export function sameRows(left, other) {
  /** @param {Lnb.Look} look */
  const rows = ({ filter, order, near, within, search }) => ({
    filter,
    order,
    near,
    within,
    search,
  });
  return same(rows(left), rows(other));
}

/**
 * The grid of a lens of a version: equal names have the same rows at the same positions.
 * @param {Lnb.Args} grid
 */
const nameOf = ({ branch, version, filter, arranged }) =>
  JSON.stringify([branch ?? null, version, filter, arranged]);

/** @param {Lnb.Context} ctx @returns {Lnb.ShownRows} */
export function shownRows(ctx) {
  const look_ = allRows();
  /** @type {Lnb.Lens} */
  const shownLens = { filter: null, system: false, arranged: null, shown: null };
  /** @type {() => number | null} */
  let cursor = () => null;
  /** @type {Lnb.Lens} */
  const currentLens = { filter: null, system: false, arranged: null, shown: null };
  /** @type {Set<Lnb.RowsListener>} */
  const listeners = new Set();
  /** @type {{wanted: Lnb.Look | null, turn: number, running: Lnb.Asked | null}} */
  const now = { wanted: null, turn: 0, running: null };
  /**
   * Where the rows were that are looked for among others: those selected, and that of the keyboard.
   * @type {{before: Lnb.Args, ranges: [number, number][], row: number | null} | null}
   */
  let origin = null;
  /** @type {Lnb.Asked | null} */
  let holding = null;
  /**
   * Where the held rows are, in each grid in which they were looked for: as long as other rows are
   * not selected and the keyboard stays, the kernel is not asked twice. `cursor` is where the
   * keyboard then was, also when its row was not found.
   * @typedef {{ranges: [number, number][], row: number | null, words: string,
   *   cursor: number | null}} Held
   * @type {Map<string, Held>}
   */
  let cache = new Map();
  let unasked = false; // another version is shown, and what was asked is still to be asked of it
  /** @type {Lnb.Place | null} */
  let place = null;
  const counts = { rows: 0, columns: 0, pinned: 0, found: 0 };
  const selection = gridSelection(
    ctx,
    () => currentLens,
    (byHand) => {
      origin = null;
      if (byHand) cache = new Map(); // no longer what was selected when the grids were left
      notify((listener) => listener.selected?.());
    },
  );

  /** @param {(listener: Lnb.RowsListener) => void} call */
  function notify(call) {
    for (const listener of listeners) call(listener);
  }

  /**
   * @param {number} rows @param {number} columns
   * @param {Omit<Lnb.RowsShown, "place">} details
   */
  function begin(rows, columns, details) {
    const { before } = details;
    const stays = before !== null && !unasked && sameRows(look_, before);
    // What was asked of the version before is asked of this one: there the rows are looked for.
    unasked = before === null && !same(look_, allRows());
    const from = stays ? null : (origin ?? departure());
    selection.reset({
      rows: stays,
      columns: counts.columns === columns && same(look_.choice, before?.choice ?? null),
    });
    Object.assign(counts, { rows, columns, pinned: details.result?.pinned ?? 0 });
    counts.found = Number(Boolean(details.result?.found_by));
    const { branch, version } = ctx.screen();
    place = { branch, version };
    Object.assign(shownLens, currentLens);
    notify((listener) => listener.shown?.({ place: { branch, version }, ...details }));
    origin = from;
    if (!unasked) hold();
  }

  /** Where the rows are, before others are shown. */
  function departure() {
    holding?.cancel();
    const { ranges } = selection.wanted();
    const row = cursor();
    if (!place || ctx.kernel.state !== "live" || !(ranges.length || row)) return null;
    const before = { ...place, ...shownLens };
    const held = cache.get(nameOf(before));
    if (!held || held.cursor !== row || !same(held.ranges, ranges)) {
      cache = new Map();
      keep(before, { ranges, row, words: "", cursor: row });
    }
    return { before, ranges, row };
  }

  /** @param {Lnb.Args} grid @param {Held} held */
  function keep(grid, held) {
    cache.set(nameOf(grid), held);
    if (cache.size > MAX_PLACES) cache.delete(/** @type {string} */ (cache.keys().next().value));
  }

  /** @param {Omit<Held, "cursor">} held */
  function take({ ranges, row, words }) {
    selection.restore(ranges);
    notify((listener) => listener.held?.({ row, words }));
  }

  /** Select and show the same rows among those that are shown now. */
  async function hold() {
    const originThen = origin;
    if (!originThen) return;
    const { branch, version } = ctx.screen();
    const grid = { branch, version, ...currentLens };
    const cached = cache.get(nameOf(grid));
    if (cached) {
      holding = null;
      take(cached);
      origin = null;
      return;
    }
    const answer = ctx.kernel.ask("rows.hold", { ...grid, ...originThen });
    holding = answer;
    try {
      const { result } = await answer;
      if (origin !== originThen || holding !== answer) return;
      take(result);
      keep(grid, { ...result, ranges: selection.wanted().ranges, cursor: cursor() });
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (holding === answer) ctx.announce(`The selected rows were not found again: ${message}`);
    }
    if (holding !== answer) return;
    holding = null;
    origin = null;
  }

  /** @param {Partial<Lnb.Look>} change */
  async function look(change) {
    const { branch, version } = ctx.screen();
    const look = { ...(now.wanted ?? look_), ...change };
    // Rows are searched for words or for neighbours, not for both.
    if (change.near) look.search = null;
    if (change.search) look.near = null;
    now.wanted = look;
    now.turn += 1;
    const { turn } = now;
    now.running?.cancel();
    /** @param {number} done @param {number} total */
    const progress = (done, total) => {
      if (turn === now.turn) notify((listener) => listener.busy?.(done, total));
    };
    // Where only other columns are asked for, the kernel uses the order that it keeps.
    const keep =
      currentLens.arranged !== null && sameRows(look, look_) ? { keep: currentLens.arranged } : {};
    const args = { branch, version, ...look, ...keep };
    const answer = ctx.kernel.ask("rows.look", args, { progress });
    now.running = answer;
    const { filter, order, near, within, search } = look;
    if (filter || order || near || within || search) progress(0, 0);
    try {
      const { result } = await answer;
      if (turn !== now.turn) return;
      const before = { ...look_ };
      Object.assign(look_, look);
      Object.assign(currentLens, {
        filter: result.filter ?? look.filter, // a search adds its condition
        system: look.system,
        arranged: result.arranged,
        shown: result.shown ?? null,
      });
      begin(result.num_rows, result.num_columns, { result, before, part: null });
    } catch (error) {
      // What was shown stays.
      if (turn === now.turn)
        notify((listener) => listener.failed?.(/** @type {Lnb.Failure} */ (error)));
    }
    if (now.running !== answer) return;
    now.running = null;
    now.wanted = null;
  }

  let shown = "";
  ctx.onScreen(
    (screen) => {
      const part = screen.rows;
      if (!part) return;
      now.running?.cancel();
      now.turn += 1;
      now.wanted = null;
      const place = `${screen.branch ?? ""}:${screen.version}`;
      // Rows that were chosen are those of one version.
      if (shown && shown !== place) look_.within = null;
      shown = place;
      Object.assign(currentLens, { filter: null, system: false, arranged: null, shown: null });
      begin(part.num_rows ?? 0, part.num_columns ?? 0, { result: null, before: null, part });
      // What was asked of the version before is asked of this one.
      if (!same(look_, allRows())) look({});
    },
    ["rows"],
  );

  return {
    asked: look_,
    lens: currentLens,
    selection,
    get wanted() {
      return now.wanted ?? look_;
    },
    get numRows() {
      return counts.rows;
    },
    get numColumns() {
      return counts.columns;
    },
    get numFound() {
      return counts.found;
    },
    get numPinned() {
      return counts.pinned;
    },
    look,
    cancel: () => now.running?.cancel(),
    /** Say where the row of the keyboard is; null keeps none. */
    followRow(where) {
      cursor = where;
    },
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
