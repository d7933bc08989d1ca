// What the last action cost, and all of them: requests to the store, bytes, time.

import { bytes, count, h, plural, setText } from "./dom.js";

const PAUSE_MS = 120; // what was asked for is shown first

/** @param {Lnb.Context} ctx @returns {HTMLElement} */
export function ioMeter(ctx) {
  const element = h("span", { class: "lnb-io" });
  const first = ctx.screen().io ?? { requests: 0, bytes: 0, ms: 0 };
  const total = { ...first };
  let last = first;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function paint() {
    timer = undefined;
    setText(
      element,
      `${plural(last.requests, "request")} · ${bytes(last.bytes)} · ${count(last.ms)} ms`,
    );
    const seconds = (total.ms / 1000).toFixed(1);
    element.title =
      `the last action; since the explorer was opened ${plural(total.requests, "request")} ` +
      `to the store, ${bytes(total.bytes)}, ${seconds} s`;
  }
  ctx.onClose(() => clearTimeout(timer));
  ctx.onClose(
    ctx.kernel.onCost((cost, quiet) => {
      total.requests += cost.requests;
      total.bytes += cost.bytes;
      total.ms += cost.ms;
      if (quiet) return;
      last = cost;
      timer ||= setTimeout(paint, PAUSE_MS);
    }),
  );
  paint();
  return element;
}
