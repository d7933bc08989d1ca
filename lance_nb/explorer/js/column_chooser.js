// Which columns the grid shows and which stay on the left: a list in groups, with search, and keys.

import { count, h, plural, show } from "./dom.js";
import { same } from "./shown_rows.js";

const LONGEST = 200; // columns listed at once

/**
 * @typedef {{columns: {raw: string, name: string, type: string, group: number | null}[],
 *   groups: string[], total: number}} Known see models/column_choice.py
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
  const others = (list) => list.filter((name) => !some.has(name));
  /** @param {string[]} list */
  const joined = (list) => [...others(list), ...names];
  return simplest({
    pinned: visible ? pinned : others(pinned),
    shown: shown && (visible ? joined(shown) : others(shown)),
    hidden: shown || visible ? others(hidden) : joined(hidden),
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

  /** @param {Lnb.ColumnChoice | null} choice @param {string} said */
  async function choose(choice, said) {
    await ctx.rows.look({ choice });
    ctx.announce(said);
    repaint();
  }

  function hide() {
    const here = column(state.column);
    if (!here) return;
    if (state.numColumns < 2) return ctx.announce("The last column cannot be hidden.");
    return choose(withShown(current(), [here.raw], false), `${here.name} is hidden`);
  }

  async function pin() {
    const here = column(state.column);
    if (!here) return;
    const next = withPinned(current(), here.raw);
    const at = next?.pinned.indexOf(here.raw) ?? -1;
    await choose(next, at < 0 ? `${here.name} is no longer pinned` : `${here.name} is pinned`);
    if (at >= 0) moveTo(state.row, at + ctx.rows.numFound);
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
    return read((known, of) => {
      list = { ...pane(known), of };
      ctx.detail.show({ title: "Columns", content: list.element, focus: true });
    });
  }

  // Another version can have other columns.
  ctx.onScreen(() => {
    const { branch, version } = ctx.screen();
    if (!list?.element.isConnected || same(list.of, { branch, version })) return;
    list.of = { branch, version };
    read((known, of) => list && same(list.of, of) && list.put(known));
  });

  /** @param {Known} known */
  function pane(known) {
    let { columns, groups, total } = known;
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
    const said = h("p", { class: "lnb-soft", "aria-live": "polite" });
    const tools = h("p", {});
    const lists = h("ul", { class: "lnb-column-list" });
    const wanted = () => find.value.trim().toLowerCase();
    const found = () => columns.filter(({ name }) => name.toLowerCase().includes(wanted()));

    /** @param {string} text @param {() => unknown} click @param {boolean} disabled */
    const tool = (text, click, disabled = false) =>
      h("button", { class: "lnb-button", type: "button", disabled, on: { click } }, text);

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
      const toggle = h(
        "button",
        {
          class: "lnb-link",
          type: "button",
          "aria-pressed": String(pinned),
          "aria-label": `pin ${name}`,
          on: {
            click: () =>
              choose(
                withPinned(current(), raw),
                `${name} is ${pinned ? "no longer pinned" : "pinned"}`,
              ),
          },
        },
        pinned ? "Pinned" : "Pin",
      );
      return h("li", {}, box(name, [raw], h("small", {}, type)), toggle);
    }

    /** @param {typeof columns} some */
    function lines(some) {
      const rest = some.length - LONGEST;
      return [
        ...some.slice(0, LONGEST).map(line),
        rest > 0
          ? h("li", { class: "lnb-soft" }, `and ${count(rest)} more: find them by name`)
          : null,
      ];
    }

    /** @param {string} title @param {number} at */
    function group(title, at) {
      const members = columns.filter((one) => one.group === at);
      const names = members.map(({ raw }) => raw);
      const shown = names.filter(shownBy(current())).length;
      const unfold = h(
        "button",
        {
          class: "lnb-link",
          type: "button",
          "aria-expanded": String(unfolded.has(title)),
          "aria-label": `columns of ${title}`,
          on: {
            click: () => {
              if (!unfolded.delete(title)) unfolded.add(title);
              paint();
            },
          },
        },
        unfolded.has(title) ? "Fold" : "Unfold",
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
      const some = found();
      const known = columns.map(({ raw }) => raw).filter(shownBy(current())).length;
      const { numColumns, numFound } = ctx.rows; // a distance or a score is none of them
      const shown = total > columns.length ? numColumns - numFound : known;
      said.textContent =
        `${count(shown)} of ${plural(total, "column")} shown` +
        (wanted() ? ` · ${count(some.length)} found` : "") +
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
          !wanted() || !names.length,
        ),
      );
      if (wanted()) show(lists, lines(some));
      else show(lists, groups.map(group), lines(columns.filter((one) => one.group === null)));
    }
    repaint = () => {
      const at = /** @type {HTMLElement | null} */ (
        lists.contains(document.activeElement) ? document.activeElement : null
      );
      const place = at ? [...lists.querySelectorAll("input, button")].indexOf(at) : -1;
      paint();
      if (place >= 0)
        /** @type {HTMLElement | undefined} */ (
          lists.querySelectorAll("input, button")[place]
        )?.focus();
    };
    paint();
    return {
      element: h("div", { class: "lnb-column-chooser" }, find, said, tools, lists),
      /** @param {Known} next */
      put(next) {
        ({ columns, groups, total } = next);
        repaint();
      },
    };
  }

  return { open, reveal, letters: { h: hide, p: pin, v: open } };
}
