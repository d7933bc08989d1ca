// The map of the fragments, in the storage tab and alone: bars on a canvas, whose width is rows and
// whose height bytes per row, hatched what is deleted; with tools and a summary.

import { hatch, onTheme, penOf, percent, themeColours } from "../js/canvas.js";
import {
  button,
  bytes,
  consume,
  count,
  h,
  onResize,
  perFrame,
  plural,
  setText,
} from "../js/dom.js";
import { bytesOf } from "../js/message_buffers.js";

const HEIGHT = 132;
const STRIP = 6; // the coverage by indices, below the bars
const COLOURS = ["replace", "remove", "fork", "line", "ink", "bg", "hover"];
/** @type {("id" | "count" | "rows" | "deleted" | "bytes" | "files" | "covered")[]} */
const COLUMNS = ["id", "count", "rows", "deleted", "bytes", "files", "covered"];

export class FragmentStrip {
  canvas = h("canvas.lnb-fm-canvas", { "aria-hidden": "true" });
  /** @typedef {Record<typeof COLUMNS[number], number[]>} Columns */
  /** @type {Lnb.Json} see storage/fragments.py */
  model = null;
  /** @type {Columns} */
  columns = { id: [], count: [], rows: [], deleted: [], bytes: [], files: [], covered: [] };
  /** @type {number[]} */
  lefts = [];
  chosen = 0;
  hovered = -1;

