// The map: the rows as points by a column of vectors, their colours and what they are, a selection
// that the grid follows, and what changed between the two handles of the timeline.

import { button, count, field, h, setText, show } from "../js/dom.js";
import { columnNamed, LongWork, ToolSelect, toolSlider } from "../js/tool_select.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { MapCanvas } from "./map_canvas.js";
import { CHANGES, codeColours, stateColours } from "./map_colours.js";
import { paintLegend } from "./map_legend.js";
import { numbers, pointCloud } from "./point_cloud.js";
import { CHOSEN } from "./point_renderer.js";
import { PointTip } from "./point_tip.js";

const CHANGED = 7; // the bits of all changes
const COMPONENTS = "components";
const NEIGHBOURS = "neighbours";
const STORED = "column:"; // before the name of a column of coordinates
const LAYOUTS = [
  { raw: COMPONENTS, label: "principal components" },
  { raw: NEIGHBOURS, label: "neighbours (UMAP)" },
];
const LABELS = ["label", "class", "category", "species", "cluster", "kind", "split"];

class EmbeddingMap {
  /** @type {Lnb.Json} of the version shown, see widget.py */
  columns = null;
  /** @type {Lnb.Json} what is shown: its key in the kernel, colours and sizes */
  map = null;
  /** @type {import("./point_cloud.js").PointCloud | null} */
  cloud = null;
  /** @type {string | null} what the points in sight are of */
  placed = null;
  turn = 0; // of the newest placing
  /** @type {Lnb.Json} what differs between the two versions, if they are compared */
  changes = null;
  /** @type {Lnb.Json} */
  selection = null;
  /** @type {{place: Lnb.Place, rows: Lnb.Within} | null} rows to show when their version is here */
  waiting = null;
  status = h("p", { class: "lnb-map-status", role: "status" });
  problem = h("div", { class: "lnb-map-problem" });
  side = h("div", { class: "lnb-map-side" });
  vectors = new ToolSelect("vector column", () => {
    this.placed = null;
    this.load();
  });
  layouts = new ToolSelect("layout", () => this.load());
  colours = new ToolSelect("colour", () => this.recolour());
  sizes = new ToolSelect("size by", () => this.resize());
  keys = new ToolSelect("rows matched by", () => this.compare());
  size = toolSlider("size of the points", { min: 1, max: 10, step: 0.5, value: 3 }, (size) => {
    this.canvas.look.size = size;
    this.canvas.refresh();
  });
  asColumn = button(
    "Keep as column…",
    () => {
      this.form.hidden = !this.form.hidden;
    },
    { title: "stage the coordinates as a column" },
  );
  newName = field("column", { value: "map_xy", maxlength: "200" });
  newBranch = field("branch", {
    maxlength: "200",
    placeholder: "this branch",
    title: "a branch that does not exist yet is created",
  });
  lasso = switchButton("Lasso", "draw an outline around points (Shift and drag)", (on) => {
    this.canvas.lasso = on;
  });
  compares = switchButton(
    "A → B",
    "show what differs between the two handles of the timeline",
    () => this.compare(),
  );

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.el = el;
    this.work = new LongWork(ctx.kernel);
    this.tip = new PointTip(ctx);
    this.canvas = new MapCanvas(ctx, {
      hover: (point, near) => this.hover(point, near),
      outline: (polygon) => this.outline(polygon),
      clear: () => this.forget(true),
      moved: () => this.repaint(),
    });
    this.form = h(
      "div",
      { class: "lnb-tools", hidden: true },
      h("label", { class: "lnb-tool" }, "column", this.newName),
      h("label", { class: "lnb-tool" }, "on the branch", this.newBranch),
      writeGuard(ctx).button("Stage the column", () => this.stageColumn()),
    );
    for (const element of [this.keys.element, this.asColumn]) element.hidden = true;
    this.layouts.fill(LAYOUTS, { otherwise: COMPONENTS });
    el.append(this.page());
    this.follow();
    if (ctx.kernel.state === "static")
      setText(this.status, "The map needs a kernel: run the cell to see it.");
  }

  page() {
    const tools = h(
      "div",
      { class: "lnb-tools lnb-map-tools" },
      this.vectors.element,
      this.layouts.element,
      this.asColumn,
      this.colours.element,
      this.sizes.element,
      h("label", { class: "lnb-tool" }, "size", this.size),
      this.lasso,
      button("Fit", () => this.canvas.fit(), { title: "show all points (0)" }),
      this.compares,
      this.keys.element,
      this.work.element,
    );
    const points = h("div", { class: "lnb-map-place" }, this.canvas.element, this.tip.element);
    return h(
      "div",
      { class: "lnb-map" },
      tools,
      h("div", {}, this.form, this.problem),
      h("div", { class: "lnb-map-main" }, points, this.side),
      this.status,
    );
  }

  /** Follow what is shown elsewhere: the version, the rows of the grid, the compared versions. */
  follow() {
    const { ctx } = this;
    ctx.describe("map", () => ({ box: this.cloud ? this.canvas.sight : null }));
    const shown = () => {
      // Somebody asked for all rows again.
      if (this.selection && ctx.rows.criteria.within?.rows !== this.selection.rows)
        this.forget(false);
    };
    ctx.onClose(ctx.rows.on({ shown }));
    ctx.onScreen(
      (_screen, patched) => {
        if (patched) return;
        if (!this.waiting || !samePlace(this.waiting.place, this.ctx.place())) return this.load();
        this.showRows(this.waiting.rows);
        this.waiting = null;
      },
      ["card"],
    );
    ctx.onClose(
      ctx.range.on((_range, { dragging }) => {
        if (!dragging && this.isComparing) this.compare();
      }),
    );
  }

  /** The tab is shown again. */
  shown() {
    return this.load();
  }

  get isComparing() {
    return isOn(this.compares);
  }

  /** @param {unknown} error @param {(() => void)} [again] */
  fail(error, again) {
    show(this.problem, this.ctx.problem(error, again));
  }

  /** @param {string} type @param {Lnb.Args} args */
  ask(type, args) {
    const computes = this.layouts.chosen === NEIGHBOURS;
    const layoutWords = computes ? "Computing the layout…" : "Placing the rows…";
    const words = type === "map.place" ? layoutWords : "Reading…";
    const share = (/** @type {number} */ done, /** @type {number} */ total) =>
      `${words} ${Math.floor((100 * done) / Math.max(1, total))} %`;
    return this.work.ask(type, args, words, share);
  }

  /** Place the rows of the version shown, unless they are there. */
  async load() {
    if (this.ctx.kernel.state === "static") return;
    const place = this.ctx.place();
    const turn = (this.turn += 1);
    try {
      const { result: columns } = await this.ctx.kernel.ask("map.columns", place);
      if (turn !== this.turn) return;
      this.takeColumns(columns);
      const column = this.vectors.chosen;
      const layout = this.layouts.chosen;
      if (!column)
        return setText(this.status, "This version has no column of vectors of a fixed length.");
      const signature = JSON.stringify([place, column, layout]);
      if (signature === this.placed) {
        // Back at what is shown, before another version was placed.
        this.work.cancel();
        if (this.isComparing && !this.changes) this.compare();
        return;
      }
      const shape = { column, colour: this.colours.chosen, size: this.sizes.chosen, layout };
      const { result } = await this.ask("map.place", { ...place, ...shape });
      if (turn !== this.turn) return;
      const isNew = this.map?.column !== result.column || this.map?.layout !== layout;
      this.placed = signature;
      await this.take(result, turn, isNew);
      if (turn === this.turn && this.isComparing) this.compare();
    } catch (error) {
      if (turn === this.turn) this.placingFailed(error);
    }
  }

  /** What is shown stays, and the choice is again what is shown. @param {unknown} error */
  placingFailed(error) {
    if (this.layouts.chosen !== NEIGHBOURS || this.map?.layout === NEIGHBOURS)
      return this.fail(error, () => this.load());
    this.layouts.choose(COMPONENTS);
    if (!this.map) this.load();
    return this.fail(error, () => {
      this.layouts.choose(NEIGHBOURS);
      this.load();
    });
  }

  /** Stage the coordinates as a column, on a branch of that name. */
  async stageColumn() {
    const { turn } = this;
    const branch = this.newBranch.value.trim() || null;
    try {
      await this.ask("map.stage", { key: this.map.key, name: this.newName.value.trim(), branch });
      if (turn === this.turn) this.form.hidden = true;
      this.ctx.announce("The column of coordinates is staged");
      this.ctx.go("stage");
    } catch (error) {
      if (turn === this.turn) this.fail(error);
    }
  }

  paintAsColumn() {
    const layout = this.map?.layout;
    this.asColumn.hidden = !layout || layout.startsWith(STORED) || !this.ctx.has("stage");
    if (this.asColumn.hidden) this.form.hidden = true;
  }

  /** @param {Lnb.Json} columns */
  takeColumns(columns) {
    const { vectors, colours, sizes, keys, stored, stable } = columns;
    const isFirst = this.columns === null;
    this.columns = columns;
    this.vectors.fill(vectors, { otherwise: vectors[0]?.raw });
    this.vectors.element.hidden = vectors.length < 2;
    if (isFirst) this.colours.chosen = columnNamed(colours, LABELS);
    this.colours.fill(colours, { none: "one colour" });
    this.sizes.fill(sizes, { none: "one size" });
    this.sizes.element.hidden = !sizes.length;
    this.keys.fill(keys, { none: stable ? "stable row ids" : "row addresses" });
    this.offerLayouts(stored, isFirst);
  }

  /** @param {Lnb.Json[]} stored columns of coordinates @param {boolean} isFirst */
  offerLayouts(stored, isFirst) {
    const column = this.vectors.chosen ?? "";
    const coordinates = stored.map(({ raw, label }) => ({
      raw: STORED + raw,
      label: `coordinates in ${label}`,
    }));
    const own = stored.find(({ vector }) => vector === column);
    if (isFirst && own) this.layouts.chosen = STORED + own.raw;
    // A version before the column came is placed by it all the same.
    const layout = this.layouts.chosen ?? COMPONENTS;
    const isOffered = coordinates.some(({ raw }) => raw === layout);
    if (layout.startsWith(STORED) && !isOffered && this.map)
      coordinates.push({ raw: layout, label: this.layouts.words });
    this.layouts.fill([...LAYOUTS, ...coordinates], { otherwise: layout });
  }

  /**
   * Take the points in pieces, and draw after each.
   * @param {Lnb.Json} map @param {number} turn @param {boolean} isNew
   */
  async take(map, turn, isNew) {
    show(this.problem);
    this.map = map;
    this.changes = null;
    this.selection = null;
    this.paintAsColumn();
    const cloud = pointCloud(map.num_points, map.pieces);
    for (let piece = 0; piece < map.pieces; piece += 1) {
      const { buffers } = await this.ctx.kernel.ask("map.piece", { key: map.key, piece });
      if (turn !== this.turn) return;
      const from = cloud.add(piece, buffers[0], buffers[1], buffers[2]);
      if (piece === 0) {
        this.cloud = cloud;
        this.canvas.show(cloud, map, isNew);
        this.repaint();
      }
      this.canvas.load(from);
    }
    this.paintSide();
    setText(this.status, map.words);
    this.ctx.code(null);
  }

  /** Colours of the theme, or of what is compared. */
  repaint() {
    const { cloud, map, canvas } = this;
    if (!cloud || !map) return;
    canvas.look.byState = Boolean(this.changes);
    canvas.look.dims = Boolean(this.selection);
    canvas.look.colours = this.changes
      ? stateColours(this.el)
      : codeColours(map.colouring.kind, cloud.total > 20000 ? 0.75 : 0.92);
    canvas.label(map.colouring.names);
    canvas.refresh();
  }

  /** The points have other colours, sizes or states. */
  reload() {
    this.repaint();
    this.canvas.load(0);
    this.paintSide();
  }

  /**
   * Ask for what a choice adds to the points that are shown; null when it failed, when other points
   * are shown by then, or when the choice is another.
   * @param {string} type @param {Lnb.Args} args @param {() => unknown} choice
   * @param {() => void} again
   */
  async choose(type, args, choice, again) {
    const { turn } = this;
    const choiceThen = choice();
    const isCurrent = () => turn === this.turn && choice() === choiceThen;
    try {
      const answer = await this.ask(type, { key: this.map.key, ...args });
      if (!isCurrent()) return null;
      show(this.problem);
      return answer;
    } catch (error) {
      if (isCurrent()) this.fail(error, again);
      return null;
    }
  }

  async recolour() {
    const { cloud, colours } = this;
    if (!cloud) return;
    const args = { colour: colours.chosen };
    const again = () => this.recolour();
    const answer = await this.choose("map.colour", args, () => colours.chosen, again);
    if (!answer) return;
    this.map = { ...this.map, colouring: answer.result.colouring };
    cloud.recolour(answer.buffers[0]);
    this.reload();
    if (this.isComparing) this.compare();
  }

  async resize() {
    const { cloud, sizes } = this;
    if (!cloud) return;
    const args = { size: sizes.chosen };
    const again = () => this.resize();
    const answer = await this.choose("map.size", args, () => sizes.chosen, again);
    if (!answer) return;
    this.map = { ...this.map, sizing: answer.result.sizing };
    cloud.resize(answer.buffers[0]);
    this.reload();
  }

  /** Show what differs between the handles, or stop that. */
  async compare() {
    const { cloud, canvas } = this;
    this.keys.element.hidden = !this.isComparing;
    if (!cloud) return;
    const { a, b } = this.ctx.range.get();
    if (!this.isComparing || !a || samePlace(a, b)) {
      this.changes = null;
      cloud.mark(null, CHANGED);
      canvas.change(null);
      this.reload();
      if (this.isComparing) setText(this.status, "There is no earlier version to compare with.");
      return;
    }
    const args = { ...a, match: this.keys.chosen };
    const again = () => this.compare();
    const answer = await this.choose("map.compare", args, () => this.isComparing, again);
    if (!answer) return;
    const { result, buffers } = answer;
    this.changes = result;
    cloud.mark(buffers[0], CHANGED);
    this.reload();
    canvas.change({ removed: numbers(buffers[1]), moves: numbers(buffers[2]) });
    setText(this.status, `${result.a} → ${result.b}: ${result.words}.`);
    const counts = CHANGES.map(({ kind }) => `${count(result.counts[kind])} ${kind}`);
    this.ctx.announce(counts.join(", "));
  }

  /** Select the points inside of an outline. @param {number[][]} polygon */
  async outline(polygon) {
    const { turn, cloud } = this;
    if (!cloud) return;
    try {
      const args = { key: this.map.key, polygon };
      const { result, buffers } = await this.ctx.kernel.ask("map.lasso", args);
      if (turn !== this.turn) return;
      cloud.choose(buffers[0], CHOSEN);
      this.select(result);
      this.canvas.load(0);
    } catch (error) {
      this.fail(error);
    }
  }

  /** The grid shows these rows. @param {Lnb.Json} selection */
  select(selection) {
    if (!selection.num_rows) {
      this.forget(true);
      return setText(this.status, "No point is inside of the outline.");
    }
    const { ctx } = this;
    this.selection = selection;
    ctx.announce(selection.label);
    ctx.rows.look({ within: { rows: selection.rows, label: selection.label }, near: null });
    this.repaint();
    /** @param {string} label @param {() => void} click @param {string} [title] */
    const link = (label, click, title) => button(label, click, { class: "lnb-link", title });
    show(
      this.status,
      `${selection.label}. `,
      ctx.has("rows") && [link("Show in Rows", () => ctx.go("rows")), " · "],
      link(
        "Zoom to them",
        () => this.canvas.fitChosen(),
        "show the selected points as large as possible (z)",
      ),
      " · ",
      link("Clear", () => this.forget(true)),
    );
  }

  /** End the selection. @param {boolean} tells whether the grid is to show all rows */
  forget(tells) {
    if (!this.selection && !this.cloud) return;
    const was = this.selection;
    this.selection = null;
    this.cloud?.choose(null, CHOSEN);
    this.repaint();
    this.canvas.load(0);
    setText(this.status, this.map?.words ?? "");
    if (tells && was) this.ctx.rows.look({ within: null });
  }

  /** Show the rows of a group of the legend. @param {string} kind @param {number} [code] */
  async group(kind, code = 0) {
    try {
      const { result } = await this.ctx.kernel.ask("map.group", { key: this.map.key, kind, code });
      const place = { branch: result.branch, version: result.version };
      const rows = { rows: result.rows, label: result.label };
      if (samePlace(place, this.ctx.place())) return this.showRows(rows);
      // Removed rows are those of the earlier version.
      this.ctx.announce(`Going to ${placeLabel(place)}, where these rows are`);
      this.ctx.travel(place);
      this.waiting = { place, rows };
    } catch (error) {
      this.fail(error);
    }
  }

  /** Show some rows in the grid. @param {Lnb.Within} within */
  showRows(within) {
    this.ctx.rows.look({ within, near: null });
    this.ctx.go("rows");
  }

  /** The legend and the counts. */
  paintSide() {
    if (!this.map) return;
    const group = (/** @type {string} */ kind, /** @type {number | undefined} */ code) =>
      this.group(kind, code);
    paintLegend(this.side, { map: this.map, counts: this.changes, group });
  }

  /**
   * @param {number} pointIndex the place of a point, -1 for none
   * @param {{x: number, y: number} | null} near
   */
  hover(pointIndex, near) {
    const isPoint = this.cloud && pointIndex >= 0;
    const point = isPoint ? { key: this.map.key, index: this.cloud?.indexOf(pointIndex) } : null;
    this.tip.hover(point, near);
  }
}

/**
 * A button that is on or off.
 * @param {string} label @param {string} title @param {(on: boolean) => void} changed
 */
function switchButton(label, title, changed) {
  /** @type {HTMLElement} */
  const element = button(
    label,
    () => {
      const on = !isOn(element);
      element.setAttribute("aria-pressed", String(on));
      changed(on);
    },
    { title, "aria-pressed": "false" },
  );
  return element;
}

/** @param {HTMLElement} element */
function isOn(element) {
  return element.getAttribute("aria-pressed") === "true";
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountEmbeddingMap(el, ctx) {
  return new EmbeddingMap(el, ctx);
}

export default widget(mountEmbeddingMap, "map of the rows");
