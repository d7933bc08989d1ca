// Which columns the grid shows, in which order, and which stay on the left. The order is remembered
// for each dataset by the browser.

import { same } from "../js/shown_rows.js";
import { gridPanes } from "./grid_actions.js";

/**
 * @typedef {{columns: {raw: string, name: string, type: string, group: number | null}[],
 *   groups: string[], total: number}} ColumnListing see rows/column_choice.py
 */

/** @returns {Lnb.ColumnChoice} */
export const everyColumn = () => ({ pinned: null, shown: null, hidden: [], order: "usual" });

/**
 * Whether a column is shown, for any of them: there can be thousands.
 * @param {Lnb.ColumnChoice | null} choice @returns {(raw: string) => boolean}
 */
export function shownBy(choice) {
  const { pinned, shown, hidden } = choice ?? everyColumn();
  const [first, listed] = [new Set(pinned ?? []), new Set(shown ?? hidden)];
  return (raw) => first.has(raw) || listed.has(raw) === Boolean(shown);
}

/**
 * A choice with columns shown or hidden; what is hidden is not pinned.
 * @param {Lnb.ColumnChoice | null} choice @param {string[]} names @param {boolean} visible
 * @returns {Lnb.ColumnChoice | null}
 */
export function withShown(choice, names, visible) {
  const { pinned, shown, hidden, order } = choice ?? everyColumn();
  const some = new Set(names);
  /** @param {string[]} list */
  const without = (list) => list.filter((name) => !some.has(name));
  /** @param {string[]} list */
  const joined = (list) => [...without(list), ...names];
  return simplest({
    pinned: visible ? pinned : pinned && without(pinned),
    shown: shown && (visible ? joined(shown) : without(shown)),
    hidden: shown || visible ? without(hidden) : joined(hidden),
    order,
  });
}

/**
 * A choice with a column pinned as the last one on the left, or no longer.
 * @param {Lnb.ColumnChoice | null} choice @param {string} raw
 * @param {string[]} pinned the columns on the left
 */
export function withPinned(choice, raw, pinned) {
  const chosen = choice ?? everyColumn();
  const next = pinned.includes(raw) ? pinned.filter((name) => name !== raw) : [...pinned, raw];
  return { ...chosen, pinned: next };
}

/**
 * A choice with a column in the place of another one; null where one of the two is pinned.
 * @param {Lnb.ColumnChoice | null} choice @param {string[]} names in the order of the grid
 * @param {string[]} pinned @param {[raw: string, target: string]} columns
 */
export function withMoved(choice, names, pinned, [raw, target]) {
  /** @param {string[]} list */
  const moved = (list) => {
    const remaining = list.filter((name) => name !== raw);
    remaining.splice(list.indexOf(target), 0, raw);
    return remaining;
  };
  const chosen = choice ?? everyColumn();
  if (pinned.includes(raw) !== pinned.includes(target)) return null;
  if (pinned.includes(raw)) return { ...chosen, pinned: moved(pinned) };
  return { ...chosen, order: moved(names) };
}

/**
 * The same choice by the columns that are shown, where those are fewer than the hidden ones.
 * @param {Lnb.ColumnChoice | null} choice @param {string[]} names of all columns
 */
export function shortest(choice, names) {
  if (!choice || choice.shown || choice.hidden.length <= names.length / 2) return choice;
  const hidden = new Set(choice.hidden);
  return { ...choice, shown: names.filter((name) => !hidden.has(name)), hidden: [] };
}

/** @param {Lnb.ColumnChoice} choice */
const simplest = (choice) => (same(choice, everyColumn()) ? null : choice);

export class ColumnChooser {
  /**
   * What is open, and the version of its columns.
   * @type {{list: import("./column_list.js").ColumnList, of: Lnb.Place} | null}
   */
  opened = null;
  /** Actions by the key that starts them. */
  letters = {
    h: () => this.hide(),
    p: () => this.pin(),
    v: () => this.open(),
    "<": () => this.move(-1),
    ">": () => this.move(1),
  };

  /**
   * @param {Lnb.Context} ctx
   * @param {{state: {row: number, column: number, numColumns: number},
   *   column: (at: number) => Lnb.Column | undefined,
   *   moveTo: (row: number, column: number) => void, fail: (error: Lnb.Failure) => void}} grid
   */
  constructor(ctx, grid) {
    this.ctx = ctx;
    this.grid = grid;
    // Another version can have other columns.
    ctx.onScreen(() => {
      const { opened } = this;
      if (!opened?.list.element.isConnected || same(opened.of, ctx.place())) return;
      opened.of = ctx.place();
      this.read((columns, of) => same(opened.of, of) && opened.list.put(columns));
    });
  }

