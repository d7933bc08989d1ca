// The map itself: points, what is written over them, and the hands on it: dragging and the wheel,
// an outline around points, a pointer over one, and the same from the keyboard.
//
// Points are drawn into a picture that reaches beyond the edges. Where drawing all of them takes
// longer than a frame has, that picture is moved and scaled while the view moves; if it no longer
// fills the view, as many points are drawn as a frame has time for. All are drawn when the view
// stands still.

import { onTheme } from "../js/canvas.js";
import { h, perFrame } from "../js/dom.js";
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

/**
 * @param {Lnb.Context} ctx
 * @param {{hover: (place: number, at: {x: number, y: number} | null) => void,
 *   outline: (polygon: number[][]) => void, clear: () => void, moved: () => void}} hands
 */
export function mapCanvas(ctx, hands) {
  const points = h("canvas", { class: "lnb-map-points", "aria-hidden": "true" });
  const above = h("canvas", { class: "lnb-map-above", "aria-hidden": "true" });
  const element = h(
    "div",
    {
      class: "lnb-map-canvas",
      tabindex: "0",
      role: "application",
      "aria-label":
        "map of the rows: arrow keys move, plus and minus zoom, 0 shows all, Enter reads the " +
        "point in the middle, S selects the points in sight, Z shows the selection as large as " +
        "possible, Escape ends a selection",
    },
    points,
    above,
  );
  const view = { x: WHOLE / 2, y: WHOLE / 2, scale: 0.005 };
  const look = { colours: new Uint8Array(1024), byState: false, dims: false, size: 3 };
  let box = { low: [0, 0], high: [WHOLE, WHOLE] };
  /** @type {import("./point_cloud.js").PointCloud | null} */
  let cloud = null;
  /** @type {import("./point_renderer.js").Renderer | null} */
  let renderer = null;
  /** @type {{removed: Uint16Array, moves: Uint16Array} | null} */
  let changes = null;
  /** @type {{label: string, x: number, y: number}[]} */
  let labels = [];
  /** @type {number[][] | null} an outline that is being drawn, in pixels of the element */
  let drawn = null;
  /** @type {{x: number, y: number} | null} */
  let held = null;
  let lasso = false;
  let most = Infinity; // points that a frame has time for
  /** @type {{x: number, y: number, scale: number, isWhole: boolean} | null} what was drawn */
  let picture = null;
  let pointed = -1;
  let ratio = 1;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let still;

  const width = () => element.clientWidth;
  const height = () => element.clientHeight;

  /** @param {number} px @param {number} py pixels of the element @returns {[number, number]} */
  const toMap = (px, py) => [
    view.x + (px - width() / 2) / view.scale,
    view.y - (py - height() / 2) / view.scale,
  ];
  /** @param {number} x @param {number} y @returns {[number, number]} */
  const toScreen = (x, y) => [
    (x - view.x) * view.scale + width() / 2,
    height() / 2 - (y - view.y) * view.scale,
  ];

  const paint = perFrame(() => {
    if (!cloud || !width()) return;
    const isMoving = still !== undefined;
    if (isMoving && most < cloud.data.count && fills()) place();
    else if (isMoving || !isCurrent()) draw(isMoving ? most : Infinity);
    paintAbove();
  });

  function paintAbove() {
    const pen = above.getContext("2d");
    if (!pen) return;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width(), height());
    const colours = changeColours(element);
    if (changes) paintChanges(pen, colours);
    paintLabels(pen, colours);
    if (pointed >= 0 && cloud) {
      const [x, y] = toScreen(cloud.data.xy[2 * pointed], cloud.data.xy[2 * pointed + 1]);
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 7, 0, 2 * Math.PI);
      pen.stroke();
    }
    if (!drawn || drawn.length < 2) return;
    pen.beginPath();
    for (const [x, y] of drawn) pen.lineTo(x, y);
    pen.closePath();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Record<string, string>} colours */
  function paintChanges(pen, colours) {
    const { removed, moves } = /** @type {NonNullable<typeof changes>} */ (changes);
    pen.strokeStyle = colours.change;
    pen.globalAlpha = 0.55;
    pen.beginPath();
    // Of many, some stand for all.
    const marks = still === undefined ? MARKS : MARKS_MOVING;
    const stride = 4 * Math.max(1, Math.ceil(moves.length / 4 / marks));
    for (let index = 0; index < moves.length; index += stride) {
      pen.moveTo(...toScreen(moves[index], moves[index + 1]));
      pen.lineTo(...toScreen(moves[index + 2], moves[index + 3]));
    }
    pen.stroke();
    pen.globalAlpha = 0.85;
    pen.strokeStyle = colours.remove;
    pen.lineWidth = 1.4;
    pen.beginPath();
    const arm = Math.max(2, look.size * 0.8);
    const step = 2 * Math.max(1, Math.ceil(removed.length / 2 / marks));
    for (let index = 0; index < removed.length; index += step) {
      const [x, y] = toScreen(removed[index], removed[index + 1]);
      if (x < 0 || y < 0 || x > width() || y > height()) continue;
      pen.moveTo(x - arm, y - arm);
      pen.lineTo(x + arm, y + arm);
      pen.moveTo(x + arm, y - arm);
      pen.lineTo(x - arm, y + arm);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} pen @param {Record<string, string>} colours */
  function paintLabels(pen, colours) {
    pen.font = `600 12px ${getComputedStyle(element).fontFamily}`;
    pen.textAlign = "center";
    pen.lineJoin = "round";
    pen.lineWidth = 3.5;
    /** @type {number[][]} */
    const taken = [];
    for (const { label, x, y } of labels) {
      const [left, top] = toScreen(x, y);
      const reach = pen.measureText(label).width / 2;
      if (left < 0 || top < 0 || left > width() || top > height()) continue;
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
  function isCurrent() {
    const { x, y, scale } = view;
    return picture?.isWhole && picture.x === x && picture.y === y && picture.scale === scale;
  }

  /** Whether the picture, moved and scaled, reaches all edges of the view. */
  function fills() {
    if (!picture) return false;
    const factor = view.scale / picture.scale;
    if (factor < SCALES.least || factor > SCALES.most) return false;
    const room = (/** @type {number} */ size) => ((0.5 + BEYOND) * factor - 0.5) * size + 1;
    return (
      Math.abs(view.x - picture.x) * view.scale <= room(width()) &&
      Math.abs(view.y - picture.y) * view.scale <= room(height())
    );
  }

  /** Move and scale the picture to where the view is. */
  function place() {
    if (!picture) return;
    const factor = view.scale / picture.scale;
    const right = (picture.x - view.x) * view.scale;
    const down = (view.y - picture.y) * view.scale;
    points.style.transform =
      factor === 1 && !right && !down ? "" : `translate(${right}px, ${down}px) scale(${factor})`;
  }

  /** Draw points, the first ones of all. @param {number} options how many */
  function draw(options) {
    if (!cloud) return;
    renderer ??= pointRenderer(points);
    const began = performance.now();
    const { data } = cloud;
    const drawn = Math.min(options, data.count);
    const shown = { ...view, scale: view.scale * ratio };
    renderer.draw(data, shown, { ...look, size: look.size * ratio }, drawn);
    picture = { ...view, isWhole: drawn === data.count };
    place();
    element.dataset.renderer = renderer.kind;
    element.dataset.drawn = String(drawn);
    // The browser calls back when it can take the next frame: what it draws on its own threads
    // counts too.
    requestAnimationFrame(() => {
      const took = performance.now() - began;
      if (took < ASLEEP_MS) most = pointsInTime(drawn, took);
    });
  }

  /** The view has moved: draw quickly now, and everything when it stands still. */
  function moved() {
    clearTimeout(still);
    still = setTimeout(() => {
      still = undefined;
      paint();
      hands.moved();
    }, STILL_MS);
    paint();
  }

  /** @param {number} factor @param {number} [px] @param {number} [py] the place that stays */
  function zoom(factor, px = width() / 2, py = height() / 2) {
    const [x, y] = toMap(px, py);
    view.scale = Math.max(1e-4, Math.min(4, view.scale * factor));
    view.x = x - (px - width() / 2) / view.scale;
    view.y = y + (py - height() / 2) / view.scale;
    moved();
  }

  /** @param {number} px @param {number} py */
  function pan(px, py) {
    view.x = Math.max(0, Math.min(WHOLE, view.x - px / view.scale));
    view.y = Math.max(0, Math.min(WHOLE, view.y + py / view.scale));
    moved();
  }

  /** Show a part of the map as large as possible. @param {typeof box} part */
  function fitBox({ low: [left, low], high: [right, high] }) {
    view.x = (left + right) / 2;
    view.y = (low + high) / 2;
    const scale = Math.min(width() / Math.max(1, right - left), height() / Math.max(1, high - low));
    view.scale = Math.min(4, 0.92 * scale);
    moved();
  }

  const fit = () => fitBox(box);

  /** Show the chosen points as large as possible, all if there are none. */
  function fitChosen() {
    fitBox((look.dims && cloud?.boxOf(CHOSEN)) || box);
  }

  function resize() {
    if (!width() || !height()) return;
    ratio = Math.min(2, window.devicePixelRatio || 1);
    const isFirst = points.dataset.sized !== "yes";
    above.width = Math.round(width() * ratio);
    above.height = Math.round(height() * ratio);
    points.width = Math.round(width() * (1 + 2 * BEYOND) * ratio);
    points.height = Math.round(height() * (1 + 2 * BEYOND) * ratio);
    points.dataset.sized = "yes";
    picture = null;
    if (isFirst) fit();
    else paint();
  }

  /** Draw the points again: they, their colours or their size are others. */
  function refresh() {
    picture = null;
    paint();
  }

  /** @param {PointerEvent | WheelEvent} event @returns {[number, number]} */
  function spot(event) {
    const around = element.getBoundingClientRect();
    return [event.clientX - around.left, event.clientY - around.top];
  }

  const point = perFrame(() => {
    if (!cloud || !held || still) return;
    const [x, y] = toMap(held.x, held.y);
    const nearest = cloud.nearest(x, y, REACH / view.scale);
    if (nearest === pointed) return;
    pointed = nearest;
    hands.hover(nearest, nearest < 0 ? null : held);
    paint();
  });

  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x, y] = spot(event);
    if (lasso !== event.shiftKey) drawn = [[x, y]];
    held = { x, y };
    element.classList.add("lnb-map-held");
    followPointer(element, event, { move: drag, end: release });
  });
  element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) return;
    const [x, y] = spot(event);
    held = { x, y };
    point();
  });

  /** @param {PointerEvent} event */
  function drag(event) {
    const [x, y] = spot(event);
    if (drawn) {
      drawn.push([x, y]);
      paint();
    } else if (held) {
      pan(x - held.x, y - held.y);
      held = { x, y };
    }
  }

  /** @param {boolean} isDone whether an outline that was being drawn counts */
  function release(isDone) {
    element.classList.remove("lnb-map-held");
    const outline = drawn;
    drawn = null;
    if (!outline) return;
    paint();
    if (!isDone) return;
    if (outline.length > 2)
      hands.outline(simplified(outline, CORNERS).map(([x, y]) => toMap(x, y)));
    else hands.clear();
  }
  element.addEventListener("pointerleave", () => {
    held = null;
    if (pointed >= 0) hands.hover(-1, null);
    pointed = -1;
    paint();
  });
  element.addEventListener(
    "wheel",
    (event) => {
      // A page is scrolled by the wheel alone; the map that has the focus is zoomed.
      const isAsked = event.ctrlKey || event.metaKey || element.contains(document.activeElement);
      if (!isAsked) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, ...spot(event));
    },
    { passive: false },
  );
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ARROWS[event.key];
    if (way) pan(-way[0] * width(), way[1] * height());
    else if (event.key === "+" || event.key === "=") zoom(ZOOM);
    else if (event.key === "-") zoom(1 / ZOOM);
    else if (event.key === "0") fit();
    else if (event.key === "z" || event.key === "Z") fitChosen();
    else if (event.key === "Enter") pointInTheMiddle();
    else if (event.key === "s" || event.key === "S") selectInSight();
    else if (event.key === "Escape" && (look.dims || pointed >= 0)) {
      pointed = -1;
      hands.hover(-1, null);
      hands.clear();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function pointInTheMiddle() {
    if (!cloud) return;
    pointed = cloud.nearest(view.x, view.y, Math.max(width(), height()) / 2 / view.scale);
    const [x, y] =
      pointed < 0 ? [0, 0] : toScreen(cloud.data.xy[2 * pointed], cloud.data.xy[2 * pointed + 1]);
    hands.hover(pointed, pointed < 0 ? null : { x, y });
    paint();
  }

  function selectInSight() {
    hands.outline([
      toMap(0, 0), toMap(width(), 0), toMap(width(), height()), toMap(0, height()),
    ]); // biome-ignore format: four corners
  }

  // The browser has taken the graphics memory away, and given it back.
  points.addEventListener("webglcontextrestored", refresh);
  const watch = new ResizeObserver(resize);
  watch.observe(element);
  const forget = onTheme(() => hands.moved());
  ctx.onClose(() => {
    watch.disconnect();
    forget();
    paint.cancel();
    clearTimeout(still);
    renderer?.close();
  });

  return {
    element,
    look,
    refresh,
    fit,
    fitChosen,
    zoom,
    get sight() {
      const [left, top] = toMap(0, 0);
      const [right, low] = toMap(width(), height());
      return [left, low, right, top].map((side) => Math.max(0, Math.min(WHOLE, Math.round(side))));
    },
    /** @param {boolean} on whether a drag draws an outline */
    set lasso(on) {
      lasso = on;
      element.classList.toggle("lnb-map-lasso", on);
    },
    /**
     * Show other points. The view stays unless `anew`.
     * @param {import("./point_cloud.js").PointCloud} next
     * @param {{low: number[], high: number[]}} middle where most points are @param {boolean} anew
     */
    show(next, middle, anew) {
      cloud = next;
      box = middle;
      pointed = -1;
      changes = null;
      if (anew) fit();
    },
    /** Points have come, or their colours or states are others. @param {number} from */
    load(from) {
      if (!cloud) return;
      renderer ??= pointRenderer(points);
      renderer.load(cloud.data, from);
      refresh();
    },
    /** @param {typeof labels} next */
    label(next) {
      labels = next;
      paint();
    },
    /** @param {typeof changes} next */
    change(next) {
      changes = next;
      paint();
    },
  };
}
