// The menu of a cell: what can be done with its value, its row and its column.

import { button, h } from "../js/dom.js";
import { openBiography } from "./biography.js";

/**
 * @typedef {[words: string, keys: string, act: (() => unknown) | null, note?: string]} Entry an act
 *   that is null cannot be done here
 * @typedef {Object} MenuTargets
 * @property {Lnb.Context} ctx
 * @property {import("../js/virtual_grid.js").VirtualGrid} grid
 * @property {import("./grid_actions.js").GridActions} actions
 * @property {import("./column_chooser.js").ColumnChooser} chooser
 * @property {import("../editing/grid_edits.js").GridEdits} edits
 * @property {Lnb.Column} column
 * @property {(row: number, column: number) => void} open the whole value
 * @property {(row: number) => void} openRow
 */

/** @param {MenuTargets} targets @returns {Entry[][]} groups of entries */
function groups({ ctx, grid, actions, chooser, edits, column, open, openRow }) {
  const { row, column: index } = grid.state;
  const { selection, query } = ctx.rows;
  const { look } = column;
  const isPicked = ["text", "bool", "number", "plain"].includes(look);
  const rowsWords = selection.rows > 1 ? `${selection.rows.toLocaleString("en-US")} rows` : "";
  const copied = rowsWords || (edits.hasBlock ? "cells" : "value");
  /** @param {string} form */
  const copyRows = (form) => () => {
    if (!selection.rows) selection.select(row);
    return actions.copy(form);
  };
  const isPinned = chooser.pinned().includes(column.raw);
  return [
    [
      ["Only this value", "=", isPicked ? () => actions.only(row, index) : null],
      ["Without this value", "", isPicked ? () => actions.only(row, index, true) : null],
      [
        "More like this",
        "n",
        ["text", "vector"].includes(look) ? () => actions.similar(row, index) : null,
      ],
      [
        "History of this row",
        "",
        () => openBiography(ctx, { find: { ...ctx.place(), ...query, row } }),
      ],
    ],
    [
      [`Copy ${copied}`, "Ctrl+C", () => (edits.hasBlock ? edits.copy() : actions.copy())],
      [`Copy ${rowsWords || "row"} as text`, "", copyRows("text")],
      [`Copy ${rowsWords || "row"} as Markdown`, "", copyRows("markdown")],
      [`Copy ${rowsWords || "row"} as code`, "", copyRows("code")],
    ],
    [
      [isPinned ? "Unpin column" : "Pin column", "p", () => chooser.pin()],
      ["Hide column", "h", () => chooser.hide()],
      ["Move column left", "<", () => chooser.move(-1)],
      ["Move column right", ">", () => chooser.move(1)],
      ["About this column", "c", () => actions.openColumn(index)],
    ],
    [
      ["Whole value", "Enter", () => open(row, index)],
      ["Whole row", "Shift+Enter", () => openRow(row)],
      ...(edits.button.hidden
        ? []
        : /** @type {Entry[]} */ ([
            ["Edit", "F2", () => edits.open(row, index)],
            [
              `Stage deletion of ${rowsWords || "this row"}`,
              "",
              edits.edits ? () => edits.stageDeletion(row) : null,
              "the explorer is read-only",
            ],
          ])),
    ],
  ];
}

/**
 * Show the menu at a place in the window; the keyboard goes there, and back to the grid.
 * @param {MenuTargets} targets @param {{x: number, y: number}} corner
 */
export function cellMenu(targets, { x, y }) {
  const close = () => {
    targets.grid.element.focus({ preventScroll: true }); // the menu goes when it loses the keyboard
    if (menu.isConnected) menu.remove();
  };
  /** @param {Entry} entry */
  const item = ([words, keys, act, note = "not for values of this type"]) =>
    button(
      [h("span", {}, words), h("kbd", {}, act ? keys : "")],
      () => {
        close();
        act?.();
      },
      {
        class: "lnb-menu-item",
        role: "menuitem",
        tabindex: "-1",
        disabled: !act,
        title: act ? null : note,
      },
    );
  const menu = h(
    "div",
    { class: "lnb-menu", role: "menu", "aria-label": "actions of the cell", popover: "manual" },
    groups(targets)
      .map((entries, index) => [
        index ? h("div", { class: "lnb-menu-line", role: "separator" }) : null,
        entries.map(item),
      ])
      .flat(2),
  );
  /** @type {HTMLButtonElement[]} */
  const items = [...menu.querySelectorAll("button")].filter((entry) => !entry.disabled);
  menu.addEventListener("keydown", (event) => {
    const index = items.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    /** @type {Record<string, number>} */
    const goals = {
      ArrowDown: (index + 1) % items.length,
      ArrowUp: (index + items.length - 1) % items.length,
      Home: 0,
      End: items.length - 1,
    };
    event.stopPropagation();
    if (event.key in goals) items[goals[event.key]].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (!menu.contains(/** @type {Node | null} */ (relatedTarget))) menu.remove();
  });
  menu.addEventListener("contextmenu", (event) => event.preventDefault());
  targets.grid.element.parentElement?.append(menu);
  menu.showPopover?.();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(0, Math.min(x, innerWidth - width - 4))}px`;
  menu.style.top = `${Math.max(0, Math.min(y, innerHeight - height - 4))}px`;
  items[0].focus({ preventScroll: true });
}
