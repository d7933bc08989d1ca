// The mouse in the grid of the rows: a press goes to a cell, a drag selects a block of cells, a
// press on the number of a row selects the row, a right click opens the menu.

import { consume } from "../js/dom.js";

/**
 * @typedef {Object} MouseTargets
 * @property {import("../js/virtual_grid.js").VirtualGrid} grid
 * @property {import("../editing/grid_edits.js").GridEdits} edits
 * @property {() => void} clear select nothing
 * @property {(row: number, how: {extend: boolean, add: boolean, from: number}) => void} selectRow
 * @property {(row: number, column: number) => void} open the value of a cell
 * @property {(row: number) => boolean} isSelected
 * @property {(corner: {x: number, y: number}) => void} openMenu at a place in the window
 */

export class GridMouse {
  /** @type {{row: number, index: number} | null} the cell in which the button was pressed */
  pressed = null;
  isDown = false;
  hasDragged = false; // a block of cells was selected with it

  /** @param {Lnb.Context} ctx @param {MouseTargets} targets */
  constructor(ctx, targets) {
    this.targets = targets;
    const { body } = targets.grid;
    body.addEventListener("mousedown", (event) => this.press(event));
    body.addEventListener("click", (event) => this.click(event));
    body.addEventListener("dblclick", (event) => this.open(event));
    body.addEventListener("mousemove", (event) => this.drag(event));
    body.addEventListener("contextmenu", (event) => this.menu(event));
    const release = () => {
      this.isDown = false;
    };
    window.addEventListener("mouseup", release);
    ctx.onClose(() => window.removeEventListener("mouseup", release));
  }

  focus() {
    this.targets.grid.element.focus({ preventScroll: true });
  }

  /** @param {MouseEvent} event */
  press(event) {
    if (event.button) return;
    this.pressed = cellAt(event);
    if (this.pressed) {
      this.isDown = true;
      this.hasDragged = false;
      if (event.shiftKey) event.preventDefault(); // it would select text
    } else if (numberAt(event)) {
      event.preventDefault(); // Shift and a click would select text
      this.focus();
    }
  }

  /** @param {MouseEvent} event */
  click(event) {
    const { grid, edits, clear, selectRow } = this.targets;
    const number = numberAt(event);
    if (number) {
      const { lnb: row } = /** @type {Lnb.Recycled} */ (number.parentNode);
      const from = grid.state.row;
      grid.moveTo(row, grid.state.column); // Shift and an arrow goes on from there
      const add = event.ctrlKey || event.metaKey;
      return selectRow(row, { extend: event.shiftKey, add, from });
    }
    const cell = cellAt(event);
    if (!cell) return;
    if (event.shiftKey) edits.drag(cell.row, cell.index);
    else if (this.hasDragged) this.hasDragged = false;
    else {
      clear();
      grid.moveTo(cell.row, cell.index);
    }
  }

  /** A right click: the menu of what is selected, or of the cell. @param {MouseEvent} event */
  menu(event) {
    const { grid, edits, clear, isSelected, openMenu } = this.targets;
    const number = numberAt(event);
    const cell = cellAt(event);
    if (event.shiftKey || !(number || cell)) return; // with Shift that of the browser comes
    consume(event); // or JupyterLab opens its own
    const { lnb: row } = /** @type {Lnb.Recycled} */ (number?.parentNode ?? { lnb: cell?.row });
    const index = cell?.index ?? grid.state.column;
    if (!isSelected(row) && !edits.holds(row, index)) clear();
    grid.moveTo(row, index);
    openMenu({ x: event.clientX, y: event.clientY });
  }

  /** @param {MouseEvent} event */
  open(event) {
    const cell = cellAt(event);
    if (!cell) return;
    const { edits, open } = this.targets;
    if (edits.edits) edits.open(cell.row, cell.index);
    else open(cell.row, cell.index);
  }

  /** @param {MouseEvent} event */
  drag(event) {
    const cell = this.isDown && event.buttons === 1 ? cellAt(event) : null;
    if (!cell) return;
    const { pressed } = this;
    const { grid, edits } = this.targets;
    if (!this.hasDragged && pressed) {
      if (cell.row === pressed.row && cell.index === pressed.index) return;
      edits.clear();
      grid.moveTo(pressed.row, pressed.index);
      getSelection()?.removeAllRanges();
      this.focus();
    }
    this.hasDragged = true;
    edits.drag(cell.row, cell.index);
  }
}

/** @param {Event} event @returns {{row: number, index: number} | null} */
function cellAt({ target }) {
  /** @type {Lnb.Recycled | null} */
  const cell = /** @type {Element} */ (target).closest(".lnb-cell");
  return cell && { row: cell.lnb.row, index: cell.lnb.index };
}

/** The number of a row, if the event is in one. @param {Event} event */
function numberAt({ target }) {
  return /** @type {Element} */ (target).closest(".lnb-grid-number");
}
