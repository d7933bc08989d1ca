// The head of the grid: names, types, what the values look like, and grips to widen columns.

import { h, setText } from "./dom.js";
import { brushing } from "./brush.js";

/**
 * @param {HTMLElement} head
 * @param {Object} grid `store`, `widths`, `profiles`, `paint()`, `shown()`: the rows in sight,
 *   `open(at)` a column, `choose(at)` it, `brush(at, from, to)`, `isChosen(at)`, `order()`
 */
export function gridHead(head, { store, widths, profiles, paint, shown, open, choose, brush, isChosen, order }) {
  const corner = h("div", { class: "lnb-grid-corner", role: "columnheader" }, "#");

  function cellAt() {
    const grip = h("span", { class: "lnb-grid-grip", "aria-hidden": "true" });
    const cell = h("div", { class: "lnb-grid-column", role: "columnheader" }, h("b"), h("small"), h("span", { class: "lnb-profile", "aria-hidden": "true" }), grip);
    grip.addEventListener("pointerdown", (event) => resize(event, cell.lnb, grip));
    const drawn = cell.children[2];
    brushing(drawn, () => profiles.of(cell.lnb), (from, to) => brush(cell.lnb, from, to));
    cell.addEventListener("click", (event) => {
      if (grip.contains(event.target) || drawn.contains(event.target)) return;
      if (event.ctrlKey || event.metaKey) choose(cell.lnb);
      else open(cell.lnb);
    });
    grip.addEventListener("dblclick", () => {
      widths.fit(cell.lnb, store.column(cell.lnb), shown().map((row) => store.cell(row, cell.lnb)));
      paint();
    });
    return cell;
  }

  function resize(event, index, grip) {
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    const start = event.clientX - widths.of(index);
    const move = (at) => {
      widths.set(index, at.clientX - start);
      paint();
    };
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
  }

  return {
    paint(from, to, left, rowHeadWidth, chosen) {
      const wanted = to - from;
      while (head.children.length - 1 < wanted) head.append(cellAt());
      if (head.firstChild !== corner) head.prepend(corner);
      corner.style.width = `${rowHeadWidth}px`;
      for (let at = 1; at < head.children.length; at += 1) {
        const cell = head.children[at];
        const index = from + at - 1;
        cell.hidden = at > wanted;
        if (cell.hidden) {
          cell.className = "lnb-grid-column"; // the mark of the chosen column belongs to one that is seen
          continue;
        }
        const column = store.column(index);
        cell.lnb = index;
        cell.style.transform = `translateX(${rowHeadWidth + widths.left(index) - left}px)`;
        cell.style.width = `${widths.of(index)}px`;
        cell.setAttribute("aria-colindex", String(index + 2));
        cell.className = `lnb-grid-column lnb-look-${column?.look ?? "text"}${index === chosen ? " lnb-here" : ""}${isChosen(index) ? " lnb-chosen" : ""}`;
        const sorted = column && order()?.column === column.raw ? (order().ascending ? "ascending" : "descending") : null;
        if (sorted) cell.setAttribute("aria-sort", sorted);
        else cell.removeAttribute("aria-sort");
        setText(cell.children[0], column?.name ?? "…");
        setText(cell.children[1], column?.type ?? "");
        const words = profiles.draw(cell.children[2], index);
        cell.title = column ? [`${column.name}: ${column.type}`, words].filter(Boolean).join("\n") : "";
      }
    },
  };
}
