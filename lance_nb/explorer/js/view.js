// What every widget shares: the root element, the context handed to views, and clean-up.

import { atOnce, h, renewAges, show } from "./dom.js";
import { errorCard } from "./error_card.js";
import { openKernel } from "./kernel.js";
import { lateNotice } from "./late_notice.js";
import { versionRange } from "./version_range.js";

const AGES_MS = 10000;

/**
 * @typedef {Object} Context what a view gets
 * @property {Object} kernel see kernel.js
 * @property {() => Object} screen the present screen (models of all parts)
 * @property {(paint: (screen: Object, patched: boolean) => void, parts?: string[]) => void} onScreen
 *   paint now and on every change; with `parts` a refresh of other parts is not heard of
 * @property {(parts: Object) => void} refresh put newer parts in the screen, without a journey
 * @property {(args: Object) => void} travel go to {ref} or {branch, version}
 * @property {Object} range the handles A and B, see version_range.js
 * @property {(tab: string, target?: Object) => boolean} go open a tab at a target; false: no such tab
 * @property {(tab: string) => boolean} has whether there is such a tab
 * @property {(lines: {python: string, magic: string}|null) => void} code the present state as code
 * @property {Object} detail `show({title, content})` beside the view, `clear()`
 * @property {(error: Error) => HTMLElement} problem an error of `kernel.ask`, readable
 * @property {(text: string) => void} announce say to a screen reader
 * @property {(work: () => void) => void} onClose run when the view goes away
 * @property {Object} shared state that views of one card share (`window`: what the grid shows)
 */

/**
 * Make a widget's default export out of a view's `mount(element, context)`.
 * @param {(element: HTMLElement, context: Context) => void} mount @param {string} label
 */
export function widget(mount, label) {
  return {
    render({ model, el }) {
      const isVisible = () => !document.hidden && root.checkVisibility();
      const kernel = openKernel(model, { isVisible: model.get("screen").kept ? null : isVisible });
      const closing = [() => kernel.close()];
      const live = h("div", { class: "lnb-offscreen", "aria-live": "polite" });
      const problem = h("div", { class: "lnb-problem", role: "alert" });
      const body = h("div", { class: "lnb-body" });
      const root = h(
        "section",
        { class: "lnb lnb-live", "aria-label": label, on: { focusin: keepKeys, keydown: leave } },
        lateNotice(kernel),
        problem,
        body,
        live,
      );
      root.style.setProperty("--lnb-height", `${model.get("height")}px`);
      el.append(root);
      const context = makeContext(model, kernel, { closing, live, problem, root });
      const ages = setInterval(() => document.hidden || renewAges(root), AGES_MS);
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
 * Keep JupyterLab's shortcuts away from keys meant for us: there `d d` deletes the cell. Its attribute
 * counts on the focused element only, because shortcuts match that one before they look further up.
 */
function keepKeys(event) {
  event.target.setAttribute("data-lm-suppress-shortcuts", "true");
}

/** Escape, when no view wanted it, goes back to the notebook. */
function leave(event) {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  const outside = event.currentTarget.parentElement.closest("[tabindex]");
  if (outside) outside.focus({ preventScroll: true });
  else event.target.blur();
}

function makeContext(model, kernel, { closing, live, problem, root }) {
  const shared = { window: null };
  const line = kernel.line();
  const painters = new Set();
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
  closing.push(() => model.off("change:screen", repaint));
  const context = {
    kernel,
    shared,
    root,
    height: model.get("height"),
    screen: () => ({ ...model.get("screen"), ...patch }),
    onScreen(paint, parts = null) {
      painters.add({ paint, parts });
      paint(context.screen(), false);
    },
    refresh(parts) {
      patch = { ...patch, ...parts };
      for (const { paint, parts: wanted } of painters) {
        if (!wanted || wanted.some((name) => name in parts)) paint(context.screen(), true);
      }
    },
    travel: (args) => travelTo(args, () => {}),
    // A view by itself has no tabs, no footer, and shows details under itself; app.js has them all.
    go: () => false,
    has: () => false,
    code() {},
    detail: detailBelow(root),
    problem: (error) => errorCard(cardOf(error)),
    announce(text) {
      live.textContent = text;
    },
    onClose: (work) => closing.push(work),
  };
  function travelTo(args, arrived) {
    const done = () => {
      show(problem);
      arrived();
    };
    const failed = (error) =>
      show(
        problem,
        failure(error, () => show(problem)),
      );
    line("travel", { ...args, window: shared.window }, done, failed);
  }
  context.range = versionRange(context);
  return context;
}

function detailBelow(root) {
  const place = h("div", { class: "lnb-detail-below" });
  return {
    show({ title, content }) {
      if (!place.parentNode) root.append(place);
      show(place, h("h3", { class: "lnb-detail-title" }, title), content);
    },
    clear: () => place.remove(),
  };
}

function cardOf(error) {
  return (
    error.card ?? {
      title: "The kernel cannot be asked",
      message: error.message,
      where: "",
      hint: "Run the cell again.",
      kind: "",
    }
  );
}

function failure(error, close) {
  return errorCard(
    cardOf(error),
    h(
      "button",
      {
        class: "lnb-close",
        type: "button",
        "aria-label": "close this message",
        on: { click: close },
      },
      "×",
    ),
  );
}
