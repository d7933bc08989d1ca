// The pane beside the tabs: the version by default, or what a view puts there until it is closed.

import { button, consume, h, show } from "./dom.js";

/**
 * @param {HTMLElement} el @param {HTMLElement} main gets a class while the pane is folded away
 * @param {(text: string) => void} announce
 */
export function detailPane(el, main, announce) {
  const version = h("div", { class: "lnb-detail-version" });
  const title = h("h3", { class: "lnb-detail-title" });
  const content = h("div", { class: "lnb-detail-content" });
  const close = button("×", () => pane.clear(), {
    class: "lnb-close",
    "aria-label": "back to the version",
  });
  const other = h(
    "section",
    {
      class: "lnb-pane",
      tabindex: "0",
      "aria-label": "details",
      hidden: true,
      on: { keydown: onKey },
    },
    h("header", {}, title, close),
    content,
  );
  const toggle = button("Details", () => fold(!main.classList.contains("lnb-folded")), {
    class: "lnb-button lnb-detail-toggle",
    "aria-pressed": "true",
    title: "show or hide the details",
  });
  /** @type {HTMLElement | null} */
  let before = null;
  el.append(version, other);

  function focused() {
    const root = /** @type {Document | ShadowRoot} */ (el.getRootNode());
    return /** @type {HTMLElement | null} */ (root.activeElement);
  }

  /** @param {boolean} folded */
  function fold(folded) {
    main.classList.toggle("lnb-folded", folded);
    el.hidden = folded;
    toggle.setAttribute("aria-pressed", String(!folded));
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Escape") return;
    consume(event);
    pane.clear();
  }

  const pane = {
    version,
    toggle,
    /** Show something; `focus` moves the keyboard there, and back when it is closed. */
    /** @type {Lnb.Detail["show"]} */
    show({ title: words, content: shown, focus = false }) {
      title.textContent = words;
      show(content, shown);
      version.hidden = true;
      other.hidden = false;
      main.classList.add("lnb-detailed");
      other.scrollTop = 0;
      fold(false);
      announce(words);
      if (!focus) return;
      before = focused();
      other.focus({ preventScroll: true });
    },
    clear() {
      if (other.hidden) return;
      const back = other.contains(focused()) ? before : null;
      show(content);
      other.hidden = true;
      version.hidden = false;
      main.classList.remove("lnb-detailed");
      back?.focus?.({ preventScroll: true });
      before = null;
    },
  };
  return pane;
}
