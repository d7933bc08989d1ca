// What can be done from a cell of the grid with a key: sort, filter, find similar, copy, ask for
// the keys.

import { copyText, count, h, plural } from "../js/dom.js";
import { KEYS } from "../js/grid_keys.js";
import { conditionOf, conditionOfOdd } from "./bar_selection.js";
import { columnPane } from "./column_pane.js";

const NEIGHBOURS = 10;
const MOST_SELECTED = 100_000; // see explorer/session.py

/** @typedef {{profile: Lnb.Profile, column: Lnb.Column}} Histogram that of a column */

/**
 * @param {Lnb.Context} ctx
 * @param {{state: {row: number, column: number, numRows: number}, store: Lnb.PageStore,
 *   profiles: ReturnType<typeof import("./column_profiles.js").columnProfiles>,
 *   bar: () => ReturnType<typeof import("./rows_bar.js").rowsBar>}} grid
 */
export function gridActions(ctx, { state, store, profiles, bar }) {
  const { asked, lens, selection, look } = ctx.rows;
  const place = () => ({ branch: ctx.screen().branch, version: ctx.screen().version, ...lens });

  /** @param {() => Promise<void>} work */
  async function attempt(work) {
    try {
      await work();
    } catch (error) {
      bar().fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  /** @param {number} columnIndex */
  function openColumn(columnIndex) {
    const column = store.column(columnIndex);
    if (!column) return;
    columnPane(ctx, {
      at: columnIndex,
      column,
      profile: profiles.of(columnIndex),
      comes: (notify) => profiles.comes(columnIndex, notify),
      args: () => ({ ...place(), ...profiles.crossed() }),
      order: asked.order ?? [],
      sort: (order) => look({ order: order.length ? order : null, near: null }),
      brush: (where, bars) => bar().brush(column.raw, where, { bars }),
      learned: profiles.learn,
    });
  }

  /**
   * Return the histogram of a column, drawn in its head. @param {number} columnIndex
   * @returns {Histogram | null}
   */
  function histogram(columnIndex) {
    const [profile, column] = [profiles.of(columnIndex), store.column(columnIndex)];
    return profile && column ? { profile, column } : null;
  }

  let turn = 0;

  /**
   * Bars of a column's profile become its condition in the filter; those of a brush that `moves`
   * are shown in the other profiles only. -1 is for a brush that was given up.
   * @param {Histogram | null} of @param {number} from @param {number} to
   * @param {boolean} [moves]
   */
  function brush(of, from, to, moves = false) {
    turn += 1;
    const mine = turn;
    if (from < 0 || !of) return bar().settle();
    return attempt(async () => {
      const where = await conditionOf(ctx, place(), of.profile, from, to);
      if (mine !== turn) return;
      if (where) bar().brush(of.column.raw, where, { bars: [from, to], moves });
      else bar().settle();
    });
  }

  /**
   * The same for values beside the bars.
   * @param {Histogram | null} of @param {Lnb.OddValues} odd
   */
  function brushOdd(of, odd) {
    if (!of) return;
    turn += 1;
    attempt(async () => {
      bar().brush(of.column.raw, await conditionOfOdd(ctx, place(), of.profile, odd));
    });
  }

  /** @type {{at: number, column: string | null}} */
  let sorted = { at: -1, column: null };

  /**
   * Ascending, descending, as stored; `add`: beside the columns that are sorted by already.
   * @param {number} columnIndex @param {boolean} add
   */
  function sort(columnIndex, add = false) {
    // Right after another order the columns are still on their way: the same place is the same
    // column.
    const column =
      store.column(columnIndex)?.raw ?? (sorted.at === columnIndex ? sorted.column : null);
    if (!column) return;
    sorted = { at: columnIndex, column };
    look({ near: null, order: nextOrder(ctx.rows.wanted.order ?? [], column, add) });
  }

  /**
   * Search for the words that tell a text from others.
   * @param {number} row @param {number} column
   */
  function alike(row, column) {
    attempt(async () => {
      const { result } = await ctx.kernel.ask("rows.words", { ...place(), row, column });
      ctx.detail.clear();
      look({ order: null, within: null, search: result.search });
    });
  }

  /**
   * From among neighbours it is their vector that is followed, wherever the keyboard stands.
   * @param {number} row @param {number} cell
   */
  function similar(row, cell) {
    if (!asked.near && store.column(cell)?.look === "text") return alike(row, cell);
    const column = asked.near && store.column(cell)?.look !== "vector" ? asked.near.at + 1 : cell;
    const column_ = column - ctx.rows.numFound;
    return attempt(async () => {
      const { result } = await ctx.kernel.ask("rows.like", { ...place(), row, column });
      ctx.detail.clear();
      look({
        order: null,
        within: null,
        near: {
          like: result.like,
          k: NEIGHBOURS,
          metric: "l2",
          row: result.row,
          column: result.column,
          at: column_,
        },
      });
    });
  }

  /** @param {number} row @param {number} column */
  function only(row, column) {
    attempt(async () => {
      const { result } = await ctx.kernel.ask("rows.value", { ...place(), row, column });
      bar().brush(store.column(column)?.raw ?? "", result.where);
    });
  }

  /** Select every row, or as many as a selection has. */
  function all() {
    const most = Math.min(state.numRows, MOST_SELECTED);
    selection.all(most);
    const note = most < state.numRows ? `, the first of ${count(state.numRows)}` : "";
    ctx.announce(`${plural(most, "row")} selected${note}`);
  }

  /** @param {string} [form] text, markdown or code */
  function copy(form = "text") {
    attempt(async () => {
      const some = selection.rows > 0;
      const args = {
        ...place(),
        ...(some ? { ...selection.wanted(), form } : { row: state.row, column: state.column }),
      };
      const { result } = await ctx.kernel.ask(some ? "rows.text" : "cell", args);
      const done = await copyText(result.text);
      const subject =
        some && form === "code"
          ? "Code copied"
          : some
            ? `${plural(result.rows, "row")} copied` +
              (result.rows < result.wanted ? ` of ${result.wanted}` : "")
            : "Cell copied";
      ctx.announce(done ? subject : "The browser does not allow this page to copy.");
    });
  }

  function keys() {
    const lines = KEYS.map(([key, does]) => [h("dt", {}, key), h("dd", {}, does)]);
    ctx.detail.show({
      title: "Keys of the grid",
      content: h("dl", { class: "lnb-keys" }, lines.flat()),
      focus: true,
    });
  }

  /** @param {(row: number, column: number) => void} work */
  const onCurrent = (work) => () => work(state.row, state.column);
  return {
    openColumn,
    sort,
    histogram,
    brush,
    brushOdd,
    similar,
    alike,
    only,
    keys,
    copy,
    /** Actions by the key that starts them. */
    letters: {
      c: () => openColumn(state.column),
      s: () => sort(state.column),
      S: () => sort(state.column, true),
      "=": onCurrent(only),
      n: onCurrent(similar),
      "/": () => bar().focus(),
      f: () => bar().search.focus(),
      "?": keys,
      copy: () => copy(),
      all,
    },
  };
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
