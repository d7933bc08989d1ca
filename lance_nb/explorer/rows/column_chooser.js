// Which columns the grid shows and which stay on the left: a list in groups, with search, and keys.

import { button, count, h, plural, show } from "../js/dom.js";
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

/**
 * @param {Lnb.Context} ctx
 * @param {{state: {row: number, column: number, numColumns: number},
 *   column: (at: number) => Lnb.Column | undefined, moveTo: (row: number, column: number) => void,
 *   fail: (error: Lnb.Failure) => void}} grid
 */
export function columnChooser(ctx, { state, column, moveTo, fail }) {
  const current = () => ctx.rows.wanted.choice;
  let repaint = () => {};
  /** @type {{element: HTMLElement, put: (known: Known) => void, of: Lnb.Place} | null} */
  let list = null;

  /** @param {Lnb.ColumnChoice | null} choice @param {string} note */
  async function choose(choice, note) {
    await ctx.rows.look({ choice });
    ctx.announce(note);
    repaint();
  }

  function hide() {
    const cell = column(state.column);
    if (!cell) return;
    if (state.numColumns < 2) return ctx.announce("The last column cannot be hidden.");
    return choose(withShown(current(), [cell.raw], false), `${cell.name} is hidden`);
  }

  async function pin() {
    const cell = column(state.column);
    if (!cell) return;
    const next = withPinned(current(), cell.raw);
    const index = next?.pinned.indexOf(cell.raw) ?? -1;
    await choose(next, index < 0 ? `${cell.name} is no longer pinned` : `${cell.name} is pinned`);
    if (index >= 0) moveTo(state.row, index + ctx.rows.numFound);
  }

  /** Show a column that is hidden. @param {string} raw */
  function reveal(raw) {
    return choose(withShown(current(), [raw], true), `${raw} is shown`);
  }

  /** Read the columns of the version shown. @param {(known: Known, of: Lnb.Place) => void} done */
  async function read(done) {
    const { branch, version } = ctx.screen();
    const of = { branch, version };
    try {
      const { result } = await ctx.kernel.ask("rows.names", { ...of, ...ctx.rows.lens });
      done(result, of);
    } catch (error) {
      fail(/** @type {Lnb.Failure} */ (error));
    }
  }

  function open() {
    return read((groupNames, of) => {
      list = { ...pane(groupNames), of };
      ctx.detail.show({ title: "Columns", content: list.element, focus: true });
    });
  }

  // Another version can have other columns.
  ctx.onScreen(() => {
    const { branch, version } = ctx.screen();
    if (!list?.element.isConnected || same(list.of, { branch, version })) return;
    list.of = { branch, version };
    read((groupNames, of) => list && same(list.of, of) && list.put(groupNames));
  });

  /** @param {Known} groupNames */
  function pane(groupNames) {
    let { columns, groups, total } = groupNames;
    /** @type {Set<string>} */
    const unfolded = new Set();
    const find = h("input", {
      class: "lnb-input",
      placeholder: "find a column…",
      "aria-label": "find a column to show",
      spellcheck: "false",
      autocomplete: "off",
      on: { input: () => paint(), keydown: (event) => event.stopPropagation() },
    });
    const note = h("p", { class: "lnb-soft", "aria-live": "polite" });
    const tools = h("p", {});
    const lists = h("ul", { class: "lnb-column-list" });
    const query = () => find.value.trim().toLowerCase();
    const matching = () => columns.filter(({ name }) => name.toLowerCase().includes(query()));

    /** @param {string} text @param {() => unknown} click @param {boolean} disabled */
    const tool = (text, click, disabled = false) => button(text, click, { disabled });

    /**
     * A box for one column or for those of a group.
     * @param {string} label @param {string[]} names @param {Lnb.Child} more
     */
    function box(label, names, more) {
      const shown = names.filter(shownBy(current())).length;
      const input = h("input", {
        type: "checkbox",
        on: {
          change: () => {
            const visible = shown < names.length;
            const next = shortest(
              withShown(current(), names, visible),
              columns.map(({ raw }) => raw),
            );
            if (columns.map(({ raw }) => raw).some(shownBy(next)))
              choose(next, `${label} ${visible ? "shown" : "hidden"}`);
            else {
              ctx.announce("At least one column must be shown.");
              paint();
            }
          },
        },
      });
      input.checked = shown === names.length;
      input.indeterminate = shown > 0 && shown < names.length;
      return h("label", {}, input, h("span", {}, label), more);
    }

    /** @param {(typeof columns)[number]} one */
    function line({ raw, name, type }) {
      const pinned = current()?.pinned.includes(raw) ?? false;
      const toggle = button(
        pinned ? "Pinned" : "Pin",
        () =>
          choose(
            withPinned(current(), raw),
            `${name} is ${pinned ? "no longer pinned" : "pinned"}`,
          ),
        { class: "lnb-link", "aria-pressed": String(pinned), "aria-label": `pin ${name}` },
      );
      return h("li", {}, box(name, [raw], h("small", {}, type)), toggle);
    }

    /** @param {typeof columns} some */
    function lines(some) {
      const numHidden = some.length - LONGEST;
      return [
        ...some.slice(0, LONGEST).map(line),
        numHidden > 0
          ? h("li", { class: "lnb-soft" }, `and ${count(numHidden)} more: find them by name`)
          : null,
      ];
    }

    /** @param {string} title @param {number} index */
    function group(title, index) {
      const members = columns.filter((candidate) => candidate.group === index);
      const names = members.map(({ raw }) => raw);
      const shown = names.filter(shownBy(current())).length;
      const unfold = button(
        unfolded.has(title) ? "Fold" : "Unfold",
        () => {
          if (!unfolded.delete(title)) unfolded.add(title);
          paint();
        },
        {
          class: "lnb-link",
          "aria-expanded": String(unfolded.has(title)),
          "aria-label": `columns of ${title}`,
        },
      );
      const head = box(
        title,
        names,
        h("small", {}, `${count(shown)} of ${plural(names.length, "column")}`),
      );
      return h(
        "li",
        { class: "lnb-column-group" },
        h("div", {}, head, unfold),
        unfolded.has(title) ? h("ul", {}, lines(members)) : null,
      );
    }

    function paint() {
      const some = matching();
      const numShown = columns.map(({ raw }) => raw).filter(shownBy(current())).length;
      const { numColumns, numFound } = ctx.rows; // a distance or a score is none of them
      const shown = total > columns.length ? numColumns - numFound : numShown;
      note.textContent =
        `${count(shown)} of ${plural(total, "column")} shown` +
        (query() ? ` · ${count(some.length)} found` : "") +
        (total > columns.length ? ` · the first ${count(columns.length)} are listed` : "");
      const names = some.map(({ raw }) => raw);
      show(
        tools,
        tool("Show all", () => choose(null, "all columns are shown"), !current()),
        tool(
          "Show only these",
          () =>
            choose(
              { ...(current() ?? everyColumn()), shown: names, hidden: [] },
              `${plural(names.length, "column")} shown`,
            ),
          !query() || !names.length,
        ),
      );
      if (query()) show(lists, lines(some));
      else show(lists, groups.map(group), lines(columns.filter((item) => item.group === null)));
    }
    repaint = () => {
      const details = /** @type {HTMLElement | null} */ (
        lists.contains(document.activeElement) ? document.activeElement : null
      );
      const place = details ? [...lists.querySelectorAll("input, button")].indexOf(details) : -1;
      paint();
      if (place >= 0)
        /** @type {HTMLElement | undefined} */ (
          lists.querySelectorAll("input, button")[place]
        )?.focus();
    };
    paint();
    return {
      element: h("div", { class: "lnb-column-chooser" }, find, note, tools, lists),
      /** @param {Known} next */
      put(next) {
        ({ columns, groups, total } = next);
        repaint();
      },
    };
  }

  return { open, reveal, letters: { h: hide, p: pin, v: open } };
}
