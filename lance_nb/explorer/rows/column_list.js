// The list of columns in the detail pane, with a box for each and for each group.

import { button, count, field, h, plural, show } from "../js/dom.js";
import { everyColumn, shortest, shownBy, withShown } from "./column_chooser.js";

const LONGEST = 200; // columns listed at once

/**
 * @typedef {import("./column_chooser.js").ColumnListing} ColumnListing
 * @typedef {import("./column_chooser.js").ColumnChooser} ColumnChooser
 */

export class ColumnList {
  /** @type {Set<string>} titles of groups */
  unfolded = new Set();
  find = field("find a column to show", {
    placeholder: "find a column…",
    on: { input: () => this.paint() },
  });
  note = h("p", { class: "lnb-soft", "aria-live": "polite" });
  tools = h("p", {});
  lists = h("ul", { class: "lnb-column-list" });

  /** @param {Lnb.Context} ctx @param {ColumnChooser} chooser @param {ColumnListing} listing */
  constructor(ctx, chooser, listing) {
    this.ctx = ctx;
    this.chooser = chooser;
    this.listing = listing;
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

  /** Columns of another version. @param {ColumnListing} listing */
  put(listing) {
    this.listing = listing;
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
    const { columns, groups, total } = this.listing;
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
    const { order = "usual" } = chooser.choice ?? {};
    show(
      this.tools,
      h(
        "span",
        { class: "lnb-choices", role: "group", "aria-label": "order of the columns" },
        [
          ["usual", "what matters first"],
          ["stored", "as in the dataset"],
        ].map(([name, words]) =>
          button(words, () => chooser.arrange(/** @type {"usual" | "stored"} */ (name)), {
            class: "lnb-choice",
            "aria-pressed": String(order === name),
          }),
        ),
      ),
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
      const all = this.listing.columns.map(({ raw }) => raw);
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

  /** @param {ColumnListing["columns"][number]} column */
  line(column) {
    const { raw, name, type } = column;
    const pinned = this.chooser.pinned().includes(raw);
    const toggle = button(pinned ? "Pinned" : "Pin", () => this.chooser.togglePin(column), {
      class: "lnb-link",
      "aria-pressed": String(pinned),
      "aria-label": `pin ${name}`,
    });
    return h("li", {}, this.box(name, [raw], h("small", {}, type)), toggle);
  }

  /** @param {ColumnListing["columns"]} columns */
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
    const members = this.listing.columns.filter(({ group }) => group === index);
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
