// A drag: from the press of a pointer until it is released or given up.

/**
 * Follow a pointer that was pressed on an element; its events go there until the drag ends. It is
 * given up by Escape, by the browser (`pointercancel`), and when the element leaves the page.
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
  const giveUp = () => finish(false);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    giveUp();
  };
  /** @type {[string, (event: any) => void][]} */
  const listeners = [
    ["pointermove", move],
    ["pointerup", () => finish(true)],
    ["pointercancel", giveUp],
    ["lostpointercapture", giveUp],
  ];
  element.setPointerCapture?.(press.pointerId);
  for (const [type, work] of listeners) element.addEventListener(type, work);
  page.addEventListener("keydown", onKey, true);
}
