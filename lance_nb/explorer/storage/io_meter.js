// What the last action cost at the store, and all of them since the explorer was opened.

import { bytes, count, h, plural, setText } from "../js/dom.js";

const PAUSE_MS = 120; // what was asked for is shown first

/** @param {Lnb.Context} ctx @returns {HTMLElement} */
export function ioMeter({ kernel, onClose }) {
  const element = h("span.lnb-io");
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function paint() {
    timer = undefined;
    const { total, last } = kernel.costs;
    const words = `${plural(last.requests, "request")} · ${bytes(last.bytes)}`;
    setText(element, `last action: ${words} · ${count(last.ms)} ms`);
    const seconds = (total.ms / 1000).toFixed(1);
    element.title =
      `Since the explorer was opened: ${plural(total.requests, "request")} ` +
      `to the store, ${bytes(total.bytes)}, ${seconds} s`;
  }
  const stop = kernel.onCost(() => {
    timer ||= setTimeout(paint, PAUSE_MS);
  });
  onClose(() => {
    stop();
    clearTimeout(timer);
  });
  paint();
  return element;
}
