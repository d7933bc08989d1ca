// The wall: the pictures of a column side by side, as the grid shows the rows, or by group, near
// duplicate, doubtful label, or change between the two handles of the timeline.

import { button, consume, h, plural, setText, show } from "../js/dom.js";
import { columnNamed, LongWork, ToolSelect, toolSlider } from "../js/tool_select.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { LargePicture } from "./large_picture.js";
import { SIZES, TileWall } from "./tile_wall.js";

const NEIGHBOURS = 100;
const MOST_RANGES = 1000; // see explorer/session.py
const WHOLE = { filter: null, system: false, arranged: null, shown: null };
const LISTS = {
  rows: "all rows",
  groups: "grouped by",
  duplicates: "near duplicates",
  doubts: "label doubts",
  changes: "A → B",
};
const WORK_WORDS = {
  groups: "Grouping…",
  duplicates: "Comparing all vectors…",
  doubts: "Comparing labels with neighbours…",
};
const LABELS = ["label", "class", "category", "species", "caption", "kind", "title", "name"];

/**
 * @typedef {import("../js/tool_select.js").Named} Named
 * @typedef {keyof typeof LISTS} Mode
 * @typedef {import("./tile_wall.js").Section} Section
 */

class PictureWall {
  /** @type {Lnb.Json} of the version shown, see widget.py */
  columns = null;
  loaded = ""; // the version whose columns are known
  listed = ""; // what the sections are of
  words = "";
  turn = 0; // of the newest list
  /** @type {number | null} the place of the pictures among the columns of the grid */
  place = null;
  status = h("p", { class: "lnb-wall-status", role: "status" });
  problem = h("div", { class: "lnb-wall-problem" });
  acts = h("span", { class: "lnb-wall-acts" });
  pictures = new ToolSelect("pictures", () => this.list());
  captions = new ToolSelect("caption", () => this.list());
  groups = new ToolSelect("by", () => this.list());
  vectors = new ToolSelect("vectors", () => this.list());
  labels = new ToolSelect("label", () => this.list());
  modes = new ToolSelect("show", () => {
    this.paintTools();
    this.list();
  });

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.guard = writeGuard(ctx);
    this.work = new LongWork(ctx.kernel);
    this.wall = new TileWall(
      ctx,
      {
        isChosen: (row) => this.isGrid && ctx.rows.selection.row(row),
        act: (section) => this.relabelButton(section, section.first, section.count),
        failed: (error) => this.fail(error, () => this.list()),
        learned: (result) => {
          if (result.at !== undefined) this.place = result.at;
        },
      },
      {
        keydown: (event) => this.onKey(event),
        click: (event) => this.onClick(event),
        wheel: (event) => this.onWheel(event),
      },
    );
    this.large = new LargePicture(ctx, this.wall, {
      acts: (section, row) => this.largeActs(section, row),
      alike: () => this.alike(),
      column: () => this.place ?? 0,
    });
    const [min, max] = SIZES;
    this.size = toolSlider(
      "size of the pictures",
      {
        min,
        max,
        step: 8,
        value: this.wall.size,
        title: "size of the pictures (+ and -, or Ctrl and the wheel)",
      },
      (size) => this.resize(size),
    );
    this.modes.choose("rows");
    el.append(this.page());
    this.follow();
    if (ctx.kernel.state === "static")
      setText(
        this.status,
        `${placeLabel(this.ctx.place())}: the pictures need a kernel: run the cell to see them.`,
      );
  }

  page() {
    const tools = h(
      "div",
      { class: "lnb-tools" },
      [this.modes, this.groups, this.vectors, this.labels, this.pictures, this.captions].map(
        ({ element }) => element,
      ),
      h("label", { class: "lnb-tool" }, "size", this.size),
      this.work.element,
    );
    return h(
      "div",
      { class: "lnb-wall" },
      tools,
      this.problem,
      h("div", { class: "lnb-wall-place" }, this.wall.element, this.large.element),
      h("div", { class: "lnb-wall-foot" }, this.status, this.acts),
    );
  }

  /** Follow what is shown elsewhere: the version, the rows of the grid, the compared versions. */
  follow() {
    const { ctx } = this;
    ctx.describe("pictures", () => this.described());
    ctx.onClose(
      ctx.rows.on({
        shown: () => {
          if (this.isGrid || this.mode === "groups") this.list();
        },
        selected: this.wall.paint,
        failed: (error) => this.fail(error),
      }),
    );
    ctx.onScreen(
      (_screen, patched) => {
        if (!patched) this.load();
      },
      ["card"],
    );
    ctx.onClose(
      ctx.range.on((_range, { dragging }) => {
        if (!dragging && this.mode === "changes") this.list();
      }),
    );
  }

  /** For the picture that a saved notebook keeps: the first row in sight. */
  described() {
    if (this.wall.sections[0]?.type !== "wall.tiles") return {};
    const [spot] = this.wall.inSight().spots;
    const section = this.wall.sections[spot?.section ?? 0];
    const { branch, version, ...query } = section.args;
    const row = section.first + (spot?.at ?? 0);
    return { ...query, place: { branch, version }, row, words: this.words };
  }

  /** The tab is shown again. */
  shown() {
    if (this.listed === this.listKey()) this.wall.measure();
    else this.load();
  }

  get mode() {
    return /** @type {Mode} */ (this.modes.chosen);
  }

  /** Whether the tiles are the rows of the grid. */
  get isGrid() {
    return this.mode === "rows";
  }

  /** @param {unknown} error @param {(() => void)} [again] */
  fail(error, again) {
    show(this.problem, this.ctx.problem(error, again));
  }

  /** Learn the columns of the version shown, and show its pictures. */
  async load() {
    if (this.ctx.kernel.state === "static") return;
    const place = this.ctx.place();
    const key = JSON.stringify(place);
    if (key !== this.loaded) {
      try {
        const { result } = await this.ctx.kernel.ask("wall.columns", place);
        if (JSON.stringify(this.ctx.place()) !== key) return;
        this.loaded = key;
        this.takeColumns(result);
      } catch (error) {
        return this.fail(error, () => this.load());
      }
    }
    this.list();
  }

  /** @param {Lnb.Json} columns */
  takeColumns(columns) {
    const { pictures, captions, groups, vectors, labels } = columns;
    const label = columnNamed(labels, LABELS);
    if (!this.columns) this.captions.chosen = label;
    this.columns = columns;
    const can = {
      rows: true,
      groups: groups.length > 0,
      duplicates: vectors.length > 0,
      doubts: vectors.length > 0 && labels.length > 0,
      changes: true,
    };
    const modes = /** @type {Mode[]} */ (Object.keys(LISTS)).filter((mode) => can[mode]);
    this.modes.fill(
      modes.map((mode) => ({ raw: mode, label: LISTS[mode] })),
      { otherwise: "rows" },
    );
    this.pictures.fill(pictures, { otherwise: pictures[0]?.raw });
    this.captions.fill(captions, { none: "none" });
    this.groups.fill(groups, { otherwise: label ?? groups[0]?.raw });
    this.vectors.fill(vectors, { otherwise: vectors[0]?.raw });
    this.labels.fill(labels, { otherwise: label ?? labels[0]?.raw });
    this.paintTools();
  }

  paintTools() {
    const { pictures, vectors } = this.columns;
    this.pictures.element.hidden = pictures.length < 2;
    this.groups.element.hidden = this.mode !== "groups";
    this.labels.element.hidden = this.mode !== "doubts";
    // In other lists the vectors are those of "More like this".
    this.vectors.element.hidden = vectors.length < (this.isOfAllRows ? 1 : 2);
  }

  /** Whether the list is of all rows, and not of those that the grid shows. */
  get isOfAllRows() {
    return this.mode === "duplicates" || this.mode === "doubts";
  }

  /** Filter and order of the grid, with all columns. */
  gridLens() {
    return { ...this.ctx.rows.query, shown: null };
  }

  /** What the list that is chosen is of. */
  request() {
    const rows = this.isOfAllRows ? WHOLE : this.gridLens();
    return { ...this.ctx.place(), ...rows, filter: this.ctx.rows.criteria.filter };
  }

  listKey() {
    const { mode } = this;
    return JSON.stringify([mode, this.request(), mode === "changes" && this.ctx.range.get()]);
  }

  /** Show the list that is chosen: the rows of the grid at once, others when they are found. */
  async list() {
    if (!this.columns || !this.wall.element.isConnected) return;
    this.turn += 1;
    const { turn } = this;
    const place = this.ctx.place();
    this.listed = this.listKey();
    show(this.problem);
    show(this.acts);
    this.work.cancel();
    if (!this.pictures.chosen) return this.take([], "This version has no column of pictures.");
    if (this.mode === "rows") return this.takeRows();
    try {
      if (this.mode === "changes") return await this.compare(this.ctx.range.get(), turn);
      this.take([], "");
      const { result } = await this.findGroups(this.mode);
      if (turn === this.turn) this.takeSections(result, place);
    } catch (error) {
      if (turn === this.turn) this.fail(error, () => this.list());
    }
  }

  /** @param {"groups" | "duplicates" | "doubts"} mode */
  findGroups(mode) {
    const vectors = this.vectors.chosen ?? "";
    const label = this.labels.chosen ?? "";
    const columns = {
      groups: { column: this.groups.chosen ?? "" },
      duplicates: { vectors },
      doubts: { vectors, label },
    }[mode];
    return this.work.ask(`wall.${mode}`, { ...this.request(), ...columns }, WORK_WORDS[mode]);
  }

  /** The columns that a request for tiles names. */
  shownColumns() {
    return { column: this.pictures.chosen ?? "", caption: this.captions.chosen };
  }

  takeRows() {
    const args = { ...this.ctx.place(), ...this.gridLens(), ...this.shownColumns() };
    const { numRows, criteria } = this.ctx.rows;
    const words = plural(numRows, "row");
    this.take(
      [sectionOf({ title: "", first: 0, count: numRows }, "wall.tiles", args)],
      criteria.near ? `${words} like row ${criteria.near.row}` : words,
    );
  }

  /** @param {Lnb.Json} result @param {Lnb.Place} place */
  takeSections(result, place) {
    const args = { ...place, ...WHOLE, arranged: result.arranged, ...this.shownColumns() };
    /** @type {Section[]} */
    const sections = result.sections.map((/** @type {Section} */ section) =>
      sectionOf(section, "wall.tiles", args),
    );
    this.take(sections, result.more ? `${result.words}; ${result.more} groups more` : result.words);
    this.ctx.code(result.code ?? null);
    if (this.mode !== "duplicates" || !sections.length || !this.ctx.has("stage")) return;
    const groups = sections.slice(0, MOST_RANGES);
    const copies = groups.map(({ first, count }) => [first + 1, first + count]);
    show(
      this.acts,
      this.guard.button(`Stage: keep the first of ${plural(groups.length, "group")}`, () =>
        this.stageDelete(args, copies),
      ),
    );
  }

  /** @param {Lnb.Range} range @param {number} turn */
  async compare({ a, b }, turn) {
    if (!a || samePlace(a, b)) return this.take([], "There is no earlier version to compare with.");
    this.take([], "");
    const { key = null } = this.ctx.screen().compare ?? {};
    const { column, caption } = this.shownColumns();
    const args = { ...this.ctx.place(), a, b, key, column };
    const { result } = await this.work.ask("wall.changes", args, "Comparing pictures…");
    if (turn !== this.turn) return;
    /**
     * @param {string} words @param {{count: number}} rows @param {string} type
     * @param {Lnb.Args} args
     */
    const section = (words, { count }, type, args) => {
      const title = words.replace("#", plural(count, "row"));
      return sectionOf({ title, first: 0, count }, type, args);
    };
    const { arrived, removed, changed } = result;
    const tiles = { ...WHOLE, column, caption };
    const sections = [
      section("arrived: #", arrived, "wall.tiles", { ...tiles, ...b, arranged: arrived.arranged }),
      section("removed: #", removed, "wall.tiles", { ...tiles, ...a, arranged: removed.arranged }),
      section("changed: #, before and after", changed, "wall.changed", args),
    ];
    this.take(
      sections.filter(({ count }) => count),
      result.words,
    );
  }

  /** @param {Section[]} sections @param {string} words */
  take(sections, words) {
    this.words = words;
    this.ctx.code(null);
    this.large.close();
    setText(this.status, words);
    this.wall.show(sections);
  }

  /**
   * A button that stages the label which is likely right for some rows of a section.
   * @param {Section} section @param {number} first @param {number} count
   */
  relabelButton({ edit, args }, first, count) {
    if (!edit.column || !this.ctx.has("stage")) return null;
    return this.guard.button(`Stage: relabel as ${edit.label}`, () =>
      this.stage(args, [[first, first + count]], (where) => [
        "update",
        { set: { [edit.column]: edit.value }, where },
      ]),
    );
  }

  /**
   * What can be done with a picture that is shown large.
   * @param {Section} section @param {number} row
   */
  largeActs(section, row) {
    const { args, first, count, edit } = section;
    const next = row + 1;
    return [
      this.columns.vectors.length
        ? button("More like this", () => this.alike(), { title: "rows nearest to it (n)" })
        : null,
      edit.keep && this.ctx.has("stage")
        ? this.guard.button("Stage: keep only this one", () =>
            this.stageDelete(args, [[first, row], [next, first + count]]))
        : null, // biome-ignore format: the rows before and after it
      this.relabelButton(section, row, 1),
    ];
  }

  /** @param {Lnb.Args} args @param {number[][]} ranges */
  stageDelete(args, ranges) {
    return this.stage(args, ranges, (where) => ["delete", { where }]);
  }

  /**
   * Stage an edit of some rows, and go to its card.
   * @param {Lnb.Args} args @param {number[][]} ranges
   * @param {(where: string) => [string, Lnb.Args]} edit
   */
  async stage(args, ranges, edit) {
    try {
      const rows = ranges.filter(([first, stop]) => stop > first);
      const { result } = await this.ctx.kernel.ask("wall.condition", { ...args, ranges: rows });
      const [verb, values] = edit(result.where);
      await this.ctx.kernel.ask("stage.add", { ...this.ctx.place(), verb, args: values });
      this.ctx.announce(`Staged for ${plural(result.rows, "row")}`);
      this.ctx.go("stage");
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.wall.sections.length) return;
    const { selection } = this.ctx.rows;
    const from = this.wall.current.at;
    if (this.wall.step(event.key)) {
      if (event.shiftKey && this.isGrid)
        selection.select(this.wall.current.at, { extend: true, from, walks: true });
    } else if (event.key === "Escape" && this.isGrid && selection.rows) selection.clear();
    else if (event.key === "Enter") this.large.open();
    else if (event.key === " ") {
      if (this.isGrid) selection.select(from, { add: true });
    } else if (event.key === "+" || event.key === "=") this.resize(this.wall.size + 24);
    else if (event.key === "-") this.resize(this.wall.size - 24);
    else if (event.key === "n") this.alike();
    else return;
    consume(event);
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const from = this.wall.current.at;
    if (!this.wall.pick(event)) return;
    const options = { extend: event.shiftKey, add: event.ctrlKey || event.metaKey, from };
    if (this.isGrid && (options.extend || options.add))
      this.ctx.rows.selection.select(this.wall.current.at, options);
    else this.large.open();
    this.wall.draw();
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.resize(this.wall.size * (event.deltaY < 0 ? 1.1 : 0.9));
  }

  /** @param {number} size */
  resize(size) {
    this.size.value = String(this.wall.resize(size));
  }

  /** Show the rows whose vectors are nearest to that of the current row. */
  async alike() {
    const tile = this.wall.currentRow();
    /** @param {Lnb.Json[]} columns @param {string | null} name */
    const named = (columns, name) => columns.find(({ raw }) => raw === name);
    const vectors = named(this.columns.vectors, this.vectors.chosen);
    if (!tile || !vectors) return;
    const { section, row } = tile;
    const picture = named(this.columns.pictures, this.pictures.chosen);
    // Among neighbours the distance stands before all columns.
    const column = vectors.at + (this.place ?? picture.at) - picture.at;
    try {
      const { result } = await this.ctx.kernel.ask("rows.like", { ...section.args, row, column });
      this.modes.choose("rows");
      this.paintTools();
      const { metric, at } = vectors;
      const near = { like: result.like, row: result.row, column: result.column };
      this.ctx.rows.look({
        order: null,
        within: null,
        near: { ...near, k: NEIGHBOURS, metric, at },
      });
    } catch (error) {
      this.fail(error);
    }
  }
}

/**
 * @param {{title: string, first: number, count: number, edit?: Lnb.Json}} part
 * @param {string} type @param {Lnb.Args} args @returns {Section}
 */
function sectionOf({ title, first, count, edit = {} }, type, args) {
  return { title, first, count, edit, type, args, key: JSON.stringify([type, args]) };
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountPictureWall(el, ctx) {
  return new PictureWall(el, ctx);
}

export default widget(mountPictureWall, "wall of pictures");
