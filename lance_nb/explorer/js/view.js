// What every widget shares: the root element, the context handed to views, and clean-up.

import { atOnce, h, renewAges, show } from "./dom.js";
import { errorCard } from "./error_card.js";
import { Kernel } from "./kernel.js";
import { onScreen } from "./on_screen.js";
import { ShownRows } from "./shown_rows.js";
import { versionRange } from "./version_range.js";

const AGES_MS = 10000;

/** @typedef {Lnb.Context} Context what a view gets, see types.d.ts */

/**
 * Make a widget's default export out of a view's `mount(element, context)`.
 * @param {(element: HTMLElement, context: Context) => unknown} mount @param {string} label
 * @returns {Lnb.Widget}
 */
export function widget(mount, label) {
  return {
    mount: /** @type {Lnb.Mount} */ (mount),
    render({ model, el }) {
      const isVisible = () => !document.hidden && root.checkVisibility();
      const { kept, io } = model.get("screen");
      const kernel = new Kernel(model, {
        isVisible: kept ? null : isVisible,
        cost: io ?? undefined,
      });
      /** @type {(() => void)[]} */
      const closing = [() => kernel.close()];
      const live = h("div.lnb-offscreen", { "aria-live": "polite" });
      const problem = h("div.lnb-problem", { role: "alert" });
      const body = h("div.lnb-body");
      const root = h(
        "section.lnb.lnb-live",
        {
          "aria-label": label,
          on: { focusin: keepKeys, keydown: leave, contextmenu: keepMenu },
        },
        lateNotice(kernel),
        problem,
        body,
        live,
      );
      root.style.setProperty("--lnb-height", `${model.get("height")}px`);
      el.append(root);
      const context = makeContext(model, kernel, { closing, live, problem, root });
      const ages = setInterval(() => {
        if (!document.hidden) renewAges(root);
      }, AGES_MS);
      closing.push(() => clearInterval(ages));
      kernel.onState((state) => root.setAttribute("data-kernel", state));
      const error = model.get("screen").error;
      if (error) show(body, errorCard(error));
      else atOnce(() => mount(body, context));
      return () => {
        for (const work of closing.splice(0)) work();
        root.remove();
      };
    },
  };
}

/**
 * Keep JupyterLab's shortcuts away from keys meant for us: there `d d` deletes the cell. Its
 * attribute counts on the focused element only, because shortcuts match that one before they look
 * further up.
 * @param {Lnb.Heard<FocusEvent>} event
 */
function keepKeys(event) {
  event.target.setAttribute("data-lm-suppress-shortcuts", "true");
}

/**
 * Fields keep the context menu of the browser, which can paste; JupyterLab would show its own.
 * @param {Lnb.Heard<MouseEvent>} event
 */
function keepMenu(event) {
  if (event.target.closest("input, textarea")) event.stopPropagation();
}

/**
 * Escape, when no view wanted it, goes back to the notebook.
 * @param {Lnb.Heard<KeyboardEvent>} event
 */
function leave(event) {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  const outside = event.currentTarget.parentElement?.closest("[tabindex]");
  if (outside instanceof HTMLElement) outside.focus({ preventScroll: true });
  else event.target.blur();
}

/**
 * @param {Lnb.Model} model @param {Lnb.Kernel} kernel
 * @param {{closing: (() => void)[], live: HTMLElement, problem: HTMLElement, root: HTMLElement}}
 *   parts
 * @returns {Context}
 */
