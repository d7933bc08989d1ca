// The pictures of a cell before and after a change: side by side, one over the other with a border
// that is dragged, or their difference.

import { button, h, show } from "../js/dom.js";
import { canvasOf, smallPicture } from "../js/media.js";

const MOST = 640; // pixels of a side
const MODES = [
  ["beside", "Side by side"],
  ["swipe", "Swipe"],
  ["difference", "Difference"],
];

/**
 * The place of the pictures, which are filled in when they have come; empty where there are none.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args of a request for the pictures of one row
 * @param {boolean} changed whether there is a value from before
 */
export function picturePair(ctx, args, changed) {
  const element = h("div.lnb-pair");
  load(ctx, args, changed)
    .then((pictures) => paint(element, pictures))
    .catch(() => {}); // the words beside it say what the value is
  return element;
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Args} args @param {boolean} changed
 * @returns {Promise<ImageBitmap[]>} before and after, those that there are
 */
async function load(ctx, args, changed) {
  const sides = changed ? [true, false] : [false];
  const pictures = sides.map(async (old) => {
    const request = { ...args, count: 1, ...(old ? { old } : {}) };
    const { result, buffers } = await ctx.kernel.ask("changes.thumbs", request, { quiet: true });
    return result.thumbs.length ? smallPicture(buffers[0], result.thumbs[0], MOST) : null;
  });
  return (await Promise.all(pictures)).filter((bitmap) => bitmap !== null);
}

/** @param {HTMLElement} element @param {ImageBitmap[]} pictures */
function paint(element, pictures) {
  const names = pictures.length > 1 ? ["before", "after"] : ["picture"];
  const canvases = pictures.map((bitmap, index) => {
    const name = { role: "img", "aria-label": names[index], title: names[index] };
    const canvas = canvasOf(bitmap, { ...name, "aria-hidden": null });
    bitmap.close();
    return canvas;
  });
  const stage = h("div.lnb-pair-stage", canvases);
  if (pictures.length < 2) return show(element, stage);
  /** @type {HTMLInputElement} */
  const border = h("input.lnb-pair-border", {
    type: "range",
    min: "0",
    max: "100",
    value: "50",
    "aria-label": "how much is shown of the picture before",
    on: { input: () => stage.style.setProperty("--lnb-part", `${border.value}%`) },
  });
  /** @param {string} mode */
  const choose = (mode) => {
    element.dataset.mode = mode;
    border.hidden = mode !== "swipe";
    buttons.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String(MODES[index][0] === mode)),
    );
  };
  const buttons = MODES.map(([mode, words]) =>
    button(words, () => choose(mode), { class: "lnb-choice" }),
  );
  show(
    element,
    h("div.lnb-choices", { role: "group", "aria-label": "how both pictures are shown" }, buttons),
    stage,
    border,
  );
  return choose("beside");
}
