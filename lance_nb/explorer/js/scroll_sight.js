// What is seen of an element that scrolls: its size and its place, remembered. To ask the page for
// them lays all of it out at once, with whatever others have changed there.

/** @param {HTMLElement} element */
export function scrollSight(element) {
  const sight = {
    width: 0,
    height: 0,
    left: 0,
    top: 0,
    /** Look anew: in a `scroll` and when the size changed, where the page is laid out anyway. */
    read() {
      // A notebook may take a view away for the length of a frame: what was seen last still stands.
      if (!element.clientWidth) return false;
      const {
        clientWidth: width,
        clientHeight: height,
        scrollLeft: left,
        scrollTop: top,
      } = element;
      Object.assign(sight, { width, height, left, top });
      return true;
    },
    /**
     * Scroll; the browser keeps within what there is.
     * @param {{left?: number, top?: number}} place
     */
    to({ left, top }) {
      if (left !== undefined) element.scrollLeft = left;
      if (top !== undefined) element.scrollTop = top;
      sight.read();
    },
  };
  return sight;
}
