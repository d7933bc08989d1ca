// The map: the rows as points by a column of vectors, their colours and what they are, a selection
// that the grid follows, and what changed between the two handles of the timeline.

import { count, h, setText, show } from "../js/dom.js";
import { toolSelect } from "../js/tool_select.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { mapCanvas } from "./map_canvas.js";
import { CHANGES, codeColours, stateColours } from "./map_colours.js";
import { paintLegend } from "./map_legend.js";
import { bytesOf, numbers, pointCloud } from "./point_cloud.js";
import { CHOSEN } from "./point_renderer.js";

const HOVER_MS = 60;
const CHANGED = 7; // the bits of all changes
const COMPONENTS = "components";
const NEIGHBOURS = "neighbours";
const STORED = "column:"; // before the name of a column of coordinates
const LAYOUTS = [
  { raw: COMPONENTS, label: "principal components" },
  { raw: NEIGHBOURS, label: "neighbours (UMAP)" },
];

/** @typedef {import("../js/tool_select.js").Named} Named */

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountEmbeddingMap(el, ctx) {
  /**
   * @type {{columns: Lnb.Json, column: string, layout: string, colour: string | null,
   *   sized: string | null, labelled: string | null, match: string | null, key: string,
   *   map: Lnb.Json, cloud: import("./point_cloud.js").PointCloud | null,
   *   turn: number, running: Lnb.Asked | null, compares: boolean, counts: Lnb.Json,
   *   chosen: Lnb.Json}}
   */
  const now = {
    columns: null,
    column: "",
    layout: COMPONENTS,
    colour: null,
    sized: null,
    labelled: null,
    match: null,
    key: "",
    map: null,
    cloud: null,
    turn: 0,
    running: null,
    compares: false,
    counts: null,
    chosen: null,
  };
  /** @type {string | null} */
  let placed = null; // what the points in sight are of
  const place = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });

  const status = h("p", { class: "lnb-map-status", role: "status" });
  const busy = h("div", { class: "lnb-tool-busy", role: "status", hidden: true });
  const problem = h("div", { class: "lnb-map-problem" });
  const tip = h("div", { class: "lnb-map-tip", hidden: true });
  const side = h("div", { class: "lnb-map-side" });
  const canvas = mapCanvas(ctx, { hover, outline, clear: () => forget(true), moved: repaint });
  const vectors = toolSelect("vector column", (raw) => {
    now.column = raw ?? "";
    placed = null;
    load();
  });
  const layouts = toolSelect("layout", (raw) => {
    now.layout = raw ?? COMPONENTS;
    load();
  });
  const keep = button("Keep layout", "keep this layout for the next time, in a file", keepLayout);
  const guard = writeGuard(ctx);
  const asColumn = button("Keep as column…", "stage the coordinates as a column", () => {
    form.hidden = !form.hidden;
  });
  const newName = entry("column", "map_xy");
  const newBranch = entry("branch", "");
  newBranch.placeholder = "this branch";
  newBranch.title = "a branch that does not exist yet is created";
  const form = h(
    "div",
    { class: "lnb-tools", hidden: true },
    h("label", { class: "lnb-tool" }, "column", newName),
    h("label", { class: "lnb-tool" }, "on the branch", newBranch),
    guard.button("Stage the column", stageColumn),
  );
  const colours = toolSelect("colour", (raw) => recolour(raw));
  const sizes = toolSelect("size by", (raw) => resize(raw));
  const labels = toolSelect("labels", (raw) => {
    now.labelled = raw;
    label();
  });
  const keys = toolSelect("rows matched by", (raw) => {
    now.match = raw;
    compare();
  });
  const size = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "range",
      min: "1",
      max: "10",
      step: "0.5",
      value: "3",
      "aria-label": "size of the points",
      on: {
        input: () => {
          canvas.look.size = Number(size.value);
          canvas.refresh();
        },
        keydown: (event) => event.stopPropagation(),
      },
    })
  );
  const lasso = button("Lasso", "draw an outline around points (Shift and drag)", () => {
    const on = lasso.getAttribute("aria-pressed") !== "true";
    lasso.setAttribute("aria-pressed", String(on));
    canvas.lasso = on;
  });
  const compares = button(
    "A → B",
    "show what differs between the two handles of the timeline",
    () => {
      now.compares = !now.compares;
      compares.setAttribute("aria-pressed", String(now.compares));
      compare();
    },
  );
  lasso.setAttribute("aria-pressed", "false");
  compares.setAttribute("aria-pressed", "false");
  el.append(
    h(
      "div",
      { class: "lnb-map" },
      h(
        "div",
        { class: "lnb-tools lnb-map-tools" },
        vectors.element,
        layouts.element,
        keep,
        asColumn,
        colours.element,
        sizes.element,
        labels.element,
        h("label", { class: "lnb-tool" }, "size", size),
        lasso,
        button("Fit", "show all points (0)", canvas.fit),
        compares,
        keys.element,
        busy,
      ),
      h("div", {}, form, problem),
      h(
        "div",
        { class: "lnb-map-main" },
        h("div", { class: "lnb-map-place" }, canvas.element, tip),
        side,
      ),
      status,
    ),
  );
  keys.element.hidden = true;
  keep.hidden = true;
  asColumn.hidden = true;
  layouts.fill(LAYOUTS, null, now.layout);

  /** @param {string} label @param {string} value @returns {HTMLInputElement} */
  function entry(label, value) {
    const on = { keydown: (/** @type {Event} */ event) => event.stopPropagation() };
    return h("input", { class: "lnb-input", value, maxlength: "200", "aria-label": label, on });
  }

  /** @param {string} label @param {string} title @param {() => void} click */
  function button(label, title, click) {
    return h("button", { class: "lnb-button", type: "button", title, on: { click } }, label);
  }

  /**
   * Ask for long work whose newest request alone counts.
   * @param {string} type @param {Lnb.Args} args
   */
  async function work(type, args) {
    now.running?.cancel();
    const places = now.layout === NEIGHBOURS ? "Computing the layout…" : "Placing the rows…";
    const words = type === "map.place" ? places : "Reading…";
    const bar = h("progress", { "aria-label": words });
    const label = h("span", {}, words);
    const running = ctx.kernel.ask(type, args, {
      progress: (done, total) => {
        bar.max = Math.max(1, total);
        bar.value = done;
        label.textContent = `${words} ${Math.floor((100 * done) / Math.max(1, total))} %`;
      },
    });
    now.running = running;
    busy.hidden = false;
    show(
      busy,
      bar,
      label,
      button("Cancel", "stop", () => running.cancel()),
    );
    try {
      return await running;
    } finally {
      if (now.running === running) {
        now.running = null;
        busy.hidden = true;
      }
    }
  }

  /** @param {unknown} error @param {(() => void)} [again] */
  function fail(error, again) {
    show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error), again));
  }

  /** Place the rows of the version shown, unless they are there. */
  async function load() {
    if (ctx.kernel.state === "static") return;
    const current = place();
    const turn = (now.turn += 1);
    try {
      const { result: columns } = await ctx.kernel.ask("map.columns", current);
      if (turn !== now.turn) return;
      takeColumns(columns);
      if (!now.column) {
        setText(status, "This version has no column of vectors of a fixed length.");
        return;
      }
      const signature = JSON.stringify([current, now.column, now.layout]);
      if (signature === placed) {
        // Back at what is shown, before another version was placed.
        now.running?.cancel();
        if (now.compares && !now.counts) compare();
        return;
      }
      const { column, colour, sized, layout } = now;
      const args = { ...current, column, colour, size: sized, layout };
      const { result } = await work("map.place", args);
      if (turn !== now.turn) return;
      const isNew = now.map?.column !== result.column || now.map?.layout !== layout;
      placed = signature;
      await take(result, turn, isNew);
      if (turn === now.turn && now.labelled !== null) await label();
      if (turn === now.turn && now.compares) compare();
    } catch (error) {
      if (turn !== now.turn) return;
      const again = () => load();
      // What is shown stays, and the choice is again what is shown.
      if (now.layout === NEIGHBOURS && now.map?.layout !== NEIGHBOURS) {
        now.layout = COMPONENTS;
        layouts.choose(COMPONENTS);
        if (!now.map) load();
        fail(error, () => {
          now.layout = NEIGHBOURS;
          load();
        });
      } else fail(error, again);
    }
  }

  /** Keep the layout in a file, or remove that. */
  async function keepLayout() {
    const { key, column, columns } = now;
    const on = !columns.kept.includes(column);
    try {
      const { result } = await ctx.kernel.ask("map.keep", { key, on });
      const otherColumns = columns.kept.filter((/** @type {string} */ name) => name !== column);
      columns.kept = result.kept ? [...otherColumns, column] : otherColumns;
      ctx.announce(result.kept ? "The layout is kept" : "The layout is no longer kept");
      paintKeep();
    } catch (error) {
      fail(error);
    }
  }

  /** Stage the coordinates as a column, on a branch of that name. */
  async function stageColumn() {
    const { key, turn } = now;
    const args = { key, name: newName.value.trim(), branch: newBranch.value.trim() || null };
    try {
      await work("map.stage", args);
      if (turn === now.turn) form.hidden = true;
      ctx.announce("The column of coordinates is staged");
      ctx.go("stage");
    } catch (error) {
      if (turn === now.turn) fail(error);
    }
  }

  function paintKeep() {
    keep.hidden = now.map?.layout !== NEIGHBOURS;
    asColumn.hidden = !now.map || now.map.layout.startsWith(STORED) || !ctx.has("stage");
    if (asColumn.hidden) form.hidden = true;
    const isKept = now.columns?.kept.includes(now.column);
    keep.textContent = isKept ? "Forget layout" : "Keep layout";
    keep.title = isKept
      ? "remove the file with this layout; the next explorer begins with principal components"
      : "keep this layout in a file of yours; the next explorer opens with it";
  }

  /** @param {Lnb.Json} columns */
  function takeColumns(columns) {
    const { vectors: names, colours: others, sizes: sizing, keys: keyed, stable } = columns;
    const { labels: texts } = columns;
    const isFirst = now.columns === null;
    now.columns = columns;
    const has = (/** @type {Named[]} */ list, /** @type {string | null} */ raw) =>
      list.some((column) => column.raw === raw);
    if (!has(names, now.column)) now.column = names[0]?.raw ?? "";
    if (isFirst) now.colour = guess(others);
    const stored = columns.stored.map((/** @type {Lnb.Json} */ column) => ({
      raw: STORED + column.raw,
      label: `coordinates in ${column.label}`,
    }));
    const own = columns.stored.find(
      (/** @type {Lnb.Json} */ column) => column.vector === now.column,
    );
    if (isFirst && own) now.layout = STORED + own.raw;
    else if (isFirst && columns.kept.includes(now.column)) now.layout = NEIGHBOURS;
    // A version before the column came is placed by it all the same.
    if (now.layout.startsWith(STORED) && !has(stored, now.layout) && now.map)
      stored.push({ raw: now.layout, label: layouts.words });
    layouts.fill([...LAYOUTS, ...stored], null, now.layout);
    if (!has(others, now.colour)) now.colour = null;
    if (!has(sizing, now.sized)) now.sized = null;
    if (!has(texts, now.labelled)) now.labelled = null;
    if (!has(keyed, now.match)) now.match = null;
    vectors.fill(names, null, now.column);
    colours.fill(others, "one colour", now.colour);
    sizes.fill(sizing, "one size", now.sized);
    sizes.element.hidden = !sizing.length;
    labels.fill(texts, "of the colours", now.labelled);
    labels.element.hidden = !texts.length;
    keys.fill(keyed, stable ? "stable row ids" : "row addresses", now.match);
    vectors.element.hidden = names.length < 2;
  }

  /** A column that looks like a label. @param {Named[]} names */
  function guess(names) {
    const labelNames = ["label", "class", "category", "species", "cluster", "kind", "split"];
    return names.find(({ raw }) => labelNames.includes(raw.toLowerCase()))?.raw ?? null;
  }

  /**
   * Take the points in pieces, and draw after each.
   * @param {Lnb.Json} result @param {number} turn @param {boolean} anew
   */
  async function take(result, turn, anew) {
    show(problem);
    now.key = result.key;
    now.map = result;
    now.counts = null;
    now.chosen = null;
    paintKeep();
    const cloud = pointCloud(result.num_points, result.pieces);
    for (let piece = 0; piece < result.pieces; piece += 1) {
      const { buffers } = await ctx.kernel.ask("map.piece", { key: result.key, piece });
      if (turn !== now.turn) return;
      const from = cloud.add(piece, buffers[0], buffers[1], buffers[2]);
      if (piece === 0) {
        now.cloud = cloud;
        canvas.show(cloud, result, anew);
        repaint();
      }
      canvas.load(from);
    }
    paintSide();
    setText(status, result.words);
    ctx.code(null);
  }

  /** Colours of the theme, or of what is compared. */
  function repaint() {
    const { cloud, map } = now;
    if (!cloud || !map) return;
    canvas.look.byState = Boolean(now.counts);
    canvas.look.dims = Boolean(now.chosen);
    canvas.look.colours = now.counts
      ? stateColours(el)
      : codeColours(map.colouring.kind, cloud.total > 20000 ? 0.75 : 0.92);
    canvas.label(map.labels?.entries ?? map.colouring.names);
    canvas.refresh();
  }

  /** @param {string | null} raw */
  async function recolour(raw) {
    now.colour = raw;
    const { turn, key } = now;
    if (!now.cloud) return;
    try {
      const { result, buffers } = await work("map.colour", { key, colour: raw });
      if (turn !== now.turn || now.colour !== raw) return;
      show(problem);
      now.map = { ...now.map, colouring: result.colouring };
      now.cloud.recolour(buffers[0]);
      repaint();
      canvas.load(0);
      paintSide();
      if (now.compares) compare();
    } catch (error) {
      fail(error, () => recolour(raw));
    }
  }

  /** @param {string | null} raw */
  async function resize(raw) {
    now.sized = raw;
    const { turn, key } = now;
    if (!now.cloud) return;
    try {
      const { result, buffers } = await work("map.size", { key, size: raw });
      if (turn !== now.turn || now.sized !== raw) return;
      show(problem);
      now.map = { ...now.map, sizing: result.sizing };
      now.cloud.resize(buffers[0]);
      canvas.load(0);
      paintSide();
    } catch (error) {
      if (turn === now.turn && now.sized === raw) fail(error, () => resize(raw));
    }
  }

  /** Name the groups of points by a column of texts, or as their colours are named. */
  async function label() {
    const { turn, key, labelled } = now;
    if (!now.cloud) return;
    try {
      const { result } = await work("map.labels", { key, column: labelled });
      if (turn !== now.turn || now.labelled !== labelled) return;
      show(problem);
      now.map = { ...now.map, labels: result.labels };
      canvas.label(result.labels?.entries ?? now.map.colouring.names);
      paintSide();
      if (result.labels && !result.labels.entries.length)
        setText(status, `No group of points has a label by ${result.labels.column}.`);
    } catch (error) {
      if (turn === now.turn && now.labelled === labelled) fail(error, label);
    }
  }

  /** Show what differs between the handles, or stop that. */
  async function compare() {
    const { cloud, turn, key } = now;
    keys.element.hidden = !now.compares;
    if (!cloud) return;
    const { a, b } = ctx.range.get();
    if (!now.compares || !a || samePlace(a, b)) {
      now.counts = null;
      cloud.mark(null, CHANGED);
      canvas.change(null);
      repaint();
      canvas.load(0);
      paintSide();
      if (now.compares) setText(status, "There is no earlier version to compare with.");
      return;
    }
    try {
      const { result, buffers } = await work("map.compare", { key, ...a, match: now.match });
      if (turn !== now.turn || !now.compares) return;
      show(problem);
      now.counts = result;
      cloud.mark(buffers[0], CHANGED);
      repaint();
      canvas.load(0);
      canvas.change({ removed: numbers(buffers[1]), moves: numbers(buffers[2]) });
      paintSide();
      setText(status, `${result.a} → ${result.b}: ${result.words}.`);
      const words_ = CHANGES.map(({ kind }) => `${count(result.counts[kind])} ${kind}`).join(", ");
      ctx.announce(words_);
    } catch (error) {
      if (turn === now.turn) fail(error, compare);
    }
  }

  /** @param {number[][]} polygon */
  async function outline(polygon) {
    const { key, turn, cloud } = now;
    if (!cloud) return;
    try {
      const { result, buffers } = await ctx.kernel.ask("map.lasso", { key, polygon });
      if (turn !== now.turn) return;
      cloud.choose(buffers[0], CHOSEN);
      choose(result);
      canvas.load(0);
    } catch (error) {
      fail(error);
    }
  }

  /** The grid shows these rows. @param {Lnb.Json} result */
  function choose(result) {
    now.chosen = result.num_rows ? result : null;
    if (!result.num_rows) {
      forget(true);
      setText(status, "No point is inside of the outline.");
      return;
    }
    ctx.announce(result.label);
    ctx.rows.look({ within: { rows: result.rows, label: result.label }, near: null });
    repaint();
    const go = ctx.has("rows")
      ? h(
          "button",
          { class: "lnb-link", type: "button", on: { click: () => ctx.go("rows") } },
          "Show in Rows",
        )
      : null;
    const end = h(
      "button",
      { class: "lnb-link", type: "button", on: { click: () => forget(true) } },
      "Clear",
    );
    const zoom = h(
      "button",
      {
        class: "lnb-link",
        type: "button",
        title: "show the selected points as large as possible (z)",
        on: { click: canvas.fitChosen },
      },
      "Zoom to them",
    );
    show(status, `${result.label}. `, go, go && " · ", zoom, " · ", end);
  }

  /** End the selection. @param {boolean} tells whether the grid is to show all rows */
  function forget(tells) {
    if (!now.chosen && !now.cloud) return;
    const was = now.chosen;
    now.chosen = null;
    now.cloud?.choose(null, CHOSEN);
    repaint();
    canvas.load(0);
    setText(status, now.map?.words ?? "");
    if (tells && was) ctx.rows.look({ within: null });
  }

  /** @param {string} kind @param {number} [code] */
  async function group(kind, code = 0) {
    try {
      const { result } = await ctx.kernel.ask("map.group", { key: now.key, kind, code });
      const shownPlace = { branch: result.branch, version: result.version };
      if (!samePlace(shownPlace, place())) {
        // Removed rows are those of the earlier version.
        ctx.announce(`Going to ${placeLabel(shownPlace)}, where these rows are`);
        ctx.travel(shownPlace);
        waiting = { there: shownPlace, result };
        return;
      }
      ctx.rows.look({ within: { rows: result.rows, label: result.label }, near: null });
      ctx.go("rows");
    } catch (error) {
      fail(error);
    }
  }
  /** @type {{there: Lnb.Place, result: Lnb.Json} | null} */
  let waiting = null;

  /** The legend and the counts. */
  function paintSide() {
    if (now.map) paintLegend(side, { map: now.map, counts: now.counts, group });
  }

  const ask = ctx.kernel.line({ quiet: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  /**
   * @param {number} pointIndex the place of a point, -1 for none
   * @param {{x: number, y: number} | null} near
   */
  function hover(pointIndex, near) {
    clearTimeout(soon);
    const { cloud, key } = now;
    if (pointIndex < 0 || !near || !cloud) {
      tip.hidden = true;
      return;
    }
    soon = setTimeout(
      () =>
        ask(
          "map.point",
          { key, index: cloud.indexOf(pointIndex) },
          (answer) => paintTip(answer, near),
          () => {
            tip.hidden = true;
          },
        ),
      HOVER_MS,
    );
  }

  /** @param {Lnb.Answer} answer @param {{x: number, y: number}} near */
  async function paintTip({ result, buffers }, near) {
    const cells = result.cells.map((/** @type {Lnb.Json} */ cell) => [
      h("dt", {}, cell.name),
      h("dd", {}, cell.text),
    ]);
    const picture = buffers.length
      ? h("canvas", { class: "lnb-map-picture", "aria-hidden": "true" })
      : null;
    show(tip, picture, h("dl", {}, ...cells.flat()));
    tip.hidden = false;
    const right = near.x > canvas.element.clientWidth / 2;
    tip.style.left = right ? "auto" : `${near.x + 16}px`;
    tip.style.right = right ? `${canvas.element.clientWidth - near.x + 16}px` : "auto";
    const lowest = canvas.element.clientHeight - tip.offsetHeight - 4;
    tip.style.top = `${Math.max(4, Math.min(near.y - 20, lowest))}px`;
    ctx.announce(
      result.cells
        .slice(0, 4)
        .map((/** @type {Lnb.Json} */ cell) => `${cell.name} ${cell.text}`)
        .join(", "),
    );
    if (!picture) return;
    const blob = new Blob([/** @type {BlobPart} */ (bytesOf(buffers[0]))], { type: result.mime });
    const bitmap = await createImageBitmap(blob).catch(() => null);
    if (!bitmap) return picture.remove();
    const scale = Math.min(1, 160 / Math.max(bitmap.width, bitmap.height));
    picture.width = Math.max(1, Math.round(bitmap.width * scale));
    picture.height = Math.max(1, Math.round(bitmap.height * scale));
    picture.getContext("2d")?.drawImage(bitmap, 0, 0, picture.width, picture.height);
    return bitmap.close();
  }

  ctx.describe("map", () => ({ box: now.cloud ? canvas.sight : null }));
  ctx.onClose(
    ctx.rows.on({
      shown() {
        // Somebody asked for all rows again.
        if (now.chosen && ctx.rows.asked.within?.rows !== now.chosen.rows) forget(false);
      },
    }),
  );
  ctx.onScreen(
    (_screen, patched) => {
      if (patched) return;
      if (waiting && samePlace(waiting.there, place())) {
        const { rows, label } = waiting.result;
        waiting = null;
        ctx.rows.look({ within: { rows, label }, near: null });
        ctx.go("rows");
        return;
      }
      load();
    },
    ["card"],
  );
  ctx.onClose(ctx.range.on((_range, { dragging }) => !dragging && now.compares && compare()));
  if (ctx.kernel.state === "static")
    setText(status, "The map needs a kernel: run the cell to see it.");
  return { shown: load };
}

export default widget(mountEmbeddingMap, "map of the rows");
