// The tabs: a tab list as ARIA has it, panels that are mounted when they are first opened. The
// module of some is loaded then; what was to be opened in such a tab is opened as soon as it is
// there. Tabs for which there is no room are in a menu behind them.

import { atOnce, h, onResize, show } from "./dom.js";
import { pageCode } from "./loader.js";
import { popover } from "./popover.js";

let instances = 0;

/**
 * @param {HTMLElement} bar @param {HTMLElement} panels @param {import("../tabs.js").Tab[]} tabs
 * @param {Lnb.Context} ctx
 * @param {(another: boolean) => void} changed called when another tab opens, or the code of one
 *   changes
 */
export function tabHost(bar, panels, tabs, ctx, changed) {
  const uid = `lnb-tabs${(instances += 1)}`;
  /**
   * @typedef {{tab: import("../tabs.js").Tab, button: HTMLElement, panel: HTMLElement,
   *   code: Lnb.CodeLines | null, view: Lnb.View | null, mounted: boolean, stale: (() => void)[],
   *   loading: boolean, failed: boolean, target: object | undefined}} TabView
   */
  const views = new Map(tabs.map((tab) => [tab.id, makeView(tab)]));
  let active = tabs[0].id;

  const list = h(
    "div.lnb-tabs",
    { role: "tablist", "aria-label": "views", on: { keydown: onKey } },
    [...views.values()].map((view) => view.button),
  );
  const more = overflowMenu(list);
  bar.prepend(more.frame);
  ctx.onClose(onResize(more.frame, more.fit));
  ctx.onScreen((screen) => {
    for (const { tab, button } of views.values())
      button.hidden = Boolean(tab.offered) && !(screen.offers ?? []).includes(tab.id);
    more.fit();
    const view = views.get(active);
    if (view?.mounted && view.button.hidden) select(tabs[0].id);
  });
  ctx.onClose(
    ctx.kernel.onState((state) => {
      const view = views.get(active);
      if (state === "live" && view?.failed) load(view);
    }),
  );

  /** @param {import("../tabs.js").Tab} tab @returns {TabView} */
  function makeView(tab) {
    const button = h(
      "button.lnb-tab",
      {
        type: "button",
        role: "tab",
        id: `${uid}-${tab.id}`,
        "aria-controls": `${uid}-${tab.id}-panel`,
        "data-label": tab.label,
        on: { click: () => select(tab.id) },
      },
      tab.label,
    );
    const panel = h("div", {
      class: `lnb-panel lnb-panel-${tab.id}`,
      role: "tabpanel",
      id: `${uid}-${tab.id}-panel`,
      "aria-labelledby": `${uid}-${tab.id}`,
      hidden: true,
    });
    panels.append(panel);
    return {
      tab,
      button,
      panel,
      code: null,
      view: null,
      mounted: false,
      stale: [],
      loading: false,
      failed: false,
      target: undefined,
    };
  }

  /**
   * What the view of a tab gets: it is painted only while it is open.
   * @param {TabView} view @returns {Lnb.Context}
   */
  function contextOf(view) {
    return {
      ...ctx,
      /** @type {Lnb.Context["onScreen"]} */
      onScreen(paint, parts = null) {
        /** @type {{dirty: {patched: boolean} | null}} */
        const later = { dirty: null };
        view.stale.push(() => {
          if (later.dirty) paint(ctx.screen(), later.dirty.patched);
          later.dirty = null;
        });
        ctx.onScreen((screen, patched) => {
          if (view.tab.id === active) paint(screen, patched);
          else later.dirty = { patched: patched && (later.dirty?.patched ?? true) };
        }, parts);
      },
      /** @param {Lnb.CodeLines | null} lines */
      code(lines) {
        view.code = lines;
        if (view.tab.id === active) changed(false);
      },
    };
  }

  /** @param {string} id @param {object} [target] */
  function select(id, target) {
    const view = views.get(id);
    if (!view || view.button.hidden) return false;
    if (id !== active) views.get(active)?.view?.hidden?.();
    active = id;
    for (const opened of views.values()) {
      const chosen = opened === view;
      opened.button.setAttribute("aria-selected", String(chosen));
      opened.button.setAttribute("tabindex", chosen ? "0" : "-1");
      opened.panel.hidden = !chosen;
    }
    more.close();
    if (view.button.classList.contains("lnb-tab-over")) more.fit();
    if (view.mounted) {
      for (const refresh of view.stale) refresh();
      view.view?.shown?.();
    } else if (view.tab.mount) mount(view, view.tab.mount);
    else load(view);
    changed(true);
    if (view.mounted && target) view.view?.open?.(target);
    else view.target = target;
    return true;
  }

  /** @param {TabView} view @param {Lnb.Mount} mountView */
  function mount(view, mountView) {
    view.mounted = true;
    view.view =
      /** @type {Lnb.View | undefined} */ (mountView(view.panel, contextOf(view))) ?? null;
  }

  /** Load the module of a tab and mount it, if it is still open then. @param {TabView} view */
  async function load(view) {
    const { tab, panel } = view;
    if (view.loading) return;
    view.loading = true;
    panel.setAttribute("aria-busy", "true");
    show(panel, h("p.lnb-loading", "Loading…"));
    try {
      const views = await loadViews(ctx.kernel, /** @type {string} */ (tab.entry));
      tab.mount = views.mount;
      view.failed = false;
    } catch (error) {
      view.failed = true;
      const retry = () => load(view);
      show(panel, ctx.problem(/** @type {Lnb.Failure} */ (error), retry));
    }
    view.loading = false;
    panel.removeAttribute("aria-busy");
    if (view.failed || tab.id !== active) return;
    atOnce(() => {
      show(panel);
      mount(view, /** @type {Lnb.Mount} */ (tab.mount));
      changed(false);
      if (view.target) view.view?.open?.(view.target);
    });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const ids = tabs.map((tab) => tab.id).filter((id) => !views.get(id)?.button.hidden);
    const index = ids.indexOf(active);
    /** @type {Record<string, number>} */
    const keys = {
      ArrowLeft: (index + ids.length - 1) % ids.length,
      ArrowRight: (index + 1) % ids.length,
      Home: 0,
      End: ids.length - 1,
    };
    const next = keys[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    select(ids[next]);
    views.get(ids[next])?.button.focus();
  }

  return {
    select,
    get active() {
      return active;
    },
    has: (/** @type {string} */ id) => views.get(id)?.button.hidden === false,
    code: () => views.get(active)?.code ?? null,
    writes: tabs.some((tab) => tab.writes),
  };
}

/**
 * Tabs for which there is no room are in a menu behind the others; the open one never is.
 * @param {HTMLElement} list
 */
function overflowMenu(list) {
  const menu = h("div.lnb-menu");
  const opener = h("button.lnb-tab", { type: "button", title: "more views" }, "More ▾");
  const { element, close } = popover(opener, menu);
  const frame = h("div.lnb-tabs-frame", list, element);

  function fit() {
    const tabs = /** @type {HTMLElement[]} */ ([...list.children]).filter((tab) => !tab.hidden);
    for (const tab of tabs) tab.classList.remove("lnb-tab-over");
    element.hidden = true;
    let room = frame.clientWidth;
    if (list.scrollWidth <= room) return;
    element.hidden = false;
    const isOpen = (/** @type {Element} */ tab) => tab.getAttribute("aria-selected") === "true";
    const widths = new Map(tabs.map((tab) => [tab, tab.offsetWidth]));
    room -= opener.offsetWidth;
    for (const tab of tabs) if (isOpen(tab)) room -= widths.get(tab) ?? 0;
    const over = tabs.filter((tab) => !isOpen(tab) && (room -= widths.get(tab) ?? 0) < 0);
    for (const tab of over) tab.classList.add("lnb-tab-over");
    show(menu, over.map(line));
  }

  /** @param {HTMLElement} tab */
  function line(tab) {
    const click = () => {
      tab.click();
      tab.focus();
    };
    return h("button.lnb-menu-line", { type: "button", on: { click } }, tab.textContent);
  }

  return { frame, fit, close };
}

const NO_KERNEL = {
  title: "This tab needs a kernel",
  message: "It is read when it is opened for the first time, and no kernel is connected.",
  hint: "Run the cell to see it.",
};

/** @param {{title: string, message: string, hint: string}} card @returns {Lnb.Failure} */
function failure(card) {
  return Object.assign(new Error(card.message), { card: { where: "", kind: "Kernel", ...card } });
}

/** @typedef {Pick<Lnb.Widget, "mount">} Views */
/** @type {Map<string, Views>} */
const held = new Map();

/**
 * Hold the views of a module, which the kernel is then not asked for.
 * @param {string} entry @param {Views} views
 */
export function holdViews(entry, views) {
  held.set(entry, views);
}

/**
 * Load the views of a module. Rejects with an error that carries an error card.
 * @param {Lnb.Kernel} kernel
 * @param {string} entry
 * @returns {Promise<Views>}
 */
export async function loadViews(kernel, entry) {
  let forget = () => {};
  const views = held.get(entry);
  if (views) return views;
  if (kernel.state === "static" && !kernel.isLost) throw failure(NO_KERNEL);
  const failed = new Promise((_resolve, reject) => {
    forget = kernel.onState((state) => {
      if (state === "static" && !kernel.isLost) reject(failure(NO_KERNEL));
    });
  });
  try {
    const { result } = await Promise.race([kernel.ask("views.load", { entry }), failed]);
    pageCode(result.key).add(result);
    const { default: loaded } = await pageCode(result.key).load(entry);
    holdViews(entry, loaded);
    return loaded;
  } finally {
    forget();
  }
}
