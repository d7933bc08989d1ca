// The map itself: points, what is written over them, and the hands on it: dragging and the wheel,
// an outline around points, a pointer over one, and the same from the keyboard.
//
// Points are drawn into a picture that reaches beyond the edges. Where drawing all of them takes
// longer than a frame has, that picture is moved and scaled while the view moves; if it no longer
// fills the view, as many points are drawn as a frame has time for. All are drawn when the view
// stands still.

import { onTheme } from "../js/canvas.js";
import { consume, h, onResize, perFrame } from "../js/dom.js";
import { followPointer } from "../js/pointer_drag.js";
import { changeColours } from "./map_colours.js";
import { simplified } from "./point_cloud.js";
import { CHOSEN, pointRenderer } from "./point_renderer.js";

const WHOLE = 65535;
const ZOOM = 1.25;
const REACH = 12; // pixels around the pointer
const STILL_MS = 140;
const LEAST_POINTS = 60000;
const SLOW_MS = 24; // leaves room for what the browser does beside it in two frames of 60 a second
const QUICK_MS = 18; // a screen of 60 frames a second calls back after 17
const GROWTH = 1.08; // small: each step may be the one that misses a frame
const ASLEEP_MS = 10000; // a page that is hidden is not called back
const CORNERS = 200;
const LABEL_ROOM = 16;
const BEYOND = 0.25; // of the width and height, on each side
const SCALES = { least: 0.5, most: 4 }; // how far a picture is scaled before it is drawn again
const MARKS = 20000; // crosses and lines
const MARKS_MOVING = 1500;
/** @type {Record<string, [number, number]>} */
const ARROWS = {
  ArrowLeft: [-0.1, 0],
  ArrowRight: [0.1, 0],
  ArrowUp: [0, 0.1],
  ArrowDown: [0, -0.1],
};

/**
 * Return how many points to draw next, after a frame of so many: fewer if it took too long, more if
 * there was time left.
 * @param {number} drawn @param {number} took milliseconds @returns {number}
 */
export function pointsInTime(drawn, took) {
  if (took <= SLOW_MS) return took < QUICK_MS ? Math.ceil(drawn * GROWTH) : drawn;
  const share = Math.min(0.8, Math.max(0.1, SLOW_MS / took));
  return Math.max(Math.min(LEAST_POINTS, drawn), Math.floor(drawn * share));
}

export class MapCanvas {
  points = h("canvas", { class: "lnb-map-points", "aria-hidden": "true" });
  above = h("canvas", { class: "lnb-map-above", "aria-hidden": "true" });
  view = { x: WHOLE / 2, y: WHOLE / 2, scale: 0.005 };
  look = { colours: new Uint8Array(1024), byState: false, dims: false, size: 3 };
  box = { low: [0, 0], high: [WHOLE, WHOLE] };
  /** @type {import("./point_cloud.js").PointCloud | null} */
  cloud = null;
  /** @type {import("./point_renderer.js").Renderer | null} */
  renderer = null;
  /** @type {{removed: Uint16Array, moves: Uint16Array} | null} */
  changes = null;
  /** @type {{label: string, x: number, y: number}[]} */
  labels = [];
  /** @type {number[][] | null} an outline that is being drawn, in pixels of the element */
  outline = null;
  /** @type {{x: number, y: number} | null} */
  held = null;
  outlines = false;
  most = Infinity; // points that a frame has time for
  /** @type {{x: number, y: number, scale: number, isWhole: boolean} | null} what was drawn */
  picture = null;
  pointed = -1;
  ratio = 1;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  still;

