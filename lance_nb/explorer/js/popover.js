// A button that opens a panel under it. Escape, a click elsewhere, and going away close it.

import { consume, h } from "./dom.js";

/**
 * @param {HTMLElement} opener @param {HTMLElement} panel
 * @param {() => void} [opened] called when the panel was opened
 */
export function popover(opener, panel, opened) {
  const element = h("span.lnb-pop", opener, panel);
  panel.tabIndex = -1; // a click on its ground stays in it

  /** @param {boolean} isOpen */
  function set(isOpen) {
    const root = /** @type {Document | ShadowRoot} */ (panel.getRootNode());
    if (!isOpen && panel.contains(root.activeElement)) opener.focus({ preventScroll: true });
    panel.hidden = !isOpen;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) opened?.();
  }

  opener.addEventListener("click", () => set(Boolean(panel.hidden)));
  element.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || panel.hidden) return;
      consume(event);
      set(false);
    },
    true, // before a box in it, which has an Escape of its own
  );
  element.addEventListener("focusout", (event) => {
    if (!panel.hidden && !element.contains(/** @type {Node | null} */ (event.relatedTarget)))
      set(false);
  });
  set(false);
  return { element, close: () => set(false) };
}
