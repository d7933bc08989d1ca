// The wall: the pictures of a column side by side, as the grid shows the rows, or by group, near
// duplicate, doubtful label, or change between the two handles of the timeline.

import { h, perFrame, plural, setText, show } from "../js/dom.js";
import { mediaOf } from "../js/media.js";
import { toolSelect } from "../js/tool_select.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { rowDetail } from "../rows/row_detail.js";
import { CAPTION, TITLE, wallLayout } from "./wall_layout.js";
import { wallTiles } from "./wall_tiles.js";

const SIZES = [48, 320];
const AHEAD = 200; // pixels above and below the part in sight
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

/**
 * @typedef {import("../js/tool_select.js").Named} Named
 * @typedef {keyof typeof LISTS} Mode
 * @typedef {import("./wall_tiles.js").Source & {title: string, edit: Lnb.Json}} Section
 */

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountPictureWall(el, ctx) {
  const guard = writeGuard(ctx);
  const now = {
    columns: /** @type {Lnb.Json} */ (null),
    column: "",
    caption: /** @type {string | null} */ (null),
    group: "",
    vectors: "",
    label: "",
    mode: /** @type {Mode} */ ("rows"),
    size: 120,
    sections: /** @type {Section[]} */ ([]),
    at: { section: 0, at: 0 },
    place: /** @type {number | null} */ (null), // of the column among those of the grid
    words: "",
    turn: 0,
    running: /** @type {Lnb.Asked | null} */ (null),
  };
  const shownPlace = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  let loaded = ""; // the version whose columns are known
  let listed = ""; // what the sections are of
  let sight = { width: 0, height: 0, top: 0 };
  let layout = wallLayout([], 1, 1, now.size);

  const status = h("p", { class: "lnb-wall-status", role: "status" });
  const busy = h("div", { class: "lnb-tool-busy", role: "status", hidden: true });
  const problem = h("div", { class: "lnb-wall-problem" });
  const space = h("div", { class: "lnb-wall-space" });
  const wall = h(
    "div",
    {
      class: "lnb-wall-scroll",
      role: "listbox",
      tabindex: "0",
      "aria-label": "pictures",
      "aria-multiselectable": "true",
      on: { keydown: onKey, scroll: () => scrolled(), click: onClick, wheel: onWheel },
    },
    space,
  );
  const large = h("div", { class: "lnb-wall-large", hidden: true, role: "dialog" });
  const paint = perFrame(draw);
  const tiles = wallTiles(ctx, {
    size: () => now.size,
    inSight: (key) => shownKeys.has(key),
    changed: paint,
    failed: (error) => fail(error, list),
    learned(result) {
      if (result.at !== undefined) now.place = result.at;
    },
  });
  /** @type {Set<string>} keys of the tiles in sight */
  let shownKeys = new Set();
  /** @type {Map<string, HTMLElement>} what is drawn, by key */
  let drawn = new Map();

  const pictures = toolSelect("pictures", (raw) => {
    now.column = raw ?? "";
    list();
  });
  const captions = toolSelect("caption", (raw) => {
    now.caption = raw;
    list();
  });
  const modes = toolSelect("show", (raw) => {
    now.mode = /** @type {Mode} */ (raw);
    paintTools();
    list();
  });
  const groups = toolSelect("by", (raw) => {
    now.group = raw ?? "";
    list();
  });
  const vectors = toolSelect("vectors", (raw) => {
    now.vectors = raw ?? "";
    list();
  });
  const labels = toolSelect("label", (raw) => {
    now.label = raw ?? "";
    list();
  });
  const zoom = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "range",
      min: SIZES[0],
      max: SIZES[1],
      step: 8,
      value: now.size,
      "aria-label": "size of the pictures",
      title: "size of the pictures (+ and -, or Ctrl and the wheel)",
      on: {
        input: () => resize(Number(zoom.value)),
        keydown: (event) => event.stopPropagation(),
      },
    })
  );
  const acts = h("span", { class: "lnb-wall-acts" });
  el.append(
    h(
      "div",
      { class: "lnb-wall" },
      h(
        "div",
        { class: "lnb-tools" },
        modes.element,
        groups.element,
        vectors.element,
        labels.element,
        pictures.element,
        captions.element,
        h("label", { class: "lnb-tool" }, "size", zoom),
        busy,
      ),
      problem,
      h("div", { class: "lnb-wall-place" }, wall, large),
      h("div", { class: "lnb-wall-foot" }, status, acts),
    ),
  );

  /** @param {unknown} error @param {(() => void)} [again] */
  function fail(error, again) {
    show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error), again));
  }

  /** Learn the columns of the version shown, and show its pictures. */
  async function load() {
    if (ctx.kernel.state === "static") return;
    const place = shownPlace();
    const key = JSON.stringify(place);
    if (key !== loaded) {
      try {
        const { result } = await ctx.kernel.ask("wall.columns", place);
        if (JSON.stringify(shownPlace()) !== key) return;
        loaded = key;
        takeColumns(result);
      } catch (error) {
        return fail(error, load);
      }
    }
    list();
  }

  /** @param {Lnb.Json} columns */
  function takeColumns(columns) {
    const isFirst = now.columns === null;
    now.columns = columns;
    /** @param {Named[]} names @param {string | null} raw @param {string | null} other */
    const among = (names, raw, other) =>
      names.some((column) => column.raw === raw) ? raw : (other ?? null);
    const label = guess(columns.labels);
    now.column = among(columns.pictures, now.column, columns.pictures[0]?.raw) ?? "";
    now.caption = among(columns.captions, isFirst ? label : now.caption, null);
    now.group = among(columns.groups, now.group, label ?? columns.groups[0]?.raw) ?? "";
    now.vectors = among(columns.vectors, now.vectors, columns.vectors[0]?.raw) ?? "";
    now.label = among(columns.labels, now.label, label ?? columns.labels[0]?.raw) ?? "";
    const can = {
      rows: true,
      groups: columns.groups.length > 0,
      duplicates: columns.vectors.length > 0,
      doubts: columns.vectors.length > 0 && columns.labels.length > 0,
      changes: true,
    };
    if (!can[now.mode]) now.mode = "rows";
    const offered = /** @type {Mode[]} */ (Object.keys(LISTS)).filter((mode) => can[mode]);
    modes.fill(
      offered.map((mode) => ({ raw: mode, label: LISTS[mode] })),
      null,
      now.mode,
    );
    pictures.fill(columns.pictures, null, now.column);
    captions.fill(columns.captions, "none", now.caption);
    groups.fill(columns.groups, null, now.group);
    vectors.fill(columns.vectors, null, now.vectors);
    labels.fill(columns.labels, null, now.label);
    paintTools();
  }

  /** A column that looks like a label. @param {Named[]} names */
  function guess(names) {
    const captionNames = [
      "label",
      "class",
      "category",
      "species",
      "caption",
      "kind",
      "title",
      "name",
    ];
    return names.find(({ raw }) => captionNames.includes(raw.toLowerCase()))?.raw ?? null;
  }

  function paintTools() {
    const { mode, columns } = now;
    pictures.element.hidden = columns.pictures.length < 2;
    groups.element.hidden = mode !== "groups";
    labels.element.hidden = mode !== "doubts";
    // In other lists the vectors are those of "More like this".
    vectors.element.hidden =
      columns.vectors.length < (mode === "duplicates" || mode === "doubts" ? 1 : 2);
  }

  /**
   * Ask for long work whose newest request alone counts.
   * @param {string} type @param {Lnb.Args} args @param {string} words
   */
  async function work(type, args, words) {
    now.running?.cancel();
    const bar = h("progress", { "aria-label": words });
    const running = ctx.kernel.ask(type, args, {
      progress(done, total) {
        bar.max = Math.max(1, total);
        bar.value = done;
      },
    });
    now.running = running;
    busy.hidden = false;
    const cancel = { click: () => running.cancel() };
    show(
      busy,
      bar,
      words,
      h("button", { class: "lnb-button", type: "button", on: cancel }, "Cancel"),
    );
    try {
      return (await running).result;
    } finally {
      if (now.running === running) {
        now.running = null;
        busy.hidden = true;
      }
    }
  }

  /** Show the list that is chosen: the rows of the grid at once, others when they are found. */
  async function list() {
    const { mode, column } = now;
    if (!now.columns || !wall.isConnected) return;
    now.turn += 1;
    const { turn } = now;
    const place = shownPlace();
    const view = mode === "duplicates" || mode === "doubts" ? WHOLE : gridLens();
    const range = ctx.range.get();
    const request = { ...place, ...view, filter: ctx.rows.asked.filter };
    listed = JSON.stringify([mode, request, mode === "changes" && range]);
    show(problem);
    show(acts);
    now.running?.cancel();
    if (!column) return take([], "This version has no column of pictures.");
    if (mode === "rows") return takeRows();
    try {
      if (mode === "changes") await compare(range, turn);
      else {
        const jobs = {
          groups: () => work("wall.groups", { ...request, column: now.group }, "Grouping…"),
          duplicates: () =>
            work("wall.duplicates", { ...request, vectors: now.vectors }, "Comparing all vectors…"),
          doubts: () =>
            work(
              "wall.doubts",
              { ...request, vectors: now.vectors, label: now.label },
              "Comparing labels with neighbours…",
            ),
        };
        take([], "");
        const result = await jobs[mode]();
        if (turn !== now.turn) return;
        takeSections(result, place);
      }
    } catch (error) {
      if (turn === now.turn) fail(error, list);
    }
  }

  /** Filter and order of the grid, with all columns. */
  function gridLens() {
    return { ...ctx.rows.lens, shown: null };
  }

  /** The columns that a request for tiles names. */
  const shownColumns = () => ({ column: now.column, caption: now.caption });

  function takeRows() {
    const args = { ...shownPlace(), ...gridLens(), ...shownColumns() };
    const { numRows } = ctx.rows;
    const { near } = ctx.rows.asked;
    const words = near ? `${plural(numRows, "row")} like row ${near.row}` : plural(numRows, "row");
    take([sectionOf({ title: "", first: 0, count: numRows, edit: {} }, "wall.tiles", args)], words);
  }

  /**
   * @param {{title: string, first: number, count: number, edit?: Lnb.Json}} part
   * @param {string} type @param {Lnb.Args} args @returns {Section}
   */
  function sectionOf({ title, first, count, edit = {} }, type, args) {
    return { title, first, count, edit, type, args, key: JSON.stringify([type, args]) };
  }

  /** @param {Lnb.Json} result @param {Lnb.Place} place */
  function takeSections(result, place) {
    const args = { ...place, ...WHOLE, arranged: result.arranged, ...shownColumns() };
    /** @type {Section[]} */
    const sections = result.sections.map((/** @type {Section} */ section) =>
      sectionOf(section, "wall.tiles", args),
    );
    take(sections, result.more ? `${result.words}; ${result.more} groups more` : result.words);
    ctx.code(result.code ?? null);
    if (now.mode === "duplicates" && sections.length && ctx.has("stage")) {
      const some = sections.slice(0, MOST_RANGES);
      show(
        acts,
        guard.button(`Stage: keep the first of ${plural(some.length, "group")}`, () =>
          stageDelete(
            args,
            some.map(({ first, count }) => [first + 1, first + count]),
          ),
        ),
      );
    }
  }

  /** @param {Lnb.Range} range @param {number} turn */
  async function compare({ a, b }, turn) {
    if (!a || samePlace(a, b)) return take([], "There is no earlier version to compare with.");
    take([], "");
    const { key = null } = ctx.screen().compare ?? {};
    const args = { ...shownPlace(), a, b, key, column: now.column };
    const result = await work("wall.changes", args, "Comparing pictures…");
    if (turn !== now.turn) return;
    const parts = [
      { title: "arrived", place: b, ...result.arrived },
      { title: "removed", place: a, ...result.removed },
    ].map(({ title, place, arranged, count: number }) =>
      sectionOf(
        { title: `${title}: ${plural(number, "row")}`, first: 0, count: number },
        "wall.tiles",
        {
          ...place,
          ...WHOLE,
          arranged,
          ...shownColumns(),
        },
      ),
    );
    const { count: number } = result.changed;
    const title = `changed: ${plural(number, "row")}, before and after`;
    parts.push(sectionOf({ title, first: 0, count: number }, "wall.changed", args));
    take(
      parts.filter((part) => part.count),
      result.words,
    );
  }

  /** @param {Section[]} sections @param {string} words */
  function take(sections, words) {
    now.sections = sections;
    now.at = { section: 0, at: 0 };
    now.words = words;
    ctx.code(null);
    closeLarge();
    tiles.forget();
    clear();
    wall.scrollTop = 0;
    setText(status, words);
    measure();
  }

  function clear() {
    for (const element of drawn.values()) element.remove();
    drawn = new Map();
    shownKeys = new Set();
  }

  /** Look how large the wall is, and lay it out. */
  function measure() {
    const { clientWidth, clientHeight, scrollTop } = wall;
    if (!clientWidth) return;
    sight = { width: clientWidth - 12, height: clientHeight, top: scrollTop };
    layout = wallLayout(now.sections, sight.width, sight.height, now.size);
    space.style.height = `${layout.height}px`;
    draw();
  }

  function scrolled() {
    sight.top = wall.scrollTop;
    paint();
  }

  /** Put what is in sight on the wall. */
  function draw() {
    const { sections } = now;
    const top = layout.topOf(sight.top);
    const { spots, titles } = layout.inSight(top - AHEAD, top + sight.height + AHEAD);
    /** @type {Map<string, HTMLElement>} */
    const next = new Map();
    const rows = spots.map((spot) => {
      const source = sections[spot.section];
      return { spot, source, row: source.first + spot.at };
    });
    shownKeys = new Set(rows.map(({ source, row }) => tiles.keyOf(source, row)));
    const offset = sight.top - top;
    for (const section of titles) {
      const key = `title ${section}`;
      const element = drawn.get(key) ?? titleOf(sections[section]);
      element.style.top = `${layout.tops[section] + offset}px`;
      next.set(key, element);
    }
    for (const { spot, source, row } of rows) {
      const key = `${spot.section} ${spot.at}`;
      const element = drawn.get(key) ?? tileOf(spot, source);
      element.style.left = `${spot.x}px`;
      element.style.top = `${spot.y + offset}px`;
      fillTile(element, source, row);
      const isHere = spot.section === now.at.section && spot.at === now.at.at;
      element.classList.toggle("lnb-wall-here", isHere);
      if (isHere) wall.setAttribute("aria-activedescendant", element.id);
      next.set(key, element);
    }
    for (const [key, element] of drawn) if (!next.has(key)) element.remove();
    for (const [key, element] of next) if (!drawn.has(key)) space.append(element);
    drawn = next;
    tiles.want(rows);
  }

  /** @param {import("./wall_layout.js").Spot} spot @param {Section} source */
  function tileOf(spot, source) {
    const element = h("div", {
      class: `lnb-wall-tile${source.type === "wall.changed" ? " lnb-wall-pair" : ""}`,
      role: "option",
      id: `lnb-tile-${uid}-${spot.section}-${spot.at}`,
      "aria-setsize": source.count,
      "aria-posinset": spot.at + 1,
      "data-section": spot.section,
      "data-at": spot.at,
    });
    element.style.width = `${now.size}px`;
    element.style.height = `${now.size + CAPTION}px`;
    return element;
  }

  /** @param {HTMLElement} element @param {Section} source @param {number} row */
  function fillTile(element, source, row) {
    const chosen = isGrid() && ctx.rows.selection.row(row);
    element.setAttribute("aria-selected", String(chosen));
    const tile = tiles.get(tiles.keyOf(source, row));
    if (!tile || element.hasAttribute("data-filled")) return;
    element.setAttribute("data-filled", "");
    const [about] = tile.abouts;
    const words = about.caption || `row ${row}`;
    element.setAttribute("aria-label", words);
    element.replaceChildren(
      h("div", { class: "lnb-wall-picture" }, tiles.draw(tile)),
      h("div", { class: "lnb-wall-caption", title: words }, words),
    );
  }

  /** @param {Section} section */
  function titleOf(section) {
    const { edit, args } = section;
    const act =
      edit.column && ctx.has("stage")
        ? guard.button(`Stage: relabel as ${edit.label}`, () =>
            stageRelabel(args, [[section.first, section.first + section.count]], edit),
          )
        : null;
    const element = h("div", { class: "lnb-wall-title", role: "presentation" }, section.title, act);
    element.style.height = `${TITLE}px`;
    return element;
  }

  /** Whether the tiles are the rows of the grid. */
  const isGrid = () => now.mode === "rows";

  /** @param {Lnb.Args} args @param {number[][]} ranges */
  const stageDelete = (args, ranges) => stage(args, ranges, (where) => ["delete", { where }]);

  /** @param {Lnb.Args} args @param {number[][]} ranges @param {Lnb.Json} edit */
  const stageRelabel = (args, ranges, edit) =>
    stage(args, ranges, (where) => ["update", { set: { [edit.column]: edit.value }, where }]);

  /**
   * Stage an edit of some rows, and go to its card.
   * @param {Lnb.Args} args @param {number[][]} ranges
   * @param {(where: string) => [string, Lnb.Args]} edit
   */
  async function stage(args, ranges, edit) {
    try {
      const some = ranges.filter(([first, stop]) => stop > first);
      const { result } = await ctx.kernel.ask("wall.condition", { ...args, ranges: some });
      const [verb, values] = edit(result.where);
      await ctx.kernel.ask("stage.add", { ...shownPlace(), verb, args: values });
      ctx.announce(`Staged for ${plural(result.rows, "row")}`);
      ctx.go("stage");
    } catch (error) {
      fail(error);
    }
  }

  /** The section and the row of the keyboard. */
  function current() {
    const section = now.sections[now.at.section];
    return section ? { section, row: section.first + now.at.at } : null;
  }

  /** @param {{section: number, at: number}} to */
  function moveTo(to) {
    now.at = to;
    const { y } = layout.spot(to.section, to.at);
    const top = layout.topOf(wall.scrollTop);
    if (y < top) wall.scrollTop = layout.scrollOf(y - TITLE);
    else if (y + now.size + CAPTION > top + sight.height)
      wall.scrollTop = layout.scrollOf(y + now.size + CAPTION + 8 - sight.height);
    sight.top = wall.scrollTop;
    draw();
    const currentTile = current();
    const tile = currentTile && tiles.get(tiles.keyOf(currentTile.section, currentTile.row));
    ctx.announce(tile?.abouts[0].caption || `row ${currentTile?.row}`);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !now.sections.length) return;
    const to = layout.step(now.at, event.key);
    if (to) {
      const from = now.at.at;
      moveTo(to);
      if (event.shiftKey && isGrid())
        ctx.rows.selection.select(to.at, { extend: true, from, walks: true });
    } else if (event.key === "Escape" && isGrid() && ctx.rows.selection.rows) {
      ctx.rows.selection.clear();
    } else if (event.key === "Enter") open();
    else if (event.key === " ") {
      if (isGrid()) ctx.rows.selection.select(now.at.at, { add: true });
    } else if (event.key === "+" || event.key === "=") resize(now.size + 24);
    else if (event.key === "-") resize(now.size - 24);
    else if (event.key === "n") alike();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {MouseEvent} event */
  function onClick(event) {
    /** @type {HTMLElement | null} */
    const tile = /** @type {Element} */ (event.target).closest(".lnb-wall-tile");
    if (!tile) return;
    const from = now.at.at;
    now.at = { section: Number(tile.dataset.section), at: Number(tile.dataset.at) };
    const options = { extend: event.shiftKey, add: event.ctrlKey || event.metaKey, from };
    if (isGrid() && (options.extend || options.add)) ctx.rows.selection.select(now.at.at, options);
    else open();
    draw();
  }

  /** @param {WheelEvent} event */
  function onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    resize(now.size * (event.deltaY < 0 ? 1.1 : 0.9));
  }

  /** @param {number} size */
  function resize(size) {
    const size_ = Math.round(Math.min(SIZES[1], Math.max(SIZES[0], size)));
    if (size_ === now.size) return;
    const grows = size_ > now.size;
    const { y } = layout.spot(now.at.section, now.at.at);
    const beside = y - layout.topOf(wall.scrollTop);
    now.size = size_;
    zoom.value = String(size_);
    if (grows) tiles.forget(); // small ones are not enough
    clear();
    layout = wallLayout(now.sections, sight.width, sight.height, now.size);
    space.style.height = `${layout.height}px`;
    if (beside >= 0 && beside < sight.height)
      wall.scrollTop = layout.scrollOf(layout.spot(now.at.section, now.at.at).y - beside);
    measure();
  }

  /** @type {import("../js/media.js").MediaElement | null} */
  let opened = null;

  function closeLarge() {
    opened?.close();
    opened = null;
    large.hidden = true;
    show(large);
  }
  ctx.onClose(() => opened?.close());

  /** Show the picture large, with what can be done, and its row beside it. */
  async function open() {
    const currentTile = current();
    if (!currentTile) return;
    const { section, row } = currentTile;
    const tile = tiles.get(tiles.keyOf(section, row));
    closeLarge();
    if (section.type === "wall.changed") return;
    const { at } = now;
    const arguments_ = section.args;
    const words = tile?.abouts[0].caption || `row ${row}`;
    large.hidden = false;
    large.setAttribute("aria-label", words);
    const shown = h("div", { class: "lnb-wall-shown" });
    const close = button("×", "close (Escape)", () => {
      closeLarge();
      wall.focus({ preventScroll: true });
    });
    /** @param {string} key */
    const beside = (key) => () => {
      const to = layout.step(now.at, key);
      if (to) moveTo(to);
      open();
    };
    const details = [
      [section.first, row],
      [row + 1, section.first + section.count],
    ];
    show(
      large,
      h(
        "div",
        { class: "lnb-wall-tools" },
        h("strong", {}, words),
        button("‹", "previous (left arrow)", beside("ArrowLeft")),
        button("›", "next (right arrow)", beside("ArrowRight")),
        now.columns.vectors.length
          ? button("More like this", "rows nearest to it (n)", alike)
          : null,
        section.edit.keep && ctx.has("stage")
          ? guard.button("Stage: keep only this one", () => stageDelete(arguments_, details))
          : null,
        section.edit.column && ctx.has("stage")
          ? guard.button(`Stage: relabel as ${section.edit.label}`, () =>
              stageRelabel(arguments_, [[row, row + 1]], section.edit),
            )
          : null,
        close,
      ),
      shown,
    );
    close.focus({ preventScroll: true });
    rowDetail(ctx, arguments_, row, false);
    try {
      const media = await mediaOf(ctx, { ...arguments_, row, column: now.place ?? 0 });
      if (large.hidden || now.at !== at) return media?.close();
      opened = media;
      show(shown, media ?? "This row has no picture.");
    } catch (error) {
      show(shown, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
  }
  large.addEventListener("keydown", (event) => {
    const to = ["ArrowLeft", "ArrowRight"].includes(event.key) && layout.step(now.at, event.key);
    if (to) {
      moveTo(to);
      open();
    } else if (event.key === "Escape") {
      closeLarge();
      wall.focus({ preventScroll: true });
    } else if (event.key === "n") alike();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** @param {string} label @param {string} title @param {() => void} click */
  function button(label, title, click) {
    return h("button", { class: "lnb-button", type: "button", title, on: { click } }, label);
  }

  /** Show the rows whose vectors are nearest to that of the row of the keyboard. */
  async function alike() {
    const currentTile = current();
    const vectors = now.columns.vectors.find(
      (/** @type {Named} */ vector) => vector.raw === now.vectors,
    );
    if (!currentTile || !vectors) return;
    const { args } = currentTile.section;
    const picture = now.columns.pictures.find(
      (/** @type {Named} */ pictured) => pictured.raw === now.column,
    );
    // Among neighbours the distance stands before all columns.
    const column = vectors.at + (now.place ?? picture.at) - picture.at;
    try {
      const { result } = await ctx.kernel.ask("rows.like", {
        ...args,
        row: currentTile.row,
        column,
      });
      now.mode = "rows";
      modes.choose("rows");
      paintTools();
      ctx.rows.look({
        order: null,
        within: null,
        near: {
          like: result.like,
          k: NEIGHBOURS,
          metric: vectors.metric,
          row: result.row,
          column: result.column,
          at: vectors.at,
        },
      });
    } catch (error) {
      fail(error);
    }
  }

  const watch = typeof ResizeObserver === "function" ? new ResizeObserver(perFrame(resized)) : null;
  watch?.observe(wall);
  ctx.onClose(() => watch?.disconnect());
  function resized() {
    if (wall.clientWidth - 12 === sight.width && wall.clientHeight === sight.height) return;
    clear();
    measure();
  }

  ctx.describe("pictures", () => {
    const firstSection = now.sections[0];
    if (firstSection?.type !== "wall.tiles") return {};
    const top = layout.topOf(sight.top);
    const [spot] = layout.inSight(top, top + sight.height).spots;
    const section = now.sections[spot?.section ?? 0];
    const { branch, version, ...lens } = section.args;
    const row = section.first + (spot?.at ?? 0);
    return { ...lens, place: { branch, version }, row, words: now.words };
  });
  ctx.onClose(
    ctx.rows.on({
      shown() {
        if (isGrid() || now.mode === "groups") list();
      },
      selected: paint,
      failed: (error) => fail(error),
    }),
  );
  ctx.onScreen(
    (_screen, patched) => {
      if (!patched) load();
    },
    ["card"],
  );
  ctx.onClose(
    ctx.range.on((_range, { dragging }) => {
      if (!dragging && now.mode === "changes") list();
    }),
  );
  if (ctx.kernel.state === "static")
    setText(
      status,
      `${placeLabel(shownPlace())}: the pictures need a kernel: run the cell to see them.`,
    );
  return {
    shown() {
      const { branch, version } = shownPlace();
      const view = now.mode === "duplicates" || now.mode === "doubts" ? WHOLE : gridLens();
      const request = { branch, version, ...view, filter: ctx.rows.asked.filter };
      if (listed !== JSON.stringify([now.mode, request, now.mode === "changes" && ctx.range.get()]))
        load();
      else measure();
    },
  };
}

/** Tells the tiles of several walls in a page apart. */
const uid = Math.floor(Math.random() * 1e9);

export default widget(mountPictureWall, "wall of pictures");
