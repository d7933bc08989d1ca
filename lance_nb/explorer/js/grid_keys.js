// The keyboard of the grid, as the ARIA grid pattern has it.

import { consume } from "./dom.js";

/**
 * @typedef {{row: number, column: number, numRows: number, numColumns: number}} GridPlace
 * @typedef {Object} GridActions
 * @property {GridPlace} state
 * @property {() => number} page rows of a page
 * @property {(row: number, column: number) => void} moveTo
 * @property {(row: number, how: {extend: boolean, from?: number, walks?: boolean}) => void} select
 *   `from`: the row of the keyboard before it `walks`
 * @property {(column: number) => void} chooseColumn
 * @property {(row: number, column: number) => void} open the value
 * @property {(row: number) => void} openRow
 * @property {(by: number) => void} widen
 * @property {(event: KeyboardEvent) => (() => void) | null | undefined} [first] asked before
 *   the others
 * @property {Record<string, () => void>} letters actions by the key that starts them; `copy`, `all`
 */

/**
 * @param {HTMLElement} element the grid
 * @param {GridActions} grid
 */
export function gridKeys(element, grid) {
  element.addEventListener("keydown", (event) => {
    if (event.target !== element) return;
    const act = grid.first?.(event) ?? action(event, grid);
    if (!act) return;
    consume(event);
    act();
  });
}

/** Whether Ctrl is held, or Command on macOS. @param {KeyboardEvent} event */
export const commands = (event) => event.ctrlKey || event.metaKey;

/** Keys, for the list that `?` shows. */
export const KEYS = [
  ["arrows, Page Up/Down, Home, End", "move; with Ctrl to the end"],
  ["Space, Shift+Space, Ctrl+Space", "select the row, up to it, the column"],
  ["Enter", "whole value"],
  ["Shift+Enter", "whole row"],
  ["c", "the column: profile, filter, order"],
  ["s, S", "sort by the column, also by the column"],
  ["h, p, v", "hide or pin the column, choose columns"],
  ["<, >", "move the column to the left, to the right"],
  ["Menu, Shift+F10, right click", "what can be done with the cell"],
  ["=", "only rows with this value"],
  ["n", "rows like this vector or text"],
  ["/, f", "filter, search for words"],
  ["Ctrl+A", "select all rows"],
  ["Ctrl+C", "copy the selection, or the cell (on macOS also Command)"],
  ["Shift+←/→, Shift and a click, drag", "select a block of cells; Ctrl+C copies it"],
  ["F2, double click", "edit the cell, where writing is allowed"],
  ["While editing: any letter", "type into the cell"],
  ["Enter, Tab", "accept and go down, right; with Shift up, left"],
  ["Delete, Ctrl+D, Ctrl+V", "set null, fill down, paste a block"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["Escape", "clear the selection; leave the cell, then the editing"],
  ["F1, ?", "these keys"],
  ["Alt+←/→", "width of the column"],
];

/**
 * @param {KeyboardEvent} event @param {GridActions} grid
 * @returns {(() => void) | null | undefined}
 */
function action(
  event,
  { state, page, moveTo, select, chooseColumn, open, openRow, widen, letters },
) {
  const { row, column, numRows, numColumns } = state;
  if (event.altKey) {
    const by = event.key === "ArrowLeft" ? -16 : event.key === "ArrowRight" ? 16 : 0;
    return by ? () => widen(by) : null;
  }
  if (event.key === "F1") return letters["?"];
  if (event.key === "Enter" && event.shiftKey) return numRows ? () => openRow(row) : null;
  if (event.key === "Enter") return numRows ? () => open(row, column) : null;
  if (event.key === " " && commands(event)) return () => chooseColumn(column);
  if (event.key === " ") return numRows ? () => select(row, { extend: event.shiftKey }) : null;
  if (commands(event) && event.key === "c")
    return numRows && !getSelection()?.toString() ? letters.copy : null;
  if (commands(event) && event.key === "a") return numRows ? letters.all : null;
  if (!commands(event) && event.key.length === 1) return letters[event.key];
  const far = commands(event);
  /** @type {Record<string, [row: number, column: number]>} */
  const targets = {
    ArrowUp: [far ? 0 : row - 1, column],
    ArrowDown: [far ? numRows - 1 : row + 1, column],
    ArrowLeft: [row, far ? 0 : column - 1],
    ArrowRight: [row, far ? numColumns - 1 : column + 1],
    PageUp: [row - page(), column],
    PageDown: [row + page(), column],
    Home: [far ? 0 : row, 0],
    End: [far ? numRows - 1 : row, numColumns - 1],
  };
  const target = targets[event.key];
  if (!target) return null;
  return () => {
    moveTo(...target);
    if (event.shiftKey && target[1] === column)
      select(state.row, { extend: true, from: row, walks: true });
  };
}
