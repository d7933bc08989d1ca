// What can be done from a cell of the grid with a key: sort, filter, find similar, copy, ask for
// the keys.

import { copyText, count, h, plural } from "../js/dom.js";
import { KEYS } from "../js/grid_keys.js";
import { loadViews } from "../js/tab_host.js";
import { conditionOf, conditionOfOdd } from "./bar_selection.js";
import { columnPane } from "./column_pane.js";

const NEIGHBOURS = 10;
const MOST_SELECTED = 100_000; // see explorer/session.py

/** @typedef {{profile: Lnb.Profile, column: Lnb.Column}} Histogram that of a column */

/**
 * What opens from the grid. @param {Lnb.Context} ctx
 * @returns {Promise<import("./grid_panes.js").GridPanes>}
 */
export async function gridPanes(ctx) {
  const { mount } = await loadViews(ctx.kernel, "rows/grid_panes.js");
  const panes = /** @type {() => unknown} */ (mount);
  return /** @type {import("./grid_panes.js").GridPanes} */ (panes());
}

export class GridActions {
  turn = 0;
  /** @type {{at: number, column: string | null}} */
  sorted = { at: -1, column: null };

  /**
   * @param {Lnb.Context} ctx
   * @param {{state: {row: number, column: number, numRows: number}, store: Lnb.PageStore,
   *   profiles: import("./column_profiles.js").ColumnProfiles,
   *   bar: () => import("./rows_bar.js").RowsBar}} grid
   */
  constructor(ctx, { state, store, profiles, bar }) {
    this.ctx = ctx;
    this.state = state;
    this.store = store;
    this.profiles = profiles;
    this.bar = bar;
    const { criteria, query, selection, look } = ctx.rows;
    this.criteria = criteria;
    this.query = query;
    this.selection = selection;
    this.look = look;
    /** Actions by the key that starts them. */
    this.letters = {
      c: () => this.openColumn(this.state.column),
      s: () => this.sort(this.state.column),
      S: () => this.sort(this.state.column, true),
      "=": this.onCurrent(this.only),
      n: this.onCurrent(this.similar),
      "/": () => this.bar().focus(),
      f: () => this.bar().search.focus(),
      "?": this.keys,
      copy: () => this.copy(),
      all: this.all,
    };
  }

  place() {
    return { ...this.ctx.place(), ...this.query };
  }