  /**
   * @param {Lnb.Context} ctx
   * @param {{hover: (place: number, at: {x: number, y: number} | null) => void,
   *   outline: (polygon: number[][]) => void, clear: () => void, moved: () => void}} hands
   */
  constructor(ctx, hands) {
    this.hands = hands;
    this.element = h(
      "div",
      {
        class: "lnb-map-canvas",
        tabindex: "0",
        role: "application",
        "aria-label":
          "map of the rows: arrow keys move, plus and minus zoom, 0 shows all, Enter reads the " +
          "point in the middle, S selects the points in sight, Z shows the selection as large as " +
          "possible, Escape ends a selection",
        on: {
          pointerdown: (event) => this.onPress(event),
          pointermove: (event) => this.onMove(event),
          pointerleave: () => this.onLeave(),
          wheel: (event) => this.onWheel(event),
          keydown: (event) => this.onKey(event),
        },
      },
      this.points,
      this.above,
    );
    this.paint = perFrame(() => {
      if (!this.cloud || !this.width) return;
      const isMoving = this.still !== undefined;
      if (isMoving && this.most < this.cloud.data.count && this.fills()) this.place();
      else if (isMoving || !this.isCurrent()) this.draw(isMoving ? this.most : Infinity);
      this.paintAbove();
    });
    this.point = perFrame(() => {
      if (!this.cloud || !this.held || this.still) return;
      const [x, y] = this.toMap(this.held.x, this.held.y);
      const nearest = this.cloud.nearest(x, y, REACH / this.view.scale);
      if (nearest === this.pointed) return;
      this.pointed = nearest;
      hands.hover(nearest, nearest < 0 ? null : this.held);
      this.paint();
    });
    // The browser has taken the graphics memory away, and given it back.
    this.points.addEventListener("webglcontextrestored", () => this.refresh());
    ctx.onClose(onResize(this.element, () => this.resize()));
    ctx.onClose(onTheme(() => hands.moved()));
    ctx.onClose(() => {
      this.paint.cancel();
      clearTimeout(this.still);
      this.renderer?.close();
    });
  }

  /** @param {PointerEvent} event */
  onPress(event) {
    if (event.button) return;
    const [x, y] = this.spot(event);
    if (this.outlines !== event.shiftKey) this.outline = [[x, y]];
    this.held = { x, y };
    this.element.classList.add("lnb-map-held");
    followPointer(this.element, event, {
      move: (moved) => this.drag(moved),
      end: (isDone) => this.release(isDone),
    });
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    if (event.buttons & 1) return;
    const [x, y] = this.spot(event);
    this.held = { x, y };
    this.point();
  }