  get choice() {
    return this.ctx.rows.wanted.choice;
  }

  /** The columns on the left. */
  pinned() {
    const { numPinned, numFound } = this.ctx.rows;
    const shown = Array.from({ length: numPinned - numFound }, (_, index) =>
      this.grid.column(numFound + index),
    );
    return this.choice?.pinned ?? shown.flatMap((column) => (column ? [column.raw] : []));
  }

  /** Show the columns in the order in which they were shown last. */
  recall() {
    const stored = this.stored((storage, key) => storage.getItem(key));
    if (!stored || this.choice) return;
    const { pinned = null, order = "usual" } = JSON.parse(stored);
    this.ctx.rows.look({ choice: { ...everyColumn(), pinned, order } });
  }

  /** @param {Lnb.ColumnChoice | null} choice */
  remember(choice) {
    const { pinned, order } = choice ?? everyColumn();
    this.stored((storage, key) =>
      pinned || order !== "usual"
        ? storage.setItem(key, JSON.stringify({ pinned, order }))
        : storage.removeItem(key),
    );
  }

  /**
   * @template T @param {(storage: Storage, key: string) => T} use
   * @returns {T | null} null in a page that may not store anything
   */
  stored(use) {
    const uri = this.ctx.screen().card?.uri;
    try {
      return uri ? use(localStorage, `lance_nb columns ${uri}`) : null;
    } catch {
      return null;
    }
  }

  /** @param {"usual" | "stored"} order */
  arrange(order) {
    const words = order === "stored" ? "columns as in the dataset" : "what matters comes first";
    const choice = { ...(this.choice ?? everyColumn()), order };
    return this.choose(simplest({ ...choice, pinned: order === "stored" ? [] : null }), words);
  }

  /** Move the column of the keyboard. @param {-1 | 1} by to the left or to the right */
  move(by) {
    const { state, column, moveTo } = this.grid;
    const [cell, target] = [column(state.column), column(state.column + by)];
    if (!cell || !target) return;
    return this.read(async ({ columns }) => {
      const names = columns.map(({ raw }) => raw);
      const choice = withMoved(this.choice, names, this.pinned(), [cell.raw, target.raw]);
      if (!choice) return this.ctx.announce("A pinned column stands on the left.");
      await this.choose(choice, `${cell.name} is moved`);
      moveTo(state.row, state.column + by);
    });
  }

  /** @param {Lnb.ColumnChoice | null} choice @param {string} note */
  async choose(choice, note) {
    this.remember(choice);
    await this.ctx.rows.look({ choice });
    this.ctx.announce(note);
    this.opened?.list.repaint();
  }

  hide() {
    const cell = this.grid.column(this.grid.state.column);
    if (!cell) return;
    if (this.grid.state.numColumns < 2)
      return this.ctx.announce("The last column cannot be hidden.");
    return this.choose(withShown(this.choice, [cell.raw], false), `${cell.name} is hidden`);
  }

  async pin() {
    const { state, column, moveTo } = this.grid;
    const cell = column(state.column);
    if (!cell) return;
    const index = await this.togglePin(cell);
    if (index >= 0) moveTo(state.row, index + this.ctx.rows.numFound);
  }

  /**
   * Pin a column, or no longer; returns its place among the pinned ones.
   * @param {{raw: string, name: string}} column
   */
  async togglePin({ raw, name }) {
    const next = withPinned(this.choice, raw, this.pinned());
    const index = next.pinned?.indexOf(raw) ?? -1;
    await this.choose(next, index < 0 ? `${name} is no longer pinned` : `${name} is pinned`);
    return index;
  }

  /** Show a column that is hidden. @param {string} raw */
  reveal(raw) {
    return this.choose(withShown(this.choice, [raw], true), `${raw} is shown`);
  }

  /**
   * Read the columns of the version shown.
   * @param {(listing: ColumnListing, of: Lnb.Place) => void} done
   */
  async read(done) {
    const of = this.ctx.place();
    try {
      const { result } = await this.ctx.kernel.ask("rows.names", { ...of, ...this.ctx.rows.query });
      done(result, of);
    } catch (error) {
      this.grid.fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  open() {
    return this.read(async (columns, of) => {
      const { ColumnList } = await gridPanes(this.ctx);
      const list = new ColumnList(this.ctx, this, columns);
      this.opened = { list, of };
      this.ctx.detail.show({ title: "Columns", content: list.element, focus: true });
    });
  }
}
