// The handles A and B on the timeline's axis: dragged, moved by keys, or set by Shift and a click.

import { h, setBox, setText } from "../js/dom.js";
import { followPointer } from "../js/pointer_drag.js";
import { placeLabel, samePlace } from "../js/version_range.js";

const AXIS = 20;
const [CHIP, DIGIT] = [26, 7]; // pixels of a handle without its number, and of a digit
const EDGE = 28; // pixels at the ends of the view in which dragging scrolls

/**
 * @param {Lnb.Context} ctx @param {HTMLElement} scroller @param {() => Lnb.LaneMap|null} mapNow
 */
export function rangeHandles(ctx, scroller, mapNow) {
  const band = h("div.lnb-tl-band", { hidden: true, "aria-hidden": "true" });
  const handles = {
    a: handle("a", "A, the version that is compared with"),
    b: handle("b", "B, the version shown"),
  };
  let dragged = false;
  const element = h("div.lnb-tl-rail", band, handles.a, handles.b);

  /** @param {"a" | "b"} name @param {string} label */
  function handle(name, label) {
    const chip = h(
      "div",
      {
        class: `lnb-tl-handle lnb-tl-handle-${name}`,
        role: "slider",
        tabindex: "0",
        "aria-label": label,
        "aria-orientation": "horizontal",
        hidden: true,
      },
      h("b", { "aria-hidden": "true" }, name.toUpperCase()),
      h("span"),
    );
    for (const begun of ["pointerenter", "focus"])
      chip.addEventListener(begun, () => dragged || ctx.range.reach(name));
    chip.addEventListener("pointerdown", (event) => drag(event, name));
    chip.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (!step(name, event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    return chip;
  }

  /**
   * Move a handle by a key of the timeline; false when the key leads nowhere.
   * @param {"a" | "b"} name @param {string} key
   */
  function step(name, key) {
    const map = mapNow();
    const from = map && spot(map, ctx.range.get()[name] ?? ctx.range.get().b);
    const to = from && map.step(key, from);
    if (!to) return false;
    const place = { branch: map.lanes[to.lane].branch, version: to.version };
    ctx.range.set({ [name]: place });
    ctx.announce(`${name.toUpperCase()} at ${placeLabel(place)}`);
    return true;
  }

  /** @param {PointerEvent} event @param {"a" | "b"} name */
  function drag(event, name) {
    const chip = handles[name];
    event.preventDefault();
    chip.focus({ preventScroll: true });
    /** @type {Lnb.Place | null} */
    let handleVersion = null;
    dragged = true;
    /** @param {PointerEvent} pointer */
    const move = (pointer) => {
      const map = mapNow();
      if (!map) return;
      const box = scroller.getBoundingClientRect();
      if (pointer.clientX < box.left + EDGE) scroller.scrollLeft -= map.slot;
      else if (pointer.clientX > box.right - EDGE) scroller.scrollLeft += map.slot;
      const handle = under(
        map,
        pointer.clientX - box.left + scroller.scrollLeft,
        pointer.clientY - box.top,
        name,
      );
      if (!handle || samePlace(handle, handleVersion)) return;
      handleVersion = handle;
      ctx.range.set({ [name]: handleVersion }, { dragging: true });
    };
    followPointer(chip, event, {
      move,
      end(isDone) {
        dragged = false;
        if (isDone) ctx.range.set(handleVersion ? { [name]: handleVersion } : {});
        else ctx.range.giveUp();
      },
    });
  }

  /**
   * The version nearest to a point: on the lane under it, else on the lane where the handle is.
   * @param {Lnb.LaneMap} map @param {number} x @param {number} y @param {"a" | "b"} name
   */
  function under(map, x, y, name) {
    const now = spot(map, ctx.range.get()[name]);
    const lane =
      map.lanes.find(
        (lane) => lane.numbers.length && y >= lane.top && y < lane.top + lane.height,
      ) ?? map.lanes[now?.lane ?? map.here.lane];
    const version = map.nearest(lane, x);
    return version === null ? null : { branch: lane.branch, version };
  }

  /** @param {Lnb.LaneMap} map @param {Lnb.Place | null} place @returns {Lnb.Spot | null} */
  function spot(map, place) {
    if (!place) return null;
    const lane = map.lanes.findIndex(
      (candidate) => (candidate.branch ?? null) === (place.branch ?? null),
    );
    return lane < 0 ? null : { lane, version: place.version };
  }

  function paint() {
    const map = mapNow();
    if (!map) return;
    const { a, b } = ctx.range.get();
    /** @param {Lnb.Place | null} place */
    const middle = (place) =>
      place && spot(map, place) ? map.x(place.version) + map.slot / 2 : null;
    const [xa, xb] = [middle(a), middle(b)];
    const swapped = xa !== null && xb !== null && xa > xb;
    // The one on the left has room at the beginning, and the other one beside it.
    const start = (/** @type {Lnb.Place | null} */ place, /** @type {number | null} */ x) =>
      x === null || !place ? x : Math.max(x, CHIP + DIGIT * String(place.version).length);
    const [left, right] = swapped ? [start(b, xb), xa] : [start(a, xa), xb];
    const beside = right === null ? null : Math.max(right, left ?? 0);
    put(handles.a, a, swapped ? beside : left, !swapped, map);
    put(handles.b, b, swapped ? left : beside, swapped, map);
    const meant = dragged || ctx.range.pinned; // where A only follows B, nobody chose a range
    band.hidden = true;
    if (!meant || xa === null || xb === null || samePlace(a, b)) return;
    band.hidden = false;
    band.style.left = `${Math.min(xa, xb)}px`;
    band.style.width = `${Math.abs(xb - xa)}px`;
    const top = map.lanes[0].head; // the line crosses no name of a tag
    setBox(band, { top, height: map.height - AXIS - top });
  }

  /**
   * @param {HTMLElement} chip @param {Lnb.Place | null} place @param {number | null} x
   * @param {boolean} before @param {Lnb.LaneMap} map
   */
  function put(chip, place, x, before, map) {
    chip.hidden = x === null || !place;
    if (x === null || !place) return;
    setText(/** @type {Element} */ (chip.lastElementChild), String(place.version));
    chip.setAttribute("aria-valuetext", placeLabel(place));
    chip.setAttribute("aria-valuenow", String(place.version));
    chip.setAttribute("aria-valuemin", String(map.numbers[0] ?? 0));
    chip.setAttribute("aria-valuemax", String(map.numbers.at(-1) ?? 0));
    chip.title = `${chip.getAttribute("aria-label")}: ${placeLabel(place)} – drag it`;
    chip.classList.toggle("lnb-before", before);
    chip.style.left = `${x}px`;
  }

  return { element, paint, step };
}
