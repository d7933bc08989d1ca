// What a point of the map is: a picture and values of its row, beside the pointer.

import { h, show } from "../js/dom.js";
import { bytesOf } from "../js/message_buffers.js";

const HOVER_MS = 60;
const PICTURE_PX = 160;

export class PointTip {
  element = h("div", { class: "lnb-map-tip", hidden: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /** @param {Lnb.Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.ask = ctx.kernel.line({ quiet: true });
  }

  /**
   * Show what a point is, or nothing.
   * @param {Lnb.Args | null} point see the request `map.point`
   * @param {{x: number, y: number} | null} near where the pointer is
   */
  hover(point, near) {
    clearTimeout(this.timer);
    const hide = () => {
      this.element.hidden = true;
    };
    if (!point || !near) return hide();
    this.timer = setTimeout(
      () => this.ask("map.point", point, (answer) => this.paint(answer, near), hide),
      HOVER_MS,
    );
  }

  /** @param {Lnb.Answer} answer @param {{x: number, y: number}} near */
  paint({ result, buffers }, { x, y }) {
    /** @type {{name: string, text: string}[]} */
    const cells = result.cells;
    const picture = h("canvas", { class: "lnb-map-picture", "aria-hidden": "true" });
    const values = cells.flatMap(({ name, text }) => [h("dt", {}, name), h("dd", {}, text)]);
    show(this.element, buffers.length > 0 && picture, h("dl", {}, values));
    this.element.hidden = false;
    const { clientWidth, clientHeight } = /** @type {HTMLElement} */ (this.element.parentElement);
    const { style, offsetHeight } = this.element;
    const isRight = x > clientWidth / 2;
    style.left = isRight ? "auto" : `${x + 16}px`;
    style.right = isRight ? `${clientWidth - x + 16}px` : "auto";
    style.top = `${Math.max(4, Math.min(y - 20, clientHeight - offsetHeight - 4))}px`;
    const words = cells.slice(0, 4).map(({ name, text }) => `${name} ${text}`);
    this.ctx.announce(words.join(", "));
    if (buffers.length) drawPicture(picture, buffers[0], result.mime);
  }
}

/** @param {HTMLCanvasElement} canvas @param {Lnb.Buffer} buffer @param {string} mime */
async function drawPicture(canvas, buffer, mime) {
  const blob = new Blob([/** @type {BlobPart} */ (bytesOf(buffer))], { type: mime });
  const bitmap = await createImageBitmap(blob).catch(() => null);
  if (!bitmap) return canvas.remove();
  const scale = Math.min(1, PICTURE_PX / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return bitmap.close();
}
