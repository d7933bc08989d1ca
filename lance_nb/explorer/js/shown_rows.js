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
 * The grid of a query of a version: equal names have the same rows at the same positions.
 * @param {Lnb.Args} grid
 */
const nameOf = ({ branch, version, filter, arranged }) =>
  JSON.stringify([branch ?? null, version, filter, arranged]);

/** What is shown and selected in a card. */
export class ShownRows {
  /** @type {Lnb.Lens} */
  shownQuery = { filter: null, system: false, arranged: null, shown: null };
  /** @type {Lnb.Lens} */
  query = { filter: null, system: false, arranged: null, shown: null };
  /** @type {Set<Lnb.RowsListener>} */
  listeners = new Set();
  /** @type {Lnb.Look | null} what is asked for and has not come */
  pending = null;
  /** @type {Lnb.Asked | null} */
  running = null;
  turn = 0; // of the newest request
  /**
   * Where the rows were that are looked for among others: those selected, and that of the keyboard.
   * @type {{before: Lnb.Args, ranges: [number, number][], row: number | null} | null}
   */
  origin = null;
  /** @type {Lnb.Asked | null} */
  holding = null;
  /**
   * Where the held rows are, in each grid in which they were looked for: as long as other rows are
   * not selected and the keyboard stays, the kernel is not asked twice. `cursor` is where the
   * keyboard then was, also when its row was not found.
   * @typedef {{ranges: [number, number][], row: number | null, words: string,
   *   cursor: number | null}} Held
   * @type {Map<string, Held>}
   */
  cache = new Map();
  /** @type {() => number | null} where the row of the keyboard is */
  cursor = () => null;
  isStale = false; // another version is shown, and what was asked is still to be asked of it
  /** @type {Lnb.Place | null} */
  place = null;
  numRows = 0;
  numColumns = 0;
  numPinned = 0; // columns that stay on the left
  /** Columns before all others with what a search has found: distances or scores; 0 or 1. */
  numFound = 0;
  criteria = allRows();

  /** @param {Lnb.Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.selection = gridSelection(
      ctx,
      () => this.query,
      (byHand) => {
        this.origin = null;
        if (byHand) this.cache = new Map(); // no longer what was selected when the grids were left
        this.notify((listener) => listener.selected?.());
      },
    );
    let shown = "";
    ctx.onScreen(
      (screen) => {
        const part = screen.rows;
        if (!part) return;
        this.running?.cancel();
        this.turn += 1;
        this.pending = null;
        const place = `${screen.branch ?? ""}:${screen.version}`;
        // Rows that were chosen are those of one version.
        if (shown && shown !== place) this.criteria.within = null;
        shown = place;
        Object.assign(this.query, { filter: null, system: false, arranged: null, shown: null });
        this.begin(part.num_rows ?? 0, part.num_columns ?? 0, { result: null, before: null, part });
        // What was asked of the version before is asked of this one.
        if (!same(this.criteria, allRows())) this.look({});
      },
      ["rows"],
    );
  }

  /** @param {(listener: Lnb.RowsListener) => void} call */
  notify(call) {
    for (const listener of this.listeners) call(listener);
  }

  /**
   * @param {number} rows @param {number} columns
   * @param {Omit<Lnb.RowsShown, "place">} details
   */
  begin(rows, columns, details) {
    const { before } = details;
    const stays = before !== null && !this.isStale && sameRows(this.criteria, before);
    // What was asked of the version before is asked of this one: there the rows are looked for.
    this.isStale = before === null && !same(this.criteria, allRows());
    const from = stays ? null : (this.origin ?? this.departure());
    this.selection.reset({
      rows: stays,
      columns: this.numColumns === columns && same(this.criteria.choice, before?.choice ?? null),
    });
    this.numRows = rows;
    this.numColumns = columns;
    this.numPinned = (details.result ?? details.part)?.pinned ?? 0;
    this.numFound = Number(Boolean(details.result?.found_by));
    this.place = this.ctx.place();
    Object.assign(this.shownQuery, this.query);
    this.notify((listener) => listener.shown?.({ place: this.ctx.place(), ...details }));
    this.origin = from;
    if (!this.isStale) this.hold();
  }

