// Maps a scroll bar to rows. Browsers clip elements near 16.7 million pixels, so beyond MAX_PIXELS
// the scroll position stands for a share of the rows, and the wheel moves by rows instead of
// pixels.

const MAX_PIXELS = 8_000_000;

/** @param {number} rowHeight */
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