function makeContext(model, kernel, { closing, live, problem, root }) {
  const shared = { window: null };
  const line = kernel.line();
  /**
   * @type {Set<{paint: (screen: Lnb.Screen, patched: boolean) => void, parts: string[] | null}>}
   */
  const painters = new Set();
  /** @type {Partial<Lnb.Screen>} */
  let patch = {};
  const repaint = () => {
    patch = {};
    atOnce(() => {
      for (const { paint } of painters) paint(model.get("screen"), false);
    });
  };
  // The views ask anew for all that they show.
  kernel.onRetry(() => {
    const { branch, version } = model.get("screen");
    travelTo({ branch, version }, repaint);
  });
  model.on("change:screen", repaint);
  closing.push(() => {
    model.off("change:screen", repaint);
    painters.clear(); // a model that is firing still calls what was just taken off
  });
  const unsubscribe = onScreen(kernel, root, () => {
    const { branch, version } = model.get("screen");
    return { branch: branch ?? null, version: version ?? null };
  });
  closing.push(unsubscribe.close);
  /** @type {Omit<Context, "range" | "rows">} */
  const context = {
    kernel,
    shared,
    root,
    height: model.get("height"),
    screen: () => ({ ...model.get("screen"), ...patch }),
    place: () => {
      const { branch, version } = context.screen();
      return { branch, version };
    },
    onScreen(paint, parts = null) {
      painters.add({ paint, parts });
      paint(context.screen(), false);
    },
    refresh(parts) {
      patch = { ...patch, ...parts };
      for (const { paint, parts: painterParts } of painters) {
        if (!painterParts || painterParts.some((name) => name in parts))
          paint(context.screen(), true);
      }
    },
    travel: (args) => travelTo(args, () => {}),
    // A view by itself has no tabs, no footer, and shows details under itself; app.js has them all.
    go: () => false,
    has: () => false,
    code() {},
    detail: detailBelow(root),
    problem: (error, retry) => errorCard({ ...cardOf(error), ...(retry && { retry }) }),
    announce(text) {
      live.textContent = text;
    },
    describe: unsubscribe.describe,
    onClose: (work) => closing.push(work),
  };
  /** @param {Lnb.Args} args @param {() => void} arrived */
  function travelTo(args, arrived) {
    const done = () => {
      show(problem);
      arrived();
    };
    /** @type {Lnb.Failed} */
    const failed = (error) =>
      show(
        problem,
        failure(error, () => show(problem)),
      );
    line("travel", { ...args, window: shared.window }, done, failed);
  }
  const whole = /** @type {Context} */ (context);
  whole.range = versionRange(whole);
  whole.rows = new ShownRows(whole);
  return whole;
}

/** @param {HTMLElement} root @returns {Lnb.Detail} */
function detailBelow(root) {
  const place = h("div.lnb-detail-below");
  return {
    show({ title, content }) {
      if (!place.parentNode) root.append(place);
      show(place, h("h3.lnb-detail-title", title), content);
    },
    clear: () => place.remove(),
  };
}

/** @param {unknown} error @returns {Lnb.Card} */
function cardOf(error) {
  const { card, message } = /** @type {Lnb.Failure} */ (error);
  const hint = "Run the cell again.";
  return card ?? { title: "The kernel cannot be reached", message, where: "", hint, kind: "" };
}

/** @param {Lnb.Failure} error @param {() => void} close */
function failure(error, close) {
  return errorCard(
    cardOf(error),
    h(
      "button.lnb-close",
      {
        type: "button",
        "aria-label": "close this message",
        on: { click: close },
      },
      "×",
    ),
  );
}

const WORDS =
  "No answer from the kernel yet. It may be busy running a cell; " +
  "the answer appears here when it is done.";

/**
 * A line above the view while the kernel does not answer: it may be busy, so this is no error.
 * @param {Lnb.Kernel} kernel @returns {HTMLElement} shown while requests of the user are late
 */
export function lateNotice(kernel) {
  const again = () => {
    kernel.tryAgain();
    words.textContent = "Asked again. Waiting for the kernel…";
  };
  const words = h("span");
  const button = h("button.lnb-button", { type: "button", on: { click: again } }, "Try again");
  const element = h("div.lnb-late", { role: "status", hidden: true }, words, button);
  kernel.onLate((count) => {
    element.hidden = !count;
    words.textContent = count ? WORDS : "";
  });
  return element;
}
