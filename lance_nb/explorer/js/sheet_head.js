// The titles of a sheet: name, type, a word below, and a grip to widen the column.

import { h, setText } from "./dom.js";

/**
 * @param {HTMLElement} head
 * @param {Object} of `store`, `widths`, `note(column)`, `paint()`
 */
export function sheetHead(head, { store, widths, note, paint }) {
  const corner = h("div", { class: "lnb-grid-corner", role: "columnheader", "aria-label": "kind of change" });
  head.append(corner);

  function titleAt() {
    const grip = h("span", { class: "lnb-grid-grip", "aria-hidden": "true" });
    const cell = h("div", { class: "lnb-grid-column", role: "columnheader" }, h("b"), h("span", { class: "lnb-sheet-sub" }, h("small"), h("em")), grip);
    grip.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      grip.setPointerCapture(event.pointerId);
      const start = event.clientX - widths.of(cell.lnb);
      const move = (at) => {
        widths.set(cell.lnb, at.clientX - start);
        paint();
      };
      grip.addEventListener("pointermove", move);
      grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
    });
    return cell;
  }

  return function paintHead(from, to, left, gutter, chosen) {
    const wanted = to - from;
    while (head.children.length - 1 < wanted) head.append(titleAt());
    corner.style.width = `${gutter}px`;
    for (let at = 1; at < head.children.length; at += 1) {
      const cell = head.children[at];
      const index = from + at - 1;
      cell.hidden = at > wanted;
      if (cell.hidden) continue;
      const column = store.column(index);
      cell.lnb = index;
      cell.style.transform = `translateX(${gutter + widths.left(index) - left}px)`;
      cell.style.width = `${widths.of(index)}px`;
      cell.setAttribute("aria-colindex", String(index + 2));
      cell.className = `lnb-grid-column lnb-look-${column?.look ?? "text"}${index === chosen ? " lnb-here" : ""}`;
      const words = note(index);
      const [title, below] = cell.children;
      setText(title, column?.name ?? "…");
      setText(below.firstChild, column?.type ?? "");
      setText(below.lastChild, words);
      cell.title = column ? [`${column.name}${column.type ? `: ${column.type}` : ""}`, words && `${words} changed`].filter(Boolean).join("\n") : "";
    }
  };
}