  /**
   * @param {Lnb.Context} ctx
   * @param {{zoom: (first: number, stop: number) => void, open: (id: number) => void,
   *   describe: (words: string) => void}} on
   */
  constructor(ctx, on) {
    this.on = on;
    this.element = h(
      "div.lnb-fm",
      {
        role: "slider",
        tabindex: "0",
        "aria-label": "fragments; Enter opens one, plus and minus zoom",
        "aria-valuemin": "0",
        "aria-valuenow": "0",
      },
      this.canvas,
    );
    this.paint = perFrame(() => this.paintNow());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("pointermove", (event) => {
      const index = this.under(event);
      if (index === this.hovered) return;
      this.hovered = index;
      on.describe(this.words(index));
      this.paint();
    });
    this.element.addEventListener("pointerleave", () => {
      this.hovered = -1;
      if (this.model) on.describe(this.words(this.chosen));
      this.paint();
    });
    this.element.addEventListener("click", (event) => {
      const index = this.under(event);
      if (index < 0) return;
      this.choose(index);
      this.open(index);
    });
    ctx.onClose(onResize(this.element, this.paint));
    ctx.onClose(onTheme(this.paint));
    ctx.onClose(() => this.paint.cancel());
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.model?.num_bins || event.altKey || event.ctrlKey || event.metaKey) return;
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => this.choose(this.chosen - 1),
      ArrowRight: () => this.choose(this.chosen + 1),
      PageUp: () => this.choose(this.chosen - 10),
      PageDown: () => this.choose(this.chosen + 10),
      Home: () => this.choose(0),
      End: () => this.choose(this.model.num_bins - 1),
      Enter: () => this.open(this.chosen),
      "+": () => this.zoom(true),
      "-": () => this.zoom(false),
    };
    const act = acts[event.key];
    if (!act) return;
    consume(event);
    act();
  }

  paintNow() {
    const width = this.element.clientWidth;
    if (!this.model || !width) return;
    this.place(width);
    const pen = penOf(this.canvas, width, HEIGHT);
    const colours = themeColours(this.element, COLOURS);
    pen.clearRect(0, 0, width, HEIGHT);
    const striped = hatch(pen, colours.remove);
    const most = Math.max(1, ...this.columns.rows.map((_rows, index) => this.bytesPerRow(index)));
    for (let index = 0; index < this.model.num_bins; index += 1)
      this.paintBar(pen, index, most, colours, striped);
  }

  /** @param {number} index */
  bytesPerRow(index) {
    const { rows, bytes } = this.columns;
    return rows[index] ? bytes[index] / rows[index] : 0;
  }

  /**
   * @param {CanvasRenderingContext2D} pen @param {number} index
   * @param {number} most bytes per row of the highest bar
   * @param {Record<string, string>} colours @param {CanvasPattern | null} striped
   */
  paintBar(pen, index, most, colours, striped) {
    const { rows, deleted, covered } = this.columns;
    const [left, right] = [this.lefts[index], this.lefts[index + 1]];
    const wide = Math.max(0.6, right - left - (right - left > 3 ? 1 : 0));
    const isIndexed = this.model.totals.indices > 0;
    const room = HEIGHT - 4 - (isIndexed ? STRIP + 2 : 0);
    const tall = 3 + (room - 3) * Math.sqrt(this.bytesPerRow(index) / most);
    const top = 4 + room - tall;
    /** @param {string | CanvasPattern} colour @param {number} y @param {number} tallness */
    const fill = (colour, y, tallness, width = wide) => {
      pen.fillStyle = colour;
      pen.fillRect(left, y, width, tallness);
    };
    if (index === this.hovered) fill(colours.hover, 0, HEIGHT);
    pen.globalAlpha = index === this.hovered || index === this.chosen ? 1 : 0.78;
    fill(colours.replace, top, tall);
    const height = rows[index] ? (tall * deleted[index]) / rows[index] : 0;
    if (height > 0) {
      fill(colours.bg, top, Math.max(1, height));
      const hatched = striped && height > 3 && wide > 3 ? striped : colours.remove;
      fill(hatched, top, Math.max(1.5, height));
    }
    pen.globalAlpha = 1;
    if (isIndexed) {
      const share = rows[index] ? covered[index] / rows[index] : 1;
      fill(colours.line, HEIGHT - STRIP, STRIP);
      fill(colours.fork, HEIGHT - STRIP, STRIP, wide * share);
    }
    if (index === this.chosen) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(left + 0.25, top - 0.25, Math.max(1, wide - 0.5), tall);
    }
  }

  /** Bars as wide as their rows; what holds next to none still shows. @param {number} width */
  place(width) {
    const total = this.columns.rows.reduce((sum, rows) => sum + rows, 0);
    const least = Math.max(1, total / (this.model.num_bins * 12));
    const weights = this.columns.rows.map((rows) => Math.max(rows, least));
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    this.lefts = [0];
    for (const weight of weights)
      this.lefts.push(this.lefts[this.lefts.length - 1] + (weight * width) / all);
  }

  /** @param {PointerEvent | MouseEvent} event */
  under(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    let low = 0;
    let high = this.lefts.length - 1;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.lefts[middle] <= x) low = middle;
      else high = middle;
    }
    return this.model?.num_bins ? Math.min(low, this.model.num_bins - 1) : -1;
  }

  /** A bin as words. @param {number} index */
  words(index) {
    if (!this.model || index < 0 || index >= this.model.num_bins) return "";
    const { columns } = this;
    const [id, number, rows] = [columns.id[index], columns.count[index], columns.rows[index]];
    const parts = [
      number > 1 ? `${count(number)} fragments from ${id}` : `fragment ${id}`,
      plural(rows, "row"),
      columns.deleted[index] && `${percent(columns.deleted[index], rows)} deleted`,
      bytes(columns.bytes[index]),
      rows && `${bytes(columns.bytes[index] / rows)} per row`,
      plural(columns.files[index], "file"),
      columns.covered[index] < rows && "not covered by every index",
    ];
    return parts.filter(Boolean).join(" · ");
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = Math.max(0, Math.min(this.model.num_bins - 1, index));
    this.element.setAttribute("aria-valuenow", String(this.chosen));
    this.element.setAttribute("aria-valuetext", this.words(this.chosen));
    this.on.describe(this.words(this.chosen));
    this.paint();
  }

  /** @param {number} index */
  open(index) {
    if (this.columns.count[index] > 1) this.zoomTo(index, index + 1);
    else this.on.open(this.columns.id[index]);
  }

  /**
   * Ask for the fragments of some bins; their positions follow from the counts before them.
   * @param {number} from @param {number} to
   */
  zoomTo(from, to) {
    const before = this.columns.count
      .slice(0, from)
      .reduce((sum, number) => sum + number, this.model.first);
    const inside = this.columns.count.slice(from, to).reduce((sum, number) => sum + number, 0);
    this.on.zoom(before, before + Math.max(1, inside));
  }

  /** @param {boolean} inward */
  zoom(inward) {
    const bins = this.model.num_bins;
    if (inward) {
      const half = Math.max(1, Math.round(bins / 4));
      if (bins > 1)
        this.zoomTo(Math.max(0, this.chosen - half), Math.min(bins, this.chosen + half));
      return;
    }
    const size = this.model.stop - this.model.first;
    this.on.zoom(
      Math.max(0, this.model.first - Math.ceil(size / 2)),
      Math.min(this.model.num_fragments, this.model.stop + Math.ceil(size / 2)),
    );
  }

  /** @param {Lnb.Json} model @param {Lnb.Buffer[]} buffers */
  show(model, buffers) {
    const arrays = buffers.map((buffer) =>
      Array.from(new Float64Array(bytesOf(buffer).slice().buffer)),
    );
    this.model = model;
    COLUMNS.forEach((name, index) => {
      this.columns[name] = arrays[index];
    });
    this.hovered = -1;
    this.element.setAttribute("aria-valuemax", String(Math.max(0, this.model.num_bins - 1)));
    if (this.model.num_bins) this.choose(Math.min(this.chosen, this.model.num_bins - 1));
    this.paint();
  }

  /** Mark a fragment by its id, if it is in the span. @param {number} id */
  mark(id) {
    const index = this.columns.id.findLastIndex((first) => first <= id);
    if (index >= 0) this.choose(index);
  }
}

