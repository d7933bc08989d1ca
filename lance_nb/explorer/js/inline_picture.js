// A small picture that came inside of JSON. Until it is decoded a grey place stands for it.

import { h } from "./dom.js";
import { canvasOf, smallPicture } from "./media.js";

const WIDE = 180;
const HIGH = 112;

/**
 * @param {{mime: string, width: number, height: number, data: string}} image see media.py
 * @param {string} label
 */
export function inlinePicture({ data, ...about }, label) {
  const name = { class: "lnb-thumb", role: "img", "aria-label": label, title: label };
  const place = h("i", name);
  const { buffer } = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  smallPicture(new DataView(buffer), about, WIDE, HIGH).then(
    (bitmap) => place.replaceWith(canvasOf(bitmap, { ...name, "aria-hidden": null })),
    () => place.replaceWith(label), // one that cannot be decoded
  );
  return place;
}
