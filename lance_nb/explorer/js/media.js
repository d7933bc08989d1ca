// A picture or a sound from a cell: its bytes are fetched in pieces and given to the browser as a
// blob.

import { bytes, h } from "./dom.js";

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
]);
/** @typedef {HTMLElement & {shows: boolean, close: () => void}} MediaElement */

const AT_ONCE = 2_000_000;

/**
 * What a binary value is, and its picture or sound: at once when it is small, else when asked for.
 * @param {Lnb.Context} ctx @param {Lnb.Args} args place, lens, row and column
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
  const load = async () => {
    const url = URL.createObjectURL(
      new Blob(/** @type {BlobPart[]} */ (await pieces(ctx, args, result, buffers)), {
        type: result.mime,
      }),
    );
    const broken = () =>
      words.replaceChildren(`${result.label} · ${bytes(result.size)} · cannot be decoded`);
    const shown =
      result.kind === "image"
        ? h("img", { src: url, alt: `${result.label}, row ${args.row}`, on: { error: broken } })
        : h("audio", { src: url, controls: true, on: { error: broken } });
    place.close = () => URL.revokeObjectURL(url);
    place.append(shown);
  };
  if (result.size <= AT_ONCE) await load();
  else {
    const button = h(
      "button",
      {
        class: "lnb-button",
        type: "button",
        on: {
          click: async () => {
            button.remove();
            await load();
          },
        },
      },
      "Show",
    );
    place.append(button);
  }
  return place;
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Args} args @param {{size: number}} media
 * @param {Lnb.Buffer[]} first
 */
async function pieces(ctx, args, { size }, first) {
  const found = [...first];
  let have = first[0].byteLength;
  while (have < size) {
    const { buffers } = await ctx.kernel.ask(
      "rows.media",
      { ...args, offset: have },
      { quiet: true },
    );
    if (!buffers[0]?.byteLength) break;
    found.push(buffers[0]);
    have += buffers[0].byteLength;
  }
  return found;
}
