// The pictures of a wall, and the first ones of films: asked for when they are in sight, decoded a
// few at a time, kept within a budget of pixels, and left alone when they were scrolled away
// meanwhile.

import { h } from "../js/dom.js";
import { canvasOf, firstFrame, smallPicture } from "../js/media.js";

const AT_ONCE = 24; // rows of a request, see pictures/picture_wall.py
const DECODERS = 4;
const MOST_PIXEL_BYTES = 64_000_000;
const MOST_TILES = 20_000; // captions and the like, without pictures

/**
 * @typedef {{mime: string, label: string, kind: string, why: string, caption: string,
 *   picture: boolean, later: boolean, row: number, width: number, height: number}} About
 * @typedef {{abouts: About[], bitmaps: (ImageBitmap | null)[], bytes: number}} Tile with the value
 *   before and after where a row changed, else one
 * @typedef {{key: string, type: string, args: Lnb.Args, first: number, count: number}} Source
 *   where the rows of a section come from
 */

export class WallTiles {
  /** @type {Map<string, Tile>} by section and row, the one used last at the end */
  tiles = new Map();
  spent = 0;
  turn = 0;
  underWay = "";
  decoding = 0;
  /** @type {(() => void)[]} */
  queue = [];

  /**
   * @param {Lnb.Context} ctx
   * @param {{size: () => number, inSight: (key: string) => boolean, changed: () => void,
   *   failed: (error: Lnb.Failure) => void, learned: (result: Lnb.Json) => void}} wall
   */
  constructor(ctx, { size, inSight, changed, failed, learned }) {
    this.ctx = ctx;
    this.size = size;
    this.inSight = inSight;
    this.changed = changed;
    this.failed = failed;
    this.learned = learned;
    this.request = ctx.kernel.line({ quiet: true });
    ctx.onClose(this.forget);
  }

  /** @param {Source} source @param {number} row */
  keyOf = (source, row) => `${source.key}|${row}`;

  forget = () => {
    this.turn += 1;
    this.underWay = "";
    for (const { bitmaps } of this.tiles.values()) for (const bitmap of bitmaps) bitmap?.close();
    this.tiles = new Map();
    this.spent = 0;
    this.queue.length = 0;
  };

  /** @param {string} key @param {Tile} tile */
  keep(key, tile) {
    this.drop(key);
    this.tiles.set(key, tile);
    this.spent += tile.bytes;
    for (const oldest of this.tiles.keys()) {
      if (this.spent <= MOST_PIXEL_BYTES && this.tiles.size <= MOST_TILES) break;
      if (!this.inSight(oldest)) this.drop(oldest);
    }
  }

  /** @param {string} key */
  drop(key) {
    const tile = this.tiles.get(key);
    if (!tile) return;
    for (const bitmap of tile.bitmaps) bitmap?.close();
    this.spent -= tile.bytes;
    this.tiles.delete(key);
  }

  /** Wait for one of the few decoders. @returns {Promise<void>} */
  turnOf() {
    if (this.decoding < DECODERS) {
      this.decoding += 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.queue.push(resolve));
  }

  ends() {
    const next = this.queue.shift();
    if (next) next();
    else this.decoding -= 1;
  }

  /**
   * @param {About} about @param {Lnb.Buffer} buffer @param {string} key @param {number} turnThen
   * @returns {Promise<ImageBitmap | null>}
   */
  async decode(about, buffer, key, turnThen) {
    await this.turnOf();
    try {
      if (turnThen !== this.turn || !this.inSight(key)) return null; // scrolled away
      const most = this.size() * Math.min(2, globalThis.devicePixelRatio || 1);
      if (about.kind === "video") return await firstFrame(buffer, about.mime, most);
      return await smallPicture(buffer, about, most);
    } catch {
      about.why = "cannot be decoded";
      return null;
    } finally {
      this.ends();
    }
  }

