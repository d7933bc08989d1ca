// The current picture of a wall at its full size above the wall, with what can be done with it; its
// row stands in the details beside it.

import { button, consume, h, show } from "../js/dom.js";
import { mediaOf } from "../js/media.js";
import { rowDetail } from "../rows/row_detail.js";

/** @typedef {import("./tile_wall.js").Section} Section */

export class LargePicture {
  element = h("div", {
    class: "lnb-wall-large",
    hidden: true,
    role: "dialog",
    on: { keydown: (event) => this.onKey(event) },
  });
  /** @type {import("../js/media.js").MediaElement | null} */
  media = null;

  /**
   * @param {Lnb.Context} ctx @param {import("./tile_wall.js").TileWall} wall
   * @param {{acts: (section: Section, row: number) => Lnb.Child[], alike: () => void,
   *   column: () => number}} hooks `column`: the place of the pictures among those of the grid
   */
  constructor(ctx, wall, hooks) {
    this.ctx = ctx;
    this.wall = wall;
    this.hooks = hooks;
    ctx.onClose(() => this.media?.close());
  }

  close() {
    this.media?.close();
    this.media = null;
    this.element.hidden = true;
    show(this.element);
  }

  backToTheWall() {
    this.close();
    this.wall.element.focus({ preventScroll: true });
  }

  async open() {
    const { current } = this.wall;
    const tile = this.wall.currentRow();
    if (!tile) return;
    this.close();
    const { section, row, words } = tile;
    if (section.type === "wall.changed") return;
    this.element.hidden = false;
    this.element.setAttribute("aria-label", words);
    const shown = h("div", { class: "lnb-wall-shown" });
    const close = button("×", () => this.backToTheWall(), { title: "close (Escape)" });
    show(
      this.element,
      h(
        "div",
        { class: "lnb-wall-tools" },
        h("strong", {}, words),
        button("‹", () => this.step("ArrowLeft"), { title: "previous (left arrow)" }),
        button("›", () => this.step("ArrowRight"), { title: "next (right arrow)" }),
        this.hooks.acts(section, row),
        close,
      ),
      shown,
    );
    close.focus({ preventScroll: true });
    rowDetail(this.ctx, section.args, row, false);
    try {
      const media = await mediaOf(this.ctx, { ...section.args, row, column: this.hooks.column() });
      if (this.element.hidden || this.wall.current !== current) return media?.close();
      this.media = media;
      show(shown, media ?? "This row has no picture.");
    } catch (error) {
      show(shown, this.ctx.problem(error));
    }
  }

  /** @param {string} key */
  step(key) {
    this.wall.step(key);
    this.open();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.step(event.key);
    else if (event.key === "Escape") this.backToTheWall();
    else if (event.key === "n") this.hooks.alike();
    else return;
    consume(event);
  }
}
