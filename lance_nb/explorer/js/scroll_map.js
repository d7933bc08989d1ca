// Where an element is scrolled to, and which rows that is. Browsers clip elements near 16.7 million
// pixels, so beyond MAX_PIXELS the scroll position stands for a share of the rows, and the wheel
// moves by rows instead of pixels.

const MAX_PIXELS = 8_000_000;

/** Map the scroll position to rows. @param {number} rowHeight */
export function scrollMap(rowHeight) {
  let numRows = 0;
  let room = 0;
  const map = {
    get scaled() {
      return numRows * rowHeight > MAX_PIXELS;
    },
    /** Height of the scrolled content in pixels. */
    get height() {
      return Math.min(numRows * rowHeight, MAX_PIXELS);
    },
    /** The last position (in rows, may be fractional) at which a full viewport is left. */
    get lastTop() {
      return Math.max(0, numRows - room / rowHeight);
    },
    /** @param {number} rows @param {number} viewport */
    set(rows, viewport) {
      numRows = rows;
      room = viewport;
    },
    /** Pixels scrolled -> row at the top, fractional. @param {number} pixels */
    topOf(pixels) {
      if (!map.scaled) return pixels / rowHeight;
      const most = map.height - room;
      return most > 0 ? Math.min(1, pixels / most) * map.lastTop : 0;
    },
    /** Row at the top -> pixels to scroll to. @param {number} top */
    pixelsOf(top) {
      const bounded = Math.max(0, Math.min(top, map.lastTop));
      if (!map.scaled) return bounded * rowHeight;
      return (bounded / map.lastTop) * (map.height - room);
    },
  };
  return map;
}

/**
 * The size and the scroll position of an element, remembered: reading them lays out the whole page
 * at once, with whatever others have changed there.
 * @param {HTMLElement} element
 */
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
