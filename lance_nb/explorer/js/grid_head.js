// The head of a grid: names and types, what else its caller says of a column, grips to widen
// columns.

import { h, setAttribute, setText } from "./dom.js";
import { followPointer } from "./pointer_drag.js";

/**
 * @typedef {Object} Titles
 * @property {{text: string, label?: string}} corner
 * @property {(at: () => number) => Lnb.Child} parts elements for the type and after it; `at()` is
 *   the column
 * @property {(at: number, event: MouseEvent) => void} [clicked]
 * @property {(cell: HTMLElement, at: number, column: Lnb.Column | undefined) => string} draw
 *   returns words for the title
 */

/**
 * @param {HTMLElement} head
 * @param {{store: Lnb.PageStore, widths: Lnb.ColumnWidths, titles: Titles,
 *   isChosen: (at: number) => boolean, shown: () => number[], paint: () => void}} grid `shown()`:
 *   the rows in sight
 */
export function gridHead(head, { store, widths, titles, isChosen, shown, paint }) {
  const corner = h(
    "div",
    { class: "lnb-grid-corner", role: "columnheader", "aria-label": titles.corner.label ?? null },
    titles.corner.text,
  );
  head.append(corner);

  function titleAt() {
    const grip = h("span", { class: "lnb-grid-grip", "aria-hidden": "true" });
    /** @type {Lnb.Recycled} */
    const cell = h(
      "div",
      { class: "lnb-grid-column", role: "columnheader" },
      h("b"),
      titles.parts(() => cell.lnb),
      grip,
    );
    grip.addEventListener("pointerdown", (event) => resize(event, cell.lnb, grip));
    cell.addEventListener("click", (event) => {
      if (!grip.contains(/** @type {Node} */ (event.target))) titles.clicked?.(cell.lnb, event);
    });
    grip.addEventListener("dblclick", () => {
      widths.fit(
        cell.lnb,
        store.column(cell.lnb),
        shown().map((row) => store.cell(row, cell.lnb)),
      );
      paint();
    });
    return cell;
  }

  /** @param {PointerEvent} event @param {number} index @param {HTMLElement} grip */
  function resize(event, index, grip) {
    event.preventDefault();
    const before = widths.of(index);
    /** @param {number} wide */
    const widen = (wide) => {
      widths.set(index, wide);
      paint();
    };
    followPointer(grip, event, {
      move: (at) => widen(before + at.clientX - event.clientX),
      end: (isDone) => isDone || widen(before),
    });
  }

  /**
   * @param {number[]} columns in sight
   * @param {{xOf: (index: number) => number, pinned: number, gutter: number, here: number}} place
   *   where each begins, how many are pinned, the column of the keyboard
   */
  return function paintHead(columns, { xOf, pinned, gutter, here: current }) {
    const numColumns = columns.length;
    while (head.children.length - 1 < numColumns) head.append(titleAt());
    corner.style.width = `${gutter}px`;
    const stuckEnd = gutter + widths.left(pinned);
    for (let cellIndex = 1; cellIndex < head.children.length; cellIndex += 1) {
      const cell = /** @type {Lnb.Recycled} */ (head.children[cellIndex]);
      const index = columns[cellIndex - 1];
      cell.hidden = cellIndex > numColumns;
      if (cell.hidden) {
        cell.className = "lnb-grid-column"; // a hidden cell has no mark of the chosen column
        continue;
      }
      const column = store.column(index);
      cell.lnb = index;
      cell.style.transform = `translateX(${xOf(index)}px)`;
      const wide = widths.of(index);
      cell.style.width = `${wide}px`;
      // A title stays in sight while its column is scrolled out on the left.
      const cut = index < pinned ? 0 : stuckEnd - xOf(index);
      const title = /** @type {HTMLElement} */ (cell.firstElementChild);
      title.style.marginInlineStart = cut > 0 ? `${Math.min(cut, Math.max(0, wide - 90))}px` : "";
      setAttribute(cell, "aria-colindex", String(index + 2));
      const chosen = isChosen(index) ? " lnb-chosen" : "";
      const stuck = index < pinned ? " lnb-pinned" : "";
      const marks = `${index === current ? " lnb-here" : ""}${chosen}${stuck}`;
      cell.className = `lnb-grid-column lnb-look-${column?.look ?? "text"}${marks}`;
      setText(title, column?.name ?? "…");
      setText(/** @type {Element} */ (cell.querySelector("small")), column?.type ?? "");
      const words = titles.draw(cell, index, column);
      setAttribute(
        cell,
        "title",
        column
          ? [`${column.name}${column.type ? `: ${column.type}` : ""}`, words]
              .filter(Boolean)
              .join("\n")
          : "",
      );
    }
  };
}