  /**
   * @param {Source} source @param {Lnb.Answer} answer @param {number} turnThen
   * @param {{row: number, count: number, wanted: string}} run
   */
  async arrived(source, { result, buffers }, turnThen, run) {
    if (turnThen !== this.turn) return;
    this.learned(result);
    /** @type {About[][]} */
    const rows = result.pairs ?? result.tiles.map((/** @type {About} */ tile) => [tile]);
    let index = 0;
    await Promise.all(
      rows.map((abouts) => {
        const sent = abouts.map((about) => (about.picture ? buffers[index++] : null));
        return this.keepRow(this.keyOf(source, abouts[0].row), abouts, sent, turnThen);
      }),
    );
    if (turnThen !== this.turn) return;
    // Fewer rows than promised: not asked for again.
    for (let row = run.row + rows.length; row < run.row + run.count; row += 1)
      this.keep(this.keyOf(source, row), { abouts: [NOTHING], bitmaps: [null], bytes: 0 });
    if (this.underWay === run.wanted) this.underWay = "";
    this.changed();
  }

  /**
   * @param {string} key @param {About[]} abouts @param {(Lnb.Buffer | null)[]} buffers
   * @param {number} turnThen
   */
  async keepRow(key, abouts, buffers, turnThen) {
    if (abouts.some((about) => about.later)) return;
    const bitmaps = await Promise.all(
      buffers.map((buffer, side) => buffer && this.decode(abouts[side], buffer, key, turnThen)),
    );
    const isLost = abouts.some((about, side) => about.picture && !bitmaps[side] && !about.why);
    if (turnThen !== this.turn || isLost) return bitmaps.forEach((bitmap) => bitmap?.close());
    const pixels = bitmaps.map((bitmap) => (bitmap ? bitmap.width * bitmap.height : 0));
    const bytes = 4 * pixels.reduce((sum, number) => sum + number, 0);
    this.keep(key, { abouts, bitmaps, bytes });
  }

  /** @param {string} key */
  get(key) {
    const tile = this.tiles.get(key);
    if (!tile) return null;
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    return tile;
  }

  /**
   * Ask for the first rows in sight that are not here.
   * @param {{source: Source, row: number}[]} rows in the order of the wall
   */
  want(rows) {
    if (this.ctx.kernel.state !== "live") return;
    const begin = rows.findIndex(({ source, row }) => !this.tiles.has(this.keyOf(source, row)));
    if (begin < 0) return;
    const { source, row } = rows[begin];
    let count = 1;
    while (
      count < AT_ONCE &&
      rows[begin + count]?.source.key === source.key &&
      rows[begin + count].row === row + count &&
      !this.tiles.has(this.keyOf(source, row + count))
    )
      count += 1;
    const args = { ...source.args, row, count };
    const wantedRun = JSON.stringify([source.type, args]);
    if (wantedRun === this.underWay) return;
    this.underWay = wantedRun;
    const turnThen = this.turn;
    this.request(
      source.type,
      args,
      (answer) => this.arrived(source, answer, turnThen, { row, count, wanted: wantedRun }),
      (error) => {
        if (turnThen === this.turn) this.failed(error);
      },
    );
  }

  /** The picture, or what stands in its place. @param {Tile} tile */
  draw({ abouts, bitmaps }) {
    return abouts.flatMap((about, side) => {
      const bitmap = bitmaps[side];
      if (!bitmap) return h("span", { class: "lnb-wall-none" }, wordsOf(about));
      const canvas = canvasOf(bitmap);
      if (about.kind !== "video") return canvas;
      return [canvas, h("span", { class: "lnb-wall-play", title: about.label }, "▶")];
    });
  }
}

/** A row that is not there. */
const NOTHING = /** @type {About} */ ({ kind: "", label: "", why: "", caption: "" });

/** What a value is that is no picture. @param {About} about */
function wordsOf(about) {
  if (!about.kind) return "null";
  if (about.kind === "audio") return `▶ ♪ ${about.label}${about.why && ` · ${about.why}`}`;
  if (about.kind === "video")
    return `▶ ${about.label} · ${about.why || "too large for a tile: open it"}`;
  if (about.kind === "image") return `${about.label} · ${about.why || "too large for a tile"}`;
  return about.label;
}
