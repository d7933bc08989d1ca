// What every widget shares: the root element, the context handed to views, and clean-up.

import { h, show } from "./dom.js";
import { openKernel } from "./kernel.js";
import { errorCard } from "./error_card.js";

/**
 * @typedef {Object} Context what a view gets
 * @property {Object} kernel see kernel.js
 * @property {() => Object} screen the present screen (models of all parts)
 * @property {(paint: (screen: Object) => void) => void} onScreen paint now and on every change
 * @property {(args: Object) => void} travel go to {ref} or {branch, version}
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
      const kernel = openKernel(model);
      const closing = [() => kernel.close()];
      const live = h("div", { class: "lnb-offscreen", "aria-live": "polite" });
      const problem = h("div", { class: "lnb-problem", role: "alert" });
      const body = h("div", { class: "lnb-body" });
      const root = h(
        "section",
        { class: "lnb lnb-live", "aria-label": label, on: { focusin: keepKeys, keydown: leave } },
        problem, body, live,
      );
      root.style.setProperty("--lnb-height", `${model.get("height")}px`);
      el.append(root);
      const context = makeContext(model, kernel, { closing, live, problem });
      kernel.onState((state) => root.setAttribute("data-kernel", state));
      const error = model.get("screen").error;
      if (error) show(body, errorCard(error));
      else mount(body, context);
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

function makeContext(model, kernel, { closing, live, problem }) {
  const shared = { window: null };
  const line = kernel.line();
  return {
    kernel,
    shared,
    height: model.get("height"),
    screen: () => model.get("screen"),
    onScreen(paint) {
      const repaint = () => paint(model.get("screen"));
      model.on("change:screen", repaint);
      closing.push(() => model.off("change:screen", repaint));
      repaint();
    },
    travel(args) {
      line("travel", { ...args, window: shared.window }, () => show(problem), (error) => show(problem, failure(error, () => show(problem))));
    },
    announce(text) {
      live.textContent = text;
    },
    onClose: (work) => closing.push(work),
  };
}

function failure(error, close) {
  const card = error.card ?? { title: "The kernel cannot be asked", message: error.message, where: "", hint: "Run the cell again.", kind: "" };
  return errorCard(card, h("button", { class: "lnb-close", type: "button", "aria-label": "close this message", on: { click: close } }, "×"));
}
