// Which columns the grid shows and which stay on the left: a list in groups, with search, and keys.

import { button, count, field, h, plural, show } from "../js/dom.js";
import { same } from "../js/shown_rows.js";

const LONGEST = 200; // columns listed at once

/**
 * @typedef {{columns: {raw: string, name: string, type: string, group: number | null}[],
 *   groups: string[], total: number}} Known see rows/column_choice.py
 */

/** @returns {Lnb.ColumnChoice} */
const everyColumn = () => ({ pinned: [], shown: null, hidden: [] });

/**
 * Whether a column is shown, for any of them: there can be thousands.
 * @param {Lnb.ColumnChoice | null} choice @returns {(raw: string) => boolean}
 */
export function shownBy(choice) {
  const { pinned, shown, hidden } = choice ?? everyColumn();
  const [first, listed] = [new Set(pinned), new Set(shown ?? hidden)];
  return (raw) => first.has(raw) || listed.has(raw) === Boolean(shown);
}

/**
 * A choice with columns shown or hidden; what is hidden is not pinned.
 * @param {Lnb.ColumnChoice | null} choice @param {string[]} names @param {boolean} visible
 * @returns {Lnb.ColumnChoice | null}
 */
export function withShown(choice, names, visible) {
  const { pinned, shown, hidden } = choice ?? everyColumn();
  const some = new Set(names);
  /** @param {string[]} list */
  const without = (list) => list.filter((name) => !some.has(name));
  /** @param {string[]} list */
  const joined = (list) => [...without(list), ...names];
  return simplest({
    pinned: visible ? pinned : without(pinned),
    shown: shown && (visible ? joined(shown) : without(shown)),
    hidden: shown || visible ? without(hidden) : joined(hidden),
  });
}

/**
 * A choice with a column pinned as the last one on the left, or no longer.
 * @param {Lnb.ColumnChoice | null} choice @param {string} raw
 */
export function withPinned(choice, raw) {
  const { pinned, ...others } = choice ?? everyColumn();
  const next = pinned.includes(raw) ? pinned.filter((name) => name !== raw) : [...pinned, raw];
  return simplest({ ...others, pinned: next });
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
   * @type {{list: ColumnList, of: Lnb.Place} | null} what is open, and the version of its columns
   */
  opened = null;
  /** Actions by the key that starts them. */
  letters = { h: () => this.hide(), p: () => this.pin(), v: () => this.open() };

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

  /** @param {Lnb.ColumnChoice | null} choice @param {string} note */
  async choose(choice, note) {
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
    const next = withPinned(this.choice, raw);
    const index = next?.pinned.indexOf(raw) ?? -1;
    await this.choose(next, index < 0 ? `${name} is no longer pinned` : `${name} is pinned`);
    return index;
  }

  /** Show a column that is hidden. @param {string} raw */
  reveal(raw) {
    return this.choose(withShown(this.choice, [raw], true), `${raw} is shown`);
  }

  /** Read the columns of the version shown. @param {(known: Known, of: Lnb.Place) => void} done */
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
    return this.read((columns, of) => {
      const list = new ColumnList(this.ctx, this, columns);
      this.opened = { list, of };
      this.ctx.detail.show({ title: "Columns", content: list.element, focus: true });
    });
  }
}

/** The columns in the detail pane, with a box for each and for each group. */
class ColumnList {
  /** @type {Set<string>} titles of groups */
  unfolded = new Set();
  find = field("find a column to show", {
    placeholder: "find a column…",
    on: { input: () => this.paint() },
  });
  note = h("p", { class: "lnb-soft", "aria-live": "polite" });
  tools = h("p", {});
  lists = h("ul", { class: "lnb-column-list" });

  /** @param {Lnb.Context} ctx @param {ColumnChooser} chooser @param {Known} known */
  constructor(ctx, chooser, known) {
    this.ctx = ctx;
    this.chooser = chooser;
    this.known = known;
    this.element = h(
      "div",
      { class: "lnb-column-chooser" },
      this.find,
      this.note,
      this.tools,
      this.lists,
    );
    this.paint();
  }

  /** Columns of another version. @param {Known} known */
  put(known) {
    this.known = known;
    this.repaint();
  }

