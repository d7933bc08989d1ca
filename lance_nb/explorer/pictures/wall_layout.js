// Where the tiles of a wall are: sections, one below the other, each with a title and lines of
// tiles. Browsers clip elements near 16.7 million pixels, so a wall that is taller is scrolled in
// proportion.

export const TITLE = 34; // height of the title of a section
export const GAP = 6;
export const CAPTION = 18;
const MOST_PIXELS = 8_000_000;

/**
 * @typedef {{title: string, count: number}} Part what a layout needs of a section
 * @typedef {{section: number, at: number, x: number, y: number}} Spot a tile and where it is
 */

/**
 * @param {Part[]} sections @param {number} width of the wall @param {number} room its height in
 *   sight @param {number} size of a tile
 */
export function wallLayout(sections, width, room, size) {
  const across = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
  const tall = size + CAPTION + GAP;
  /** @type {number[]} where each section begins, and where the last one ends */
  const tops = [0];
  for (const { title, count } of sections)
    tops.push(
      /** @type {number} */ (tops.at(-1)) + (title ? TITLE : 0) + Math.ceil(count / across) * tall,
    );
  const whole = tops[sections.length];
  const height = Math.min(whole, MOST_PIXELS);
  const ratio = height > room && whole > height ? (whole - room) / (height - room) : 1;

  /** The section at a height. @param {number} y */
  function sectionAt(y) {
    let [low, high] = [0, sections.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** @param {number} section */
  const firstLine = (section) => tops[section] + (sections[section].title ? TITLE : 0);

  const layout = {
    across,
    height,
    tops,
    /** Pixels scrolled -> height on the wall. @param {number} scrolled */
    topOf: (scrolled) => scrolled * ratio,
    /** Height on the wall -> pixels to scroll to. @param {number} y */
    scrollOf: (y) => Math.max(0, y) / ratio,
    /** @param {number} section @param {number} index @returns {Spot} */
    spot(section, index) {
      const y = firstLine(section) + Math.floor(index / across) * tall;
      return { section, at: index, x: (index % across) * (size + GAP), y };
    },
    /** The sections and tiles between two heights. @param {number} top @param {number} bottom */
    inSight(top, bottom) {
      /** @type {Spot[]} */
      const spots = [];
      /** @type {number[]} */
      const titles = [];
      if (!sections.length) return { spots, titles };
      for (let section = sectionAt(top); section < sections.length; section += 1) {
        if (tops[section] >= bottom) break;
        const begin = firstLine(section);
        if (sections[section].title && begin > top) titles.push(section);
        const first = Math.max(0, Math.floor((top - begin) / tall)) * across;
        const stop = Math.min(
          sections[section].count,
          Math.max(0, Math.ceil((bottom - begin) / tall)) * across,
        );
        for (let index = first; index < stop; index += 1) spots.push(layout.spot(section, index));
      }
      return { spots, titles };
    },
    /**
     * The tile that a key leads to.
     * @param {{section: number, at: number}} from @param {string} key
     */
    step({ section, at: tileIndex }, key) {
      const count = sections[section]?.count ?? 0;
      const page = Math.max(1, Math.floor(room / tall)) * across;
      /** @type {Record<string, number>} */
      const moves = {
        ArrowRight: tileIndex + 1,
        ArrowLeft: tileIndex - 1,
        ArrowDown: tileIndex + across,
        ArrowUp: tileIndex - across,
        PageDown: tileIndex + page,
        PageUp: tileIndex - page,
      };
      if (key === "Home") return { section: 0, at: 0 };
      if (key === "End") {
        const last = sections.length - 1;
        return { section: last, at: Math.max(0, sections[last].count - 1) };
      }
      const to = moves[key];
      if (to === undefined) return null;
      if (to >= 0 && to < count) return { section, at: to };
      const column = tileIndex % across;
      if (to >= count) {
        // Below a last line that is short its end is next.
        const lastLine = Math.floor((count - 1) / across);
        if (key !== "ArrowRight" && Math.floor(tileIndex / across) < lastLine)
          return { section, at: count - 1 };
        if (section + 1 >= sections.length) return { section, at: Math.max(0, count - 1) };
        const first = key === "ArrowRight" ? 0 : column;
        return { section: section + 1, at: Math.min(first, sections[section + 1].count - 1) };
      }
      if (section === 0)
        return { section, at: key === "ArrowLeft" ? 0 : Math.min(tileIndex, across - 1) };
      const before = sections[section - 1].count;
      const lastBegin = Math.floor((before - 1) / across) * across;
      const nextIndex = key === "ArrowLeft" ? before - 1 : Math.min(lastBegin + column, before - 1);
      return { section: section - 1, at: Math.max(0, nextIndex) };
    },
  };
  return layout;
}
