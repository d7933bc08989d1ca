// A drag: from the press of a pointer until its release or its cancellation.

import { consume } from "./dom.js";

/**
 * Follow a pointer that was pressed on an element; its events go there until the drag ends. It is
 * cancelled by Escape, by the browser (`pointercancel`), and when the element leaves the page.
 * @param {HTMLElement} element @param {PointerEvent} press
 * @param {{move: (event: PointerEvent) => void, end: (isDone: boolean) => void}} drag `end` is
 *   called once
 */
export function followPointer(element, press, { move, end }) {
  const page = element.ownerDocument;
  /** @param {boolean} isDone */
  const finish = (isDone) => {
    for (const [type, work] of listeners) element.removeEventListener(type, work);
    page.removeEventListener("keydown", onKey, true);
    end(isDone);
  };
  const cancel = () => finish(false);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    consume(event);
    cancel();
  };
  /** @type {[string, (event: any) => void][]} */
  const listeners = [
    ["pointermove", move],
    ["pointerup", () => finish(true)],
    ["pointercancel", cancel],
    ["lostpointercapture", cancel],
  ];
  element.setPointerCapture?.(press.pointerId);
  for (const [type, work] of listeners) element.addEventListener(type, work);
  page.addEventListener("keydown", onKey, true);
}
