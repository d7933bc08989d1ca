// The map of the fragments, in the storage tab and alone: bars on a canvas, whose width is rows and
// whose height bytes per row, hatched what is deleted; with tools and a summary.

import { hatch, onTheme, penOf, percent, themeColours } from "../js/canvas.js";
import { bytes, count, h, perFrame, plural, setText } from "../js/dom.js";

const HEIGHT = 132;
const STRIP = 6; // the coverage by indices, below the bars
/** @type {("id" | "count" | "rows" | "deleted" | "bytes" | "files" | "covered")[]} */
const COLUMNS = ["id", "count", "rows", "deleted", "bytes", "files", "covered"];

/**
 * @param {Lnb.Context} ctx
 * @param {{zoom: (first: number, stop: number) => void, open: (id: number) => void,
 *   describe: (words: string) => void}} on
 */
export function fragmentStrip(ctx, on) {
  const canvas = h("canvas", { class: "lnb-fm-canvas", "aria-hidden": "true" });
  const element = h(
    "div",
    {
      class: "lnb-fm",
      role: "slider",
      tabindex: "0",
      "aria-label": "fragments; Enter opens one, plus and minus zoom",
      "aria-valuemin": "0",
    },
    canvas,
  );
  /** @typedef {Record<typeof COLUMNS[number], number[]>} Columns */
  /** @type {Lnb.Json} see storage/fragments.py */
  let model = null;
  /** @type {Columns} */
  const columns = { id: [], count: [], rows: [], deleted: [], bytes: [], files: [], covered: [] };
  /** @type {number[]} */
  let lefts = [];
  let chosen = 0;
  let hovered = -1;

  const paint = perFrame(() => {
    const width = element.clientWidth;
    if (!model || !width) return;
    place(width);
    const pen = penOf(canvas, width, HEIGHT);
    const colours = themeColours(element, [
      "replace",
      "remove",
      "fork",
      "line",
      "ink",
      "bg",
      "hover",
    ]);
    const striped = hatch(pen, colours.remove);
    const most = Math.max(
      1,
      ...columns.rows.map((rows, index) => (rows ? columns.bytes[index] / rows : 0)),
    );
    const indexed = model.totals.indices > 0;
    const room = HEIGHT - 4 - (indexed ? STRIP + 2 : 0);
    pen.clearRect(0, 0, width, HEIGHT);
    for (let index = 0; index < model.num_bins; index += 1) {
      const left = lefts[index];
      const wide = Math.max(0.6, lefts[index + 1] - left - (lefts[index + 1] - left > 3 ? 1 : 0));
      const tall =
        3 +
        (room - 3) *
          Math.sqrt(columns.rows[index] ? columns.bytes[index] / columns.rows[index] / most : 0);
      const top = 4 + room - tall;
      if (index === hovered) {
        pen.fillStyle = colours.hover;
        pen.fillRect(left, 0, wide, HEIGHT);
      }
      pen.globalAlpha = index === hovered || index === chosen ? 1 : 0.78;
      pen.fillStyle = colours.replace;
      pen.fillRect(left, top, wide, tall);
      const deletedHeight = columns.rows[index]
        ? (tall * columns.deleted[index]) / columns.rows[index]
        : 0;
      if (deletedHeight > 0) {
        pen.fillStyle = colours.bg;
        pen.fillRect(left, top, wide, Math.max(1, deletedHeight));
        pen.fillStyle = striped && deletedHeight > 3 && wide > 3 ? striped : colours.remove;
        pen.fillRect(left, top, wide, Math.max(1.5, deletedHeight));
      }
      pen.globalAlpha = 1;
      if (indexed) {
        pen.fillStyle = colours.line;
        pen.fillRect(left, HEIGHT - STRIP, wide, STRIP);
        pen.fillStyle = colours.fork;
        pen.fillRect(
          left,
          HEIGHT - STRIP,
          wide * (columns.rows[index] ? columns.covered[index] / columns.rows[index] : 1),
          STRIP,
        );
      }
      if (index === chosen) {
        pen.strokeStyle = colours.ink;
        pen.lineWidth = 1.5;
        pen.strokeRect(left + 0.25, top - 0.25, Math.max(1, wide - 0.5), tall);
      }
    }
  });

  /** Bars as wide as their rows; what holds next to none still shows. @param {number} width */
  function place(width) {
    const total = columns.rows.reduce((sum, rows) => sum + rows, 0);
    const least = Math.max(1, total / (model.num_bins * 12));
    const weights = columns.rows.map((rows) => Math.max(rows, least));
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    lefts = [0];
    for (const weight of weights) lefts.push(lefts[lefts.length - 1] + (weight * width) / all);
  }

  /** @param {PointerEvent | MouseEvent} event */
  function under(event) {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    let low = 0;
    let high = lefts.length - 1;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (lefts[middle] <= x) low = middle;
      else high = middle;
    }
    return model?.num_bins ? Math.min(low, model.num_bins - 1) : -1;
  }

  /** A bin as words. @param {number} barIndex */
  function words(barIndex) {
    if (!model || barIndex < 0 || barIndex >= model.num_bins) return "";
    const isGroup = columns.count[barIndex] > 1;
    const name = isGroup
      ? `${count(columns.count[barIndex])} fragments from ${columns.id[barIndex]}`
      : `fragment ${columns.id[barIndex]}`;
    const rows = columns.rows[barIndex];
    const parts = [
      name,
      plural(rows, "row"),
      columns.deleted[barIndex] && `${percent(columns.deleted[barIndex], rows)} deleted`,
      bytes(columns.bytes[barIndex]),
      rows && `${bytes(columns.bytes[barIndex] / rows)} per row`,
      plural(columns.files[barIndex], "file"),
      columns.covered[barIndex] < rows && "not covered by every index",
    ];
    return parts.filter(Boolean).join(" · ");
  }

  /** @param {number} index */
  function choose(index) {
    chosen = Math.max(0, Math.min(model.num_bins - 1, index));
    element.setAttribute("aria-valuenow", String(chosen));
    element.setAttribute("aria-valuetext", words(chosen));
    on.describe(words(chosen));
    paint();
  }

  /** @param {number} index */
  function open(index) {
    if (columns.count[index] > 1) zoomTo(index, index + 1);
    else on.open(columns.id[index]);
  }

  /**
   * Ask for the fragments of some bins; their positions follow from the counts before them.
   * @param {number} from @param {number} to
   */
  function zoomTo(from, to) {
    const before = columns.count.slice(0, from).reduce((sum, number) => sum + number, model.first);
    const inside = columns.count.slice(from, to).reduce((sum, number) => sum + number, 0);
    on.zoom(before, before + Math.max(1, inside));
  }

  /** @param {boolean} inward */
  function zoom(inward) {
    const bins = model.num_bins;
    if (inward) {
      const half = Math.max(1, Math.round(bins / 4));
      if (bins > 1) zoomTo(Math.max(0, chosen - half), Math.min(bins, chosen + half));
      return;
    }
    const size = model.stop - model.first;
    on.zoom(
      Math.max(0, model.first - Math.ceil(size / 2)),
      Math.min(model.num_fragments, model.stop + Math.ceil(size / 2)),
    );
  }

  element.addEventListener("keydown", (event) => {
    if (!model?.num_bins || event.altKey || event.ctrlKey || event.metaKey) return;
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => choose(chosen - 1),
      ArrowRight: () => choose(chosen + 1),
      PageUp: () => choose(chosen - 10),
      PageDown: () => choose(chosen + 10),
      Home: () => choose(0),
      End: () => choose(model.num_bins - 1),
      Enter: () => open(chosen),
      "+": () => zoom(true),
      "-": () => zoom(false),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  element.addEventListener("pointermove", (event) => {
    const index = under(event);
    if (index === hovered) return;
    hovered = index;
    on.describe(words(index));
    paint();
  });
  element.addEventListener("pointerleave", () => {
    hovered = -1;
    if (model) on.describe(words(chosen));
    paint();
  });
  element.addEventListener("click", (event) => {
    const index = under(event);
    if (index < 0) return;
    choose(index);
    open(index);
  });
  const observer = new ResizeObserver(paint);
  observer.observe(element);
  ctx.onClose(onTheme(paint));
  ctx.onClose(() => {
    observer.disconnect();
    paint.cancel();
  });

  return {
    element,
    zoom,
    /** @param {Lnb.Json} model_ @param {Lnb.Buffer[]} buffers */
    show(model_, buffers) {
      const arrays = buffers.map((buffer) => {
        const view =
          buffer instanceof ArrayBuffer
            ? new Uint8Array(buffer)
            : new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
        return Array.from(new Float64Array(view.slice().buffer));
      });
      model = model_;
      COLUMNS.forEach((name, index) => {
        columns[name] = arrays[index];
      });
      hovered = -1;
      element.setAttribute("aria-valuemax", String(Math.max(0, model.num_bins - 1)));
      if (model.num_bins) choose(Math.min(chosen, model.num_bins - 1));
      paint();
    },
    /** Mark a fragment by its id, if it is in the span. @param {number} id */
    mark(id) {
      const index = columns.id.findLastIndex((first) => first <= id);
      if (index >= 0) choose(index);
    },
  };
}

const ALL = 2 ** 52;

/**
 * @param {Lnb.Context} ctx
 * @param {{placeNow: () => Lnb.Place, open: (id: number) => void,
 *   failed: (error: Lnb.Failure|null) => void}} on
 */
export function fragmentSection(ctx, { placeNow, open, failed }) {
  const summary = h("p", { class: "lnb-st-summary" });
  const readout = h("p", { class: "lnb-st-readout" });
  const strip = fragmentStrip(ctx, {
    zoom: load,
    open,
    describe: (words) => setText(readout, words),
  });
  /** @param {string} name @param {string} title @param {() => void} act */
  const tool = (name, title, act) =>
    h(
      "button",
      { class: "lnb-button", type: "button", title, "aria-label": title, on: { click: act } },
      name,
    );
  const tools = h(
    "span",
    { class: "lnb-st-tools" },
    tool("−", "zoom out", () => strip.zoom(false)),
    tool("+", "zoom in", () => strip.zoom(true)),
    tool("all", "show all fragments", () => load(0, ALL)),
  );
  const legend = h(
    "p",
    { class: "lnb-st-legend" },
    "width rows · height bytes per row · ",
    h("i", { class: "lnb-st-hatch", "aria-hidden": "true" }),
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
      "section",
      { class: "lnb-st-section" },
      h("div", { class: "lnb-st-head" }, summary, tools),
      strip.element,
      h("div", { class: "lnb-st-under" }, readout, legend),
    ),
    load: () => load(0, ALL),
    /** @param {number} id */
    mark(id) {
      pendingFragment = id;
      strip.mark(id);
    },
  };
}
