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

export class WallLayout {
  /** @type {number[]} where each section begins, and where the last one ends */
  tops = [0];

  /**
   * @param {Part[]} sections @param {number} width of the wall @param {number} room its height in
   *   sight @param {number} size of a tile
   */
  constructor(sections, width, room, size) {
    this.sections = sections;
    this.room = room;
    this.size = size;
    this.across = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
    this.tall = size + CAPTION + GAP;
    for (const { title, count } of sections)
      this.tops.push(
        /** @type {number} */ (this.tops.at(-1)) +
          (title ? TITLE : 0) +
          Math.ceil(count / this.across) * this.tall,
      );
    const whole = this.tops[sections.length];
    this.height = Math.min(whole, MOST_PIXELS);
    this.ratio =
      this.height > room && whole > this.height ? (whole - room) / (this.height - room) : 1;
  }

  /** The section at a height. @param {number} y */
  sectionAt(y) {
    let [low, high] = [0, this.sections.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** @param {number} section */
  firstLine = (section) => this.tops[section] + (this.sections[section]?.title ? TITLE : 0);

  /** @param {number} section @param {number} index @returns {Spot} */
  spot(section, index) {
    const y = this.firstLine(section) + Math.floor(index / this.across) * this.tall;
    return { section, at: index, x: (index % this.across) * (this.size + GAP), y };
  }

  /** Pixels scrolled -> height on the wall. @param {number} scrolled */
  topOf = (scrolled) => scrolled * this.ratio;

  /** Height on the wall -> pixels to scroll to. @param {number} y */
  scrollOf = (y) => Math.max(0, y) / this.ratio;

  /** The sections and tiles between two heights. @param {number} top @param {number} bottom */
  inSight(top, bottom) {
    /** @type {Spot[]} */
    const spots = [];
    /** @type {number[]} */
    const titles = [];
    if (!this.sections.length) return { spots, titles };
    for (let section = this.sectionAt(top); section < this.sections.length; section += 1) {
      if (this.tops[section] >= bottom) break;
      const begin = this.firstLine(section);
      if (this.sections[section].title && begin > top) titles.push(section);
      const first = Math.max(0, Math.floor((top - begin) / this.tall)) * this.across;
      const stop = Math.min(
        this.sections[section].count,
        Math.max(0, Math.ceil((bottom - begin) / this.tall)) * this.across,
      );
      for (let index = first; index < stop; index += 1) spots.push(this.spot(section, index));
    }
    return { spots, titles };
  }

  /**
   * The tile that a key leads to.
   * @param {{section: number, at: number}} from @param {string} key
   */
  step({ section, at: tileIndex }, key) {
    const count = this.sections[section]?.count ?? 0;
    const page = Math.max(1, Math.floor(this.room / this.tall)) * this.across;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowRight: tileIndex + 1,
      ArrowLeft: tileIndex - 1,
      ArrowDown: tileIndex + this.across,
      ArrowUp: tileIndex - this.across,
      PageDown: tileIndex + page,
      PageUp: tileIndex - page,
    };
    if (key === "Home") return { section: 0, at: 0 };
    if (key === "End") {
      const last = this.sections.length - 1;
      return { section: last, at: Math.max(0, this.sections[last].count - 1) };
    }
    const to = moves[key];
    if (to === undefined) return null;
    if (to >= 0 && to < count) return { section, at: to };
    const column = tileIndex % this.across;
    if (to >= count) {
      // Below a last line that is short its end is next.
      const lastLine = Math.floor((count - 1) / this.across);
      if (key !== "ArrowRight" && Math.floor(tileIndex / this.across) < lastLine)
        return { section, at: count - 1 };
      if (section + 1 >= this.sections.length) return { section, at: Math.max(0, count - 1) };
      const first = key === "ArrowRight" ? 0 : column;
      return { section: section + 1, at: Math.min(first, this.sections[section + 1].count - 1) };
    }
    if (section === 0)
      return { section, at: key === "ArrowLeft" ? 0 : Math.min(tileIndex, this.across - 1) };
    const before = this.sections[section - 1].count;
    const lastBegin = Math.floor((before - 1) / this.across) * this.across;
    const nextIndex = key === "ArrowLeft" ? before - 1 : Math.min(lastBegin + column, before - 1);
    return { section: section - 1, at: Math.max(0, nextIndex) };
  }
}