  onLeave() {
    this.held = null;
    if (this.pointed >= 0) this.hands.hover(-1, null);
    this.pointed = -1;
    this.paint();
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    // A page is scrolled by the wheel alone; the map that has the focus is zoomed.
    const zooms = event.ctrlKey || event.metaKey || this.element.contains(document.activeElement);
    if (!zooms) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, ...this.spot(event));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    const key = event.key.toLowerCase();
    if (arrow) this.pan(-arrow[0] * this.width, arrow[1] * this.height);
    else if (key === "+" || key === "=") this.zoom(ZOOM);
    else if (key === "-") this.zoom(1 / ZOOM);
    else if (key === "0") this.fit();
    else if (key === "z") this.fitChosen();
    else if (key === "enter") this.pointInTheMiddle();
    else if (key === "s") this.selectInSight();
    else if (key === "escape" && (this.look.dims || this.pointed >= 0)) {
      this.pointed = -1;
      this.hands.hover(-1, null);
      this.hands.clear();
    } else return;
    consume(event);
  }

  get width() {
    return this.element.clientWidth;
  }

  get height() {
    return this.element.clientHeight;
  }

  /** @param {number} px @param {number} py pixels of the element @returns {[number, number]} */
  toMap = (px, py) => [
    this.view.x + (px - this.width / 2) / this.view.scale,
    this.view.y - (py - this.height / 2) / this.view.scale,
  ];

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toScreen = (x, y) => [
    (x - this.view.x) * this.view.scale + this.width / 2,
    this.height / 2 - (y - this.view.y) * this.view.scale,
  ];

  /** Where a point is, in pixels of the element. @param {number} index */
  screenOf(index) {
    const { xy } = /** @type {NonNullable<MapCanvas["cloud"]>} */ (this.cloud).data;
    return this.toScreen(xy[2 * index], xy[2 * index + 1]);
  }

  paintAbove() {
    const pen = this.above.getContext("2d");
    if (!pen) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const colours = changeColours(this.element);
    if (this.changes) this.paintChanges(pen, colours);
    this.paintLabels(pen, colours);
    if (this.pointed >= 0) {
      const [x, y] = this.screenOf(this.pointed);
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 7, 0, 2 * Math.PI);
      pen.stroke();
    }
    if (!this.outline || this.outline.length < 2) return;
    pen.beginPath();
    for (const [x, y] of this.outline) pen.lineTo(x, y);
    pen.closePath();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Record<string, string>} colours */
  paintChanges(pen, colours) {
    const { removed, moves } = /** @type {NonNullable<MapCanvas["changes"]>} */ (this.changes);
    pen.strokeStyle = colours.change;
    pen.globalAlpha = 0.55;
    pen.beginPath();
    // Of many, some stand for all.
    const marks = this.still === undefined ? MARKS : MARKS_MOVING;
    const stride = 4 * Math.max(1, Math.ceil(moves.length / 4 / marks));
    for (let index = 0; index < moves.length; index += stride) {
      pen.moveTo(...this.toScreen(moves[index], moves[index + 1]));
      pen.lineTo(...this.toScreen(moves[index + 2], moves[index + 3]));
    }
    pen.stroke();
    pen.globalAlpha = 0.85;
    pen.strokeStyle = colours.remove;
    pen.lineWidth = 1.4;
    pen.beginPath();
    const arm = Math.max(2, this.look.size * 0.8);
    const step = 2 * Math.max(1, Math.ceil(removed.length / 2 / marks));
    for (let index = 0; index < removed.length; index += step) {
      const [x, y] = this.toScreen(removed[index], removed[index + 1]);
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      pen.moveTo(x - arm, y - arm);
      pen.lineTo(x + arm, y + arm);
      pen.moveTo(x + arm, y - arm);
      pen.lineTo(x - arm, y + arm);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} pen @param {Record<string, string>} colours */
  paintLabels(pen, colours) {
    pen.font = `600 12px ${getComputedStyle(this.element).fontFamily}`;
    pen.textAlign = "center";
    pen.lineJoin = "round";
    pen.lineWidth = 3.5;
    /** @type {number[][]} */
    const taken = [];
    for (const { label, x, y } of this.labels) {
      const [left, top] = this.toScreen(x, y);
      const reach = pen.measureText(label).width / 2;
      if (left < 0 || top < 0 || left > this.width || top > this.height) continue;
      // Categories come with the largest first: a smaller one that would overlap has no label.
      if (taken.some(([x, y, width]) =>
        Math.abs(x - left) < width + reach && Math.abs(y - top) < LABEL_ROOM))
        continue; // biome-ignore format: one condition
      taken.push([left, top, reach]);
      pen.strokeStyle = colours.bg;
      pen.strokeText(label, left, top);
      pen.fillStyle = colours.ink;
      pen.fillText(label, left, top);
    }
  }

  /** Whether the picture is what the view shows, with all points. */
  isCurrent() {
    const { picture, view } = this;
    const isSame = picture?.x === view.x && picture.y === view.y && picture.scale === view.scale;
    return isSame && picture.isWhole;
  }

  /** Whether the picture, moved and scaled, reaches all edges of the view. */
  fills() {
    const { picture, view } = this;
    if (!picture) return false;
    const factor = view.scale / picture.scale;
    if (factor < SCALES.least || factor > SCALES.most) return false;
    const room = (/** @type {number} */ size) => ((0.5 + BEYOND) * factor - 0.5) * size + 1;
    return (
      Math.abs(view.x - picture.x) * view.scale <= room(this.width) &&
      Math.abs(view.y - picture.y) * view.scale <= room(this.height)
    );
  }

  /** Move and scale the picture to where the view is. */
  place() {
    const { picture, view } = this;
    if (!picture) return;
    const factor = view.scale / picture.scale;
    const right = (picture.x - view.x) * view.scale;
    const down = (view.y - picture.y) * view.scale;
    this.points.style.transform =
      factor === 1 && !right && !down ? "" : `translate(${right}px, ${down}px) scale(${factor})`;
  }

  /** Draw points, the first ones of all. @param {number} options how many */
  draw(options) {
    if (!this.cloud) return;
    this.renderer ??= pointRenderer(this.points);
    const began = performance.now();
    const { data } = this.cloud;
    const drawn = Math.min(options, data.count);
    const shown = { ...this.view, scale: this.view.scale * this.ratio };
    this.renderer.draw(data, shown, { ...this.look, size: this.look.size * this.ratio }, drawn);
    this.picture = { ...this.view, isWhole: drawn === data.count };
    this.place();
    this.element.dataset.renderer = this.renderer.kind;
    this.element.dataset.drawn = String(drawn);
    // The browser calls back when it can take the next frame: what it draws on its own threads
    // counts too.
    requestAnimationFrame(() => {
      const took = performance.now() - began;
      if (took < ASLEEP_MS) this.most = pointsInTime(drawn, took);
    });
  }

  /** The view has moved: draw quickly now, and everything when it stands still. */
  moved() {
    clearTimeout(this.still);
    this.still = setTimeout(() => {
      this.still = undefined;
      this.paint();
      this.hands.moved();
    }, STILL_MS);
    this.paint();
  }

  /** @param {number} factor @param {number} [px] @param {number} [py] the place that stays */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.view.scale = Math.max(1e-4, Math.min(4, this.view.scale * factor));
    this.view.x = x - (px - this.width / 2) / this.view.scale;
    this.view.y = y + (py - this.height / 2) / this.view.scale;
    this.moved();
  }

  /** @param {number} px @param {number} py */
  pan(px, py) {
    this.view.x = Math.max(0, Math.min(WHOLE, this.view.x - px / this.view.scale));
    this.view.y = Math.max(0, Math.min(WHOLE, this.view.y + py / this.view.scale));
    this.moved();
  }

  /** Show a part of the map as large as possible. @param {MapCanvas["box"]} part */
  fitBox({ low: [left, low], high: [right, high] }) {
    const [across, up] = [Math.max(1, right - left), Math.max(1, high - low)];
    const scale = Math.min(4, 0.92 * Math.min(this.width / across, this.height / up));
    Object.assign(this.view, { x: (left + right) / 2, y: (low + high) / 2, scale });
    this.moved();
  }

  fit = () => this.fitBox(this.box);

  /** Show the chosen points as large as possible, all if there are none. */
  fitChosen() {
    this.fitBox((this.look.dims && this.cloud?.boxOf(CHOSEN)) || this.box);
  }

  resize() {
    if (!this.width || !this.height) return;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    const isFirst = this.points.dataset.sized !== "yes";
    this.above.width = Math.round(this.width * this.ratio);
    this.above.height = Math.round(this.height * this.ratio);
    this.points.width = Math.round(this.width * (1 + 2 * BEYOND) * this.ratio);
    this.points.height = Math.round(this.height * (1 + 2 * BEYOND) * this.ratio);
    this.points.dataset.sized = "yes";
    this.picture = null;
    if (isFirst) this.fit();
    else this.paint();
  }

  /** Draw the points again: they, their colours or their size are others. */
  refresh() {
    this.picture = null;
    this.paint();
  }

  /** @param {PointerEvent | WheelEvent} event @returns {[number, number]} */
  spot(event) {
    const around = this.element.getBoundingClientRect();
    return [event.clientX - around.left, event.clientY - around.top];
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const [x, y] = this.spot(event);
    if (this.outline) {
      this.outline.push([x, y]);
      this.paint();
    } else if (this.held) {
      this.pan(x - this.held.x, y - this.held.y);
      this.held = { x, y };
    }
  }

  /** @param {boolean} isDone whether an outline that was being drawn counts */
  release(isDone) {
    this.element.classList.remove("lnb-map-held");
    const outline = this.outline;
    this.outline = null;
    if (!outline) return;
    this.paint();
    if (!isDone) return;
    if (outline.length > 2)
      this.hands.outline(simplified(outline, CORNERS).map(([x, y]) => this.toMap(x, y)));
    else this.hands.clear();
  }

  pointInTheMiddle() {
    if (!this.cloud) return;
    const { x: middleX, y: middleY, scale } = this.view;
    const reach = Math.max(this.width, this.height) / 2 / scale;
    this.pointed = this.cloud.nearest(middleX, middleY, reach);
    const [x, y] = this.screenOf(this.pointed);
    this.hands.hover(this.pointed, this.pointed < 0 ? null : { x, y });
    this.paint();
  }

  selectInSight() {
    const { width, height } = this;
    const corners = [[0, 0], [width, 0], [width, height], [0, height]]; // biome-ignore format: four
    this.hands.outline(corners.map(([x, y]) => this.toMap(x, y)));
  }

  get sight() {
    const [left, top] = this.toMap(0, 0);
    const [right, low] = this.toMap(this.width, this.height);
    return [left, low, right, top].map((side) => Math.max(0, Math.min(WHOLE, Math.round(side))));
  }

  /** @param {boolean} on whether a drag draws an outline */
  set lasso(on) {
    this.outlines = on;
    this.element.classList.toggle("lnb-map-lasso", on);
  }

  /**
   * Show other points. The view stays unless `anew`.
   * @param {import("./point_cloud.js").PointCloud} next
   * @param {{low: number[], high: number[]}} middle where most points are @param {boolean} anew
   */
  show(next, middle, anew) {
    this.cloud = next;
    this.box = middle;
    this.pointed = -1;
    this.changes = null;
    if (anew) this.fit();
  }

  /** Points have come, or their colours or states are others. @param {number} from */
  load(from) {
    if (!this.cloud) return;
    this.renderer ??= pointRenderer(this.points);
    this.renderer.load(this.cloud.data, from);
    this.refresh();
  }

  /** @param {MapCanvas["labels"]} next */
  label(next) {
    this.labels = next;
    this.paint();
  }

  /** @param {MapCanvas["changes"]} next */
  change(next) {
    this.changes = next;
    this.paint();
  }
}