  /** Paint again; the keyboard stays where it is. */
  repaint() {
    const fields = () =>
      /** @type {HTMLElement[]} */ ([...this.lists.querySelectorAll("input, button")]);
    const index = fields().indexOf(/** @type {HTMLElement} */ (document.activeElement));
    this.paint();
    if (index >= 0) fields()[index]?.focus();
  }

  /** How many of some columns are shown. @param {string[]} names */
  numShown(names) {
    return names.filter(shownBy(this.chooser.choice)).length;
  }

  paint() {
    const { columns, groups, total } = this.known;
    const { chooser } = this;
    const query = this.find.value.trim().toLowerCase();
    const matches = columns.filter(({ name }) => name.toLowerCase().includes(query));
    const { numColumns, numFound } = this.ctx.rows; // a distance or a score is none of them
    const isCut = total > columns.length;
    const shown = isCut ? numColumns - numFound : this.numShown(columns.map(({ raw }) => raw));
    this.note.textContent =
      `${count(shown)} of ${plural(total, "column")} shown` +
      (query ? ` · ${count(matches.length)} found` : "") +
      (isCut ? ` · the first ${count(columns.length)} are listed` : "");
    const names = matches.map(({ raw }) => raw);
    const only = { ...(chooser.choice ?? everyColumn()), shown: names, hidden: [] };
    show(
      this.tools,
      button("Show all", () => chooser.choose(null, "all columns are shown"), {
        disabled: !chooser.choice,
      }),
      button(
        "Show only these",
        () => chooser.choose(only, `${plural(names.length, "column")} shown`),
        { disabled: !query || !names.length },
      ),
    );
    if (query) return show(this.lists, this.lines(matches));
    const alone = columns.filter(({ group }) => group === null);
    const grouped = groups.map((title, index) => this.group(title, index));
    return show(this.lists, grouped, this.lines(alone));
  }

  /**
   * A box for one column or for those of a group.
   * @param {string} label @param {string[]} names @param {Lnb.Child} more
   */
  box(label, names, more) {
    const shown = this.numShown(names);
    const change = () => {
      const visible = shown < names.length;
      const all = this.known.columns.map(({ raw }) => raw);
      const next = shortest(withShown(this.chooser.choice, names, visible), all);
      if (all.some(shownBy(next)))
        return this.chooser.choose(next, `${label} ${visible ? "shown" : "hidden"}`);
      this.ctx.announce("At least one column must be shown.");
      return this.paint();
    };
    const input = h("input", { type: "checkbox", on: { change } });
    input.checked = shown === names.length;
    input.indeterminate = shown > 0 && shown < names.length;
    return h("label", {}, input, h("span", {}, label), more);
  }

  /** @param {Known["columns"][number]} column */
  line(column) {
    const { raw, name, type } = column;
    const pinned = this.chooser.choice?.pinned.includes(raw) ?? false;
    const toggle = button(pinned ? "Pinned" : "Pin", () => this.chooser.togglePin(column), {
      class: "lnb-link",
      "aria-pressed": String(pinned),
      "aria-label": `pin ${name}`,
    });
    return h("li", {}, this.box(name, [raw], h("small", {}, type)), toggle);
  }

  /** @param {Known["columns"]} columns */
  lines(columns) {
    const numHidden = columns.length - LONGEST;
    return [
      ...columns.slice(0, LONGEST).map((column) => this.line(column)),
      numHidden > 0
        ? h("li", { class: "lnb-soft" }, `and ${count(numHidden)} more: find them by name`)
        : null,
    ];
  }

  /** @param {string} title @param {number} index */
  group(title, index) {
    const members = this.known.columns.filter(({ group }) => group === index);
    const names = members.map(({ raw }) => raw);
    const isOpen = this.unfolded.has(title);
    const toggle = () => {
      if (!this.unfolded.delete(title)) this.unfolded.add(title);
      this.paint();
    };
    const unfold = button(isOpen ? "Fold" : "Unfold", toggle, {
      class: "lnb-link",
      "aria-expanded": String(isOpen),
      "aria-label": `columns of ${title}`,
    });
    const words = `${count(this.numShown(names))} of ${plural(names.length, "column")}`;
    return h(
      "li",
      { class: "lnb-column-group" },
      h("div", {}, this.box(title, names, h("small", {}, words)), unfold),
      isOpen ? h("ul", {}, this.lines(members)) : null,
    );
  }
}
