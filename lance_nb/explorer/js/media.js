// A picture, a sound or a film from a cell: its bytes are fetched in pieces and given to the
// browser as a blob.

import { button, bytes, h } from "./dom.js";

// The kernel names what the first bytes prove; only these are ever shown.
const SHOWN = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "audio/wav",
  "audio/mpeg",
  "audio/ogg",
  "audio/flac",
  "audio/mp4",
  "video/mp4",
  "video/webm",
  "video/ogg",
]);
/** @typedef {HTMLElement & {shows: boolean, close: () => void}} MediaElement */

const AT_ONCE = 2_000_000;
const FRAME_MS = 5000; // that a browser may take for the first picture of a film

/**
 * A picture made small in memory. The promise rejects one that cannot be decoded.
 * @param {Lnb.Buffer} buffer
 * @param {{mime: string, width: number, height: number}} picture
 * @param {number} wide @param {number} [high] pixels that it may have
 */
export function smallPicture(buffer, { mime, width, height }, wide, high = wide) {
  const blob = new Blob([/** @type {BlobPart} */ (buffer)], { type: mime });
  return createImageBitmap(blob, resized(width, height, wide, high));
}

/** @param {number} width @param {number} height @param {number} wide @param {number} high */
function resized(width, height, wide, high) {
  const scale = Math.min(1, wide / Math.max(1, width), high / Math.max(1, height));
  return {
    resizeWidth: Math.max(1, Math.round(width * scale)),
    resizeHeight: Math.max(1, Math.round(height * scale)),
    resizeQuality: /** @type {const} */ ("medium"),
  };
}

/** A canvas with a picture. @param {ImageBitmap} bitmap @param {Lnb.Props} [props] */
export function canvasOf(bitmap, props = {}) {
  const { width, height } = bitmap;
  const canvas = h("canvas", { width, height, "aria-hidden": "true", ...props });
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
  return canvas;
}

/**
 * The first picture of a film, made small. It is not played, and what the browser holds of it is
 * given back.
 * @param {Lnb.Buffer} buffer @param {string} mime @param {number} most pixels of the longer side
 * @returns {Promise<ImageBitmap>} rejects a film that the browser cannot decode
 */
export async function firstFrame(buffer, mime, most) {
  const url = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (buffer)], { type: mime }));
  /** @type {HTMLVideoElement} */
  const video = h("video", { preload: "auto", playsinline: "" });
  video.muted = true;
  try {
    await new Promise((resolve, reject) => {
      setTimeout(reject, FRAME_MS, new Error("it takes too long"));
      video.addEventListener("loadeddata", resolve, { once: true });
      video.addEventListener("error", reject, { once: true });
      video.src = url;
    });
    const size = resized(video.videoWidth, video.videoHeight, most, most);
    return await createImageBitmap(video, size);
  } finally {
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(url);
  }
}

/**
 * What a binary value is, and its picture, sound or film: at once when it is small, else when
 * asked for.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args place, query, row and column
 * @returns {Promise<MediaElement|null>} null: neither; `shows`: the browser can show it; `close()`
 *   gives its memory back
 */
export async function mediaOf(ctx, args) {
  const { result, buffers } = await ctx.kernel.ask("rows.media", { ...args, offset: 0 });
  if (result.null || result.kind === "bytes") return null;
  const words = h(
    "span",
    {},
    `${result.label} · ${bytes(result.size)}${result.why ? ` · not shown: ${result.why}` : ""}`,
  );
  const place = Object.assign(h("div", { class: "lnb-media" }, words), {
    shows: false,
    close() {},
  });
  if (result.why || !SHOWN.has(result.mime)) return place;
  place.shows = true;
  let isClosed = false;
  place.close = () => {
    isClosed = true;
  };
  const load = async () => {
    const parts = /** @type {BlobPart[]} */ (await pieces(ctx, args, result, buffers));
    if (isClosed) return;
    const url = URL.createObjectURL(new Blob(parts, { type: result.mime }));
    const broken = () =>
      words.replaceChildren(`${result.label} · ${bytes(result.size)} · cannot be decoded`);
    const name = `${result.label}, row ${args.row}`;
    const on = { error: broken };
    const shown =
      result.kind === "image"
        ? h("img", { src: url, alt: name, on })
        : result.kind === "video"
          ? h("video", { src: url, controls: true, playsinline: "", "aria-label": name, on })
          : h("audio", { src: url, controls: true, "aria-label": name, on });
    place.close = () => URL.revokeObjectURL(url);
    place.append(shown);
  };
  if (result.size <= AT_ONCE) await load();
  else {
    const show = button("Show", async () => {
      show.disabled = true;
      try {
        await load();
        show.remove();
      } catch (error) {
        note.textContent = /** @type {Error} */ (error).message;
        show.disabled = false;
      }
    });
    const note = h("small", { class: "lnb-soft", role: "status" });
    place.append(show, note);
  }
  return place;
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Args} args @param {{size: number}} media
 * @param {Lnb.Buffer[]} first
 */
async function pieces(ctx, args, { size }, first) {
  const nodes = [...first];
  let have = first[0].byteLength;
  while (have < size) {
    const { buffers } = await ctx.kernel.ask(
      "rows.media",
      { ...args, offset: have },
      { quiet: true },
    );
    if (!buffers[0]?.byteLength) break;
    nodes.push(buffers[0]);
    have += buffers[0].byteLength;
  }
  return nodes;
}
