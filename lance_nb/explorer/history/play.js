// Plays the history: travels from version to version until the newest, or until somebody
// interferes. A version stays until the views have read what they show of it.

import { button as makeButton } from "../js/dom.js";

const FRAME_MS = 450;
const LOOK_MS = 100;
const MOST_WAIT_MS = 20000; // work that goes on longer, such as a write, does not hold the play up

/**
 * @param {Lnb.Context} ctx @param {() => Lnb.LaneMap|null} mapNow @param {HTMLElement} plane
 */
export function playButton(ctx, mapNow, plane) {
  const button = makeButton("▶", () => (playing ? stop() : start()), {
    class: "lnb-button lnb-tl-play",
    "aria-pressed": "false",
    title: "play the history of this branch",
    "aria-label": "play the history",
  });
  let playing = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function start() {
    const map = mapNow();
    const lane = map?.lanes[map.here.lane];
    if (!lane || lane.numbers.length < 2 || ctx.kernel.state === "static") return;
    mark(true);
    // At the end already: from the other handle on, or from the beginning.
    const { a } = ctx.range.get();
    const again =
      ctx.range.pinned && a && (a.branch ?? null) === (lane.branch ?? null)
        ? a.version
        : lane.numbers[0];
    if (map.here.version === lane.numbers.at(-1))
      ctx.travel({ branch: lane.branch, version: again });
    else next();
  }

  /** @param {number} [waited] milliseconds */
  function next(waited = 0) {
    if (ctx.kernel.isWorking && waited < MOST_WAIT_MS) {
      timer = setTimeout(() => next(waited + LOOK_MS), LOOK_MS);
      return;
    }
    const map = mapNow();
    const to = map?.step("ArrowRight", map.here);
    if (!map || !to || to.version === map.here.version) stop();
    else ctx.travel({ branch: map.lanes[to.lane].branch, version: to.version });
  }

  function stop() {
    clearTimeout(timer);
    mark(false);
  }

  /** @param {boolean} on */
  function mark(on) {
    playing = on;
    button.textContent = on ? "❚❚" : "▶";
    button.setAttribute("aria-pressed", String(on));
  }

  plane.addEventListener("pointerdown", stop);
  plane.addEventListener("keydown", stop);
  ctx.onScreen((_screen, patched) => {
    if (!playing || patched) return;
    clearTimeout(timer);
    timer = setTimeout(() => next(), FRAME_MS);
  });
  ctx.onClose(stop);
  return button;
}