  /** @param {() => Promise<void>} work */
  async attempt(work) {
    try {
      await work();
    } catch (error) {
      this.bar().fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  /** @param {number} columnIndex */
  openColumn(columnIndex) {
    const column = this.store.column(columnIndex);
    if (!column) return;
    columnPane(this.ctx, {
      at: columnIndex,
      column,
      profile: this.profiles.of(columnIndex),
      comes: (notify) => this.profiles.comes(columnIndex, notify),
      args: () => ({ ...this.place(), ...this.profiles.crossed() }),
      order: this.criteria.order ?? [],
      sort: (order) => this.look({ order: order.length ? order : null, near: null }),
      brush: (where, bars) => this.bar().brush(column.raw, where, { bars }),
      learned: (profile) => this.profiles.learn(profile),
    });
  }

  /**
   * Return the histogram of a column, drawn in its head. @param {number} columnIndex
   * @returns {Histogram | null}
   */
  histogram(columnIndex) {
    const [profile, column] = [this.profiles.of(columnIndex), this.store.column(columnIndex)];
    return profile && column ? { profile, column } : null;
  }

  /**
   * Bars of a column's profile become its condition in the filter; those of a brush that `moves`
   * are shown in the other profiles only. -1 is for a brush that was given up.
   * @param {Histogram | null} of @param {number} from @param {number} to
   * @param {boolean} [moves]
   */
  brush(of, from, to, moves = false) {
    this.turn += 1;
    const mine = this.turn;
    if (from < 0 || !of) return this.bar().settle();
    return this.attempt(async () => {
      const where = await conditionOf(this.ctx, this.place(), of.profile, from, to);
      if (mine !== this.turn) return;
      if (where) this.bar().brush(of.column.raw, where, { bars: [from, to], moves });
      else this.bar().settle();
    });
  }

  /**
   * The same for values beside the bars.
   * @param {Histogram | null} of @param {Lnb.OddValues} odd
   */
  brushOdd(of, odd) {
    if (!of) return;
    this.turn += 1;
    this.attempt(async () => {
      const where = await conditionOfOdd(this.ctx, this.place(), of.profile, odd);
      this.bar().brush(of.column.raw, where);
    });
  }

  /**
   * Ascending, descending, as stored; `add`: beside the columns that are sorted by already.
   * @param {number} columnIndex @param {boolean} add
   */
  sort(columnIndex, add = false) {
    // Right after another order the columns are still on their way: the same place is the same
    // column.
    const column =
      this.store.column(columnIndex)?.raw ??
      (this.sorted.at === columnIndex ? this.sorted.column : null);
    if (!column) return;
    this.sorted = { at: columnIndex, column };
    this.look({ near: null, order: nextOrder(this.ctx.rows.wanted.order ?? [], column, add) });
  }

  /**
   * Search for the words that tell a text from others.
   * @param {number} row @param {number} column
   */
  alike(row, column) {
    this.attempt(async () => {
      const { result } = await this.ctx.kernel.ask("rows.words", { ...this.place(), row, column });
      this.ctx.detail.clear();
      this.look({ order: null, within: null, search: result.search });
    });
  }

  /**
   * From among neighbours it is their vector that is followed, wherever the keyboard stands.
   * @param {number} row @param {number} cell
   */
  similar = (row, cell) => {
    if (!this.criteria.near && this.store.column(cell)?.look === "text")
      return this.alike(row, cell);
    const { near } = this.criteria;
    const column = near && this.store.column(cell)?.look !== "vector" ? near.at + 1 : cell;
    const position = column - this.ctx.rows.numFound;
    return this.attempt(async () => {
      const { result } = await this.ctx.kernel.ask("rows.like", { ...this.place(), row, column });
      this.ctx.detail.clear();
      const { like, row: label, column: name } = result;
      const vector = { like, row: label, column: name, at: position };
      this.look({ order: null, within: null, near: { ...vector, k: NEIGHBOURS, metric: "l2" } });
    });
  };

  /**
   * Only rows with a value, or only those `without` it: these conditions add up.
   * @param {number} row @param {number} column
   */
  only = (row, column, without = false) => {
    this.attempt(async () => {
      const args = { ...this.place(), row, column, ...(without ? { without } : {}) };
      const { result } = await this.ctx.kernel.ask("rows.value", args);
      const name = this.store.column(column)?.raw ?? "";
      const conditions = without ? this.bar().conditions() : [];
      const before = conditions.filter(([brushed]) => brushed === name).map(([, where]) => where);
      const where = [...before, result.where].join(" AND ");
      this.bar().brush(name, where);
    });
  };

  /** Select every row, or as many as a selection has. */
  all = () => {
    const most = Math.min(this.state.numRows, MOST_SELECTED);
    this.selection.all(most);
    const note = most < this.state.numRows ? `, the first of ${count(this.state.numRows)}` : "";
    this.ctx.announce(`${plural(most, "row")} selected${note}`);
  };

  /** @param {string} [form] text, markdown or code */
  copy(form = "text") {
    this.attempt(async () => {
      const some = this.selection.rows > 0;
      const args = {
        ...this.place(),
        ...(some
          ? { ...this.selection.wanted(), form }
          : { row: this.state.row, column: this.state.column }),
      };
      const { result } = await this.ctx.kernel.ask(some ? "rows.text" : "cell", args);
      const done = await copyText(result.text);
      const of = result.rows < result.wanted ? ` of ${result.wanted}` : "";
      const rows = form === "code" ? "Code copied" : `${plural(result.rows, "row")} copied${of}`;
      const words = some ? rows : "Cell copied";
      this.ctx.announce(done ? words : "The browser does not allow this page to copy.");
    });
  }

  keys = () => {
    const lines = KEYS.map(([key, does]) => [h("dt", {}, key), h("dd", {}, does)]);
    this.ctx.detail.show({
      title: "Keys of the grid",
      content: h("dl", { class: "lnb-keys" }, lines.flat()),
      focus: true,
    });
  };

  /** @param {(row: number, column: number) => void} work */
  onCurrent = (work) => () => work(this.state.row, this.state.column);
}

/**
 * The order after a column was sorted by once more: ascending, descending, no longer.
 * @param {Lnb.SortKey[]} order @param {string} column @param {boolean} add to the others
 * @returns {Lnb.SortKey[] | null}
 */
export function nextOrder(order, column, add) {
  const before = order.find((sort) => sort.column === column);
  const otherSorts = add ? order : order.filter((sort) => sort === before);
  /** @type {Lnb.SortKey[]} */
  const next = before
    ? otherSorts.flatMap((sort) => {
        if (sort !== before) return [sort];
        return sort.ascending ? [{ column, ascending: false }] : [];
      })
    : [...otherSorts, { column, ascending: true }];
  return next.length ? next : null;
}