const ALL = 2 ** 52;

/**
 * @param {Lnb.Context} ctx
 * @param {{placeNow: () => Lnb.Place, open: (id: number) => void,
 *   failed: (error: Lnb.Failure|null) => void}} on
 */
export function fragmentSection(ctx, { placeNow, open, failed }) {
  const summary = h("p.lnb-st-summary");
  const readout = h("p.lnb-st-readout");
  const strip = new FragmentStrip(ctx, {
    zoom: load,
    open,
    describe: (words) => setText(readout, words),
  });
  /** @param {string} name @param {string} title @param {() => void} act */
  const tool = (name, title, act) => button(name, act, { title, "aria-label": title });
  const tools = h(
    "span.lnb-st-tools",
    tool("−", "zoom out", () => strip.zoom(false)),
    tool("+", "zoom in", () => strip.zoom(true)),
    tool("all", "show all fragments", () => load(0, ALL)),
  );
  const legend = h(
    "p.lnb-st-legend",
    "width rows · height bytes per row · ",
    h("i.lnb-st-hatch", { "aria-hidden": "true" }),
    " deleted",
  );
  const request = ctx.kernel.line();
  /** @type {number | null} */
  let pendingFragment = null; // a fragment to be marked when the map is here

  /** @param {number} first @param {number} stop */
  function load(first, stop) {
    request(
      "storage.map",
      { ...placeNow(), first, stop },
      ({ result, buffers }) => {
        failed(null);
        strip.show(result, buffers);
        paintSummary(result);
        if (pendingFragment !== null) strip.mark(pendingFragment);
        pendingFragment = null;
      },
      failed,
    );
  }

  /** @param {Lnb.Json} map see storage/fragments.py */
  function paintSummary({ num_fragments: fragments, first, stop, totals }) {
    const parts = [
      plural(fragments, "fragment"),
      plural(totals.rows, "stored row"),
      `${percent(totals.deleted, totals.rows)} deleted`,
      totals.bytes === null ? "size unknown" : bytes(totals.bytes),
      plural(totals.files, "data file"),
    ];
    if (totals.indices)
      parts.push(
        `${percent(totals.covered, totals.rows)} covered by ` +
          (totals.indices === 1 ? "the index" : "every index"),
      );
    const span = stop - first < fragments ? ` — showing ${count(first)} to ${count(stop - 1)}` : "";
    // A line does not end before the sign.
    setText(summary, `${parts.join(" · ")}${span}`.replaceAll(" %", "\u00a0%"));
  }

  return {
    element: h(
      "section.lnb-st-section",
      h("div.lnb-st-head", summary, tools),
      strip.element,
      h("div.lnb-st-under", readout, legend),
    ),
    load: () => load(0, ALL),
    /** @param {number} id */
    mark(id) {
      pendingFragment = id;
      strip.mark(id);
    },
  };
}
