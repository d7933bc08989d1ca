// Pictures and sounds of cells: which are shown, and how they are fetched.

import "./light_page.js"; // first: some modules need a page while they load
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { mediaOf } from "../../lance_nb/explorer/js/media.js";
import { fakeContext, settled } from "./fake_context.js";
import { button, observers, send } from "./light_page.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => {
  mock.timers.reset();
  document.body.replaceChildren();
  observers.length = 0;
});

const _pass = async (ms) => {
  mock.timers.tick(ms);
  await settled();
};

const MIMES = [
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
];
const media = (more) => ({
  null: false,
  kind: "image",
  mime: "image/png",
  label: "PNG",
  size: 4,
  why: "",
  ...more,
});
const PIECE = new DataView(new ArrayBuffer(4));

async function shown(result, buffers = [PIECE]) {
  const ctx = fakeContext();
  const made = [];
  const revoked = [];
  URL.createObjectURL = (blob) => `blob:${made.push(blob)}`;
  URL.revokeObjectURL = (url) => revoked.push(url);
  const found = mediaOf(ctx, { row: 7 });
  assert.deepEqual(ctx.kernel.last("rows.media").args, { row: 7, offset: 0 });
  await ctx.kernel.last("rows.media").answer(result, buffers);
  return { ctx, found, made, revoked };
}

test("only media types on the list are shown", async () => {
  for (const mime of MIMES) {
    const { found, made, revoked } = await shown(media({ mime, kind: mime.split("/")[0] }));
    const element = await found;
    assert.equal(element.shows, true);
    assert.equal(made[0].type, mime);
    const [child] = element.querySelectorAll("img, audio, video");
    const tags = { image: "IMG", audio: "AUDIO", video: "VIDEO" };
    assert.equal(child.tagName, tags[mime.split("/")[0]]);
    assert.equal(child.hasAttribute("autoplay"), false);
    element.close();
    assert.deepEqual(revoked, ["blob:1"]);
  }
  for (const mime of [
    "image/svg+xml",
    "text/html",
    "application/pdf",
    "video/x-matroska",
    "image/tiff",
    "",
  ]) {
    const { found, made } = await shown(media({ mime }));
    const element = await found;
    assert.equal(element.shows, false);
    assert.equal(made.length, 0);
    element.close();
  }
});

test("what is no media is null, what is not shown says why", async () => {
  assert.equal(await (await shown(media({ null: true }))).found, null);
  assert.equal(await (await shown(media({ kind: "bytes" }))).found, null);
  const { found, made } = await shown(media({ why: "too large" }));
  assert.match((await found).textContent, /PNG · 4 B · not shown: too large/);
  assert.equal(made.length, 0);
});

test("a large picture is fetched in pieces when it is asked for", async () => {
  const { ctx, found, made } = await shown(media({ size: 3_000_000 }));
  const element = await found;
  assert.equal(made.length, 0);
  const small = await shown(media({ size: 2_000_000 }));
  await small.ctx.kernel.last("rows.media").answer({}, [new ArrayBuffer(1_999_996)]);
  assert.equal(button(await small.found, "Show"), undefined);
  button(element, "Show").click();
  assert.deepEqual(ctx.kernel.last("rows.media").args, { row: 7, offset: 4 });
  assert.equal(ctx.kernel.last("rows.media").options.quiet, true);
  await ctx.kernel.last("rows.media").answer({}, [new DataView(new ArrayBuffer(2_000_000))]);
  assert.equal(ctx.kernel.last("rows.media").args.offset, 2_000_004);
});

test("a piece that does not come is said, and asked for again", async () => {
  const { ctx, found, made } = await shown(media({ size: 3_000_000 }));
  const element = await found;
  const show = button(element, "Show");
  show.click();
  assert.equal(show.disabled, true);
  await ctx.kernel.last("rows.media").fail({ message: "the kernel is gone" });
  assert.match(element.textContent, /the kernel is gone/);
  assert.equal(show.disabled, false);
  show.click();
  await ctx.kernel.last("rows.media").answer({}, [new ArrayBuffer(2_999_996)]);
  assert.equal(made.length, 1);
  assert.equal(button(element, "Show"), undefined);
});

test("what was closed while it was fetched holds no memory", async () => {
  const { ctx, found, made } = await shown(media({ size: 3_000_000 }));
  const element = await found;
  button(element, "Show").click();
  element.close();
  await ctx.kernel.last("rows.media").answer({}, [new ArrayBuffer(2_999_996)]);
  assert.equal(made.length, 0);
});

test("pieces end where the kernel has no more", async () => {
  const { ctx, found, made } = await shown(media({ size: 100 }));
  await ctx.kernel.last("rows.media").answer({}, []);
  const element = await found;
  assert.equal(made[0].size, 4);
  send(element.querySelector("img"), "error");
  assert.match(element.textContent, /PNG · 100 B · cannot be decoded/);
});