  /** Where the rows are, before others are shown. */
  departure() {
    this.holding?.cancel();
    const { ranges } = this.selection.wanted();
    const row = this.cursor();
    if (!this.place || this.ctx.kernel.state !== "live" || !(ranges.length || row)) return null;
    const before = { ...this.place, ...this.shownQuery };
    const held = this.cache.get(nameOf(before));
    if (!held || held.cursor !== row || !same(held.ranges, ranges)) {
      this.cache = new Map();
      this.keep(before, { ranges, row, words: "", cursor: row });
    }
    return { before, ranges, row };
  }

  /** @param {Lnb.Args} grid @param {Held} held */
  keep(grid, held) {
    this.cache.set(nameOf(grid), held);
    if (this.cache.size > MAX_PLACES)
      this.cache.delete(/** @type {string} */ (this.cache.keys().next().value));
  }

  /** @param {Omit<Held, "cursor">} held */
  take({ ranges, row, words }) {
    this.selection.restore(ranges);
    this.notify((listener) => listener.held?.({ row, words }));
  }

  /** Select and show the same rows among those that are shown now. */
  async hold() {
    const originThen = this.origin;
    if (!originThen) return;
    const grid = { ...this.ctx.place(), ...this.query };
    const cached = this.cache.get(nameOf(grid));
    if (cached) {
      this.holding = null;
      this.take(cached);
      this.origin = null;
      return;
    }
    const answer = this.ctx.kernel.ask("rows.hold", { ...grid, ...originThen });
    this.holding = answer;
    try {
      const { result } = await answer;
      if (this.origin !== originThen || this.holding !== answer) return;
      this.take(result);
      this.keep(grid, { ...result, ranges: this.selection.wanted().ranges, cursor: this.cursor() });
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (this.holding === answer)
        this.ctx.announce(`The selected rows were not found again: ${message}`);
    }
    if (this.holding !== answer) return;
    this.holding = null;
    this.origin = null;
  }

  /** @param {Partial<Lnb.Look>} change */
  look = async (change) => {
    const look = { ...(this.pending ?? this.criteria), ...change };
    // Rows are searched for words or for neighbours, not for both.
    if (change.near) look.search = null;
    if (change.search) look.near = null;
    this.pending = look;
    this.turn += 1;
    const { turn } = this;
    this.running?.cancel();
    /** @param {number} done @param {number} total */
    const progress = (done, total) => {
      if (turn === this.turn) this.notify((listener) => listener.busy?.(done, total));
    };
    // Where only other columns are asked for, the kernel uses the order that it keeps.
    const keep =
      this.query.arranged !== null && sameRows(look, this.criteria)
        ? { keep: this.query.arranged }
        : {};
    const args = { ...this.ctx.place(), ...look, ...keep };
    const answer = this.ctx.kernel.ask("rows.look", args, { progress });
    this.running = answer;
    const { filter, order, near, within, search } = look;
    if (filter || order || near || within || search) progress(0, 0);
    try {
      const { result } = await answer;
      if (turn !== this.turn) return;
      const before = { ...this.criteria };
      Object.assign(this.criteria, look);
      Object.assign(this.query, {
        filter: result.filter ?? look.filter, // a search adds its condition
        system: look.system,
        arranged: result.arranged,
        shown: result.shown ?? null,
      });
      this.begin(result.num_rows, result.num_columns, { result, before, part: null });
    } catch (error) {
      // What was shown stays.
      if (turn === this.turn)
        this.notify((listener) => listener.failed?.(/** @type {Lnb.Failure} */ (error)));
    }
    if (this.running !== answer) return;
    this.running = null;
    this.pending = null;
  };

  /** What is asked for now; it may be on its way. */
  get wanted() {
    return this.pending ?? this.criteria;
  }

  cancel = () => this.running?.cancel();

  /** Say where the row of the keyboard is; null keeps none. @param {() => number | null} where */
  followRow(where) {
    this.cursor = where;
  }

  /** @param {Lnb.RowsListener} listener */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
