// The tab of changes: A and B, numbers by level at once, and under them the level that is open.

import { atOnce, button, h, show } from "../js/dom.js";
import { placeLabel, samePlace } from "../js/version_range.js";
import { widget } from "../js/view.js";
import { refPicker } from "../refs/ref_picker.js";
import { keyPicker } from "../rows/key_picker.js";
import { changeChips, exactly } from "./change_chips.js";
import { ChangeGrid } from "./change_grid.js";
import { dragCounts } from "./drag_counts.js";
import { driftCards } from "./drift_cards.js";

/** @type {Record<string, [sign: string, look: string]>} */
const HONESTY = { id: ["✓", "sure"], key: ["✓", "sure"], address: ["≈", "weak"] };
/** @typedef {import("./change_chips.js").Chip} Chip */

let instances = 0;

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountChanges(el, ctx) {
  const uid = `lnb-changes${(instances += 1)}`;
  const ends = h("span", { class: "lnb-ch-ends" });
  const fork = h("span", { class: "lnb-ch-fork" });
  const swap = button("⇄", swapEnds, { title: "swap A and B", "aria-label": "swap A and B" });
  const other = refPicker(
    { ...ctx, travel: (to) => compareWith(/** @type {{ref: string}} */ (to)) },
    { hint: "compare with…", label: "compare with a version, tag or branch" },
  );
  const badge = h("span", { class: "lnb-ch-badge" });
  const reason = h("p", { class: "lnb-ch-reason", hidden: true });
  const picker = keyPicker(ctx, { choose: setKey, of: () => ctx.range.get().b });
  const chips = changeChips(choose, `${uid}-level`);
  const place = h("div", { class: "lnb-ch-place", role: "tabpanel", id: `${uid}-level` });
  const note = h("div", { class: "lnb-ch-said" });
  const head = h(
    "div",
    { class: "lnb-ch-head" },
    h(
      "div",
      { class: "lnb-ch-line" },
      ends,
      swap,
      other,
      fork,
      h("span", { class: "lnb-ch-by" }, badge, picker.toggle),
    ),
    reason,
    picker.element,
  );
  el.append(h("div", { class: "lnb-changes" }, head, chips.element, note, place));

  const compared = ctx.screen().compare ?? null; // what a view by itself was asked to compare
  if (compared?.a) ctx.range.set({ a: compared.a }, {});
  /**
   * @typedef {{element: HTMLElement, begin: (all?: boolean) => void, stop: () => void,
   *   lines?: Lnb.CodeLines}} LevelView
   * @type {{key: string[] | null, counts: Lnb.Json, ready: {key: string, counts: Lnb.Json} | null,
   *   shown: string, level: string | null, chosen: string | null, views: Map<string, LevelView>,
   *   begun: Set<string>, visible: boolean, exact: Lnb.Json, dragged: string | null}}
   */
  const state = {
    key: compared?.key ?? null,
    counts: null,
    ready: null,
    shown: "",
    level: null,
    chosen: null,
    views: new Map(),
    begun: new Set(),
    visible: true,
    exact: null,
    dragged: null,
  };
  ctx.describe("changes", () => ({ ...pair(), level: state.level }));
  const request = ctx.kernel.line();
  const numbers = dragCounts(ctx, (counts) => paintCounts(counts));
  ctx.onClose(ctx.range.on((range, { dragging }) => (dragging ? scrub(range) : load())));

  ctx.onClose(
    ctx.range.onReach((end) => {
      if (state.visible && state.counts && ctx.range.get().a && ctx.kernel.state === "live")
        numbers.soon(pair(), end);
    }),
  );

  /** @returns {Lnb.Pair} where A is known */
  const pair = () => {
    const { a, b } = ctx.range.get();
    return { a: /** @type {Lnb.Place} */ (a), b, key: state.key };
  };

  /**
   * While a handle is dragged the numbers follow; the level waits until it is dropped.
   * @param {Lnb.Range} range
   */
  function scrub({ a, b }) {
    if (!state.visible || !a || ctx.kernel.state === "static") return;
    paintEnds(a, b);
    place.classList.add("lnb-ch-stale");
    state.dragged = JSON.stringify({ a, b, key: state.key });
    numbers.at({ a, b, key: state.key });
  }

  function load() {
    numbers.stop();
    state.dragged = null;
    const range = pair();
    const key = JSON.stringify(range);
    if (!state.visible || key === state.shown) return place.classList.remove("lnb-ch-stale");
    state.shown = key;
    paintEnds(range.a, range.b);
    if (ctx.kernel.state === "static")
      return say("Changes are read by the kernel. Run the cell to see them.");
    if (!range.a)
      return say(
        `${placeLabel(range.b)} is the first version: there is nothing before it to compare with.`,
        "Go to a later version, or drag handle A on the timeline to another branch.",
      );
    if (samePlace(range.a, range.b))
      return say(
        `A and B are the same version, ${placeLabel(range.b)}.`,
        "Drag one of the handles on the timeline, or press [ and ] to move A.",
      );
    /** @param {{result: Lnb.Json}} answer */
    const take = ({ result }) => {
      if (key !== state.shown) return;
      state.exact = null;
      state.begun.clear();
      for (const view of state.views.values()) view.stop();
      paintCounts(result);
      calm();
      if (result.empty)
        say(
          `No difference between ${result.a} and ${result.b}: ` +
            "the same rows, columns, files and settings.",
          "",
          true,
        );
      else open(state.chosen ?? firstLevel(result));
    };
    const { ready } = state;
    state.ready = null; // numbers that came with a typed ref are for this once
    if (ready?.key === key) return take({ result: ready.counts });
    request("changes.counts", range, take, (error) => {
      state.counts = null;
      say(""); // what is shown is not what is asked for
      show(note, ctx.problem(error));
    });
    return undefined;
  }

  /** The first level in which something differs. */
  const firstLevel = (/** @type {{chips: Chip[]}} */ { chips: models }) =>
    models.find(
      (chip) =>
        chip.id !== "transactions" && (chip.added || chip.removed || chip.changed || chip.note),
    )?.id ?? "transactions";

  function calm() {
    place.classList.remove("lnb-ch-stale");
    place.hidden = false;
    show(note);
  }

  /**
   * A state in which there are no levels to look at; `some` leaves the chips.
   * @param {string} words
   */
  function say(words, hint = "", some = false) {
    calm();
    place.hidden = true;
    head.classList.toggle("lnb-ch-quiet", !some);
    chips.element.hidden = !some;
    if (some) chips.choose(null);
    if (words)
      show(
        note,
        h("p", { class: "lnb-empty" }, h("b", {}, words), hint ? h("span", {}, hint) : null),
      );
    ctx.code(null);
  }

  /** @param {Lnb.Place | null} a @param {Lnb.Place} b */
  function paintEnds(a, b) {
    show(ends, end("A", a), h("i", { "aria-hidden": "true" }, "→"), end("B", b));
    swap.disabled = !a || samePlace(a, b);
  }

  /** @param {string} name @param {Lnb.Place | null} placeWords */
  function end(name, placeWords) {
    return h(
      "span",
      { class: `lnb-ch-end lnb-ch-end-${name.toLowerCase()}` },
      h("b", { "aria-hidden": "true" }, name),
      h("span", {}, placeWords ? placeLabel(placeWords) : "–"),
    );
  }

  /**
   * What was counted row by row is of the versions shown, not of those a handle is dragged over.
   */
  function paintChips() {
    const { counts, exact, dragged, shown } = state;
    const models =
      exact && (!dragged || dragged === shown) ? exactly(counts.chips, exact) : counts.chips;
    chips.paint(models);
    const { a, b } = pair();
    const rows = models.find((/** @type {Chip} */ chip) => chip.id === "rows");
    if (rows && placeLabel(a) === counts.a && placeLabel(b) === counts.b)
      ctx.range.compare(a, b, rows);
  }

  /** @param {Lnb.Json} counts */
  function paintCounts(counts) {
    state.counts = counts;
    head.classList.remove("lnb-ch-quiet");
    chips.element.hidden = false;
    paintChips();
    const [sign, look] = HONESTY[counts.identity.kind];
    badge.className = `lnb-ch-badge lnb-ch-${look}`;
    badge.title = counts.identity.reason;
    show(badge, h("i", { "aria-hidden": "true" }, sign), ` by ${counts.identity.label}`);
    reason.textContent = counts.identity.reason;
    reason.hidden =
      counts.identity.kind !== "address" ||
      !counts.chips.some(
        (/** @type {Chip} */ chip) => chip.id === "rows" && (chip.bound || chip.note),
      );
    paintFork(counts.fork);
  }

  /** Two sides of a fork: where they parted, and what happened on each. @param {Lnb.Json} parted */
  function paintFork(parted) {
    fork.hidden = !parted;
    if (!parted) return;
    if (parted.version === null) return show(fork, "no common history");
    const since = button(
      "since the fork",
      () => ctx.range.set({ a: { branch: parted.branch, version: parted.version } }),
      { class: "lnb-link", title: "Compare B with the merge base" },
    );
    show(
      fork,
      h("i", { "aria-hidden": "true" }, "↳"),
      ` parted at ${parted.label}: A +${parted.a_side}, B +${parted.b_side} · `,
      since,
    );
  }

  /** A typed ref becomes A; the numbers come with what it names. @param {{ref: string}} to */
  async function compareWith({ ref }) {
    try {
      const { b, key } = pair();
      const {
        result: { place: a, counts },
      } = await ctx.kernel.ask("changes.place", { ref, b, key });
      state.ready = counts && { key: JSON.stringify({ a, b, key }), counts };
      atOnce(() => ctx.range.set({ a }));
    } catch (error) {
      state.shown = "";
      say("");
      show(note, ctx.problem(error));
    }
  }

  function swapEnds() {
    const { a, b } = ctx.range.get();
    if (a) ctx.range.set({ a: b, b: a });
  }

  /** @param {string[] | null} key */
  function setKey(key) {
    state.key = key;
    state.shown = "";
    load();
  }

  /** A person wants this level, also of other versions. @param {string} level */
  function choose(level) {
    state.chosen = level;
    open(level);
  }

  /** @param {string} level */
  function open(level) {
    if (!state.counts) return;
    state.level = level;
    calm();
    chips.choose(level);
    const view = state.views.get(level) ?? viewOf(level);
    for (const [name, view] of state.views) view.element.hidden = name !== level;
    place.setAttribute("aria-labelledby", chips.idOf(level));
    if (state.begun.has(level)) return ctx.code(view.lines ?? null);
    state.begun.add(level);
    return view.begin();
  }

  /** @param {string} level @returns {LevelView} */
  function viewOf(level) {
    const view =
      level === "drift"
        ? driftCards(ctx, { pair, names: () => [state.counts.a, state.counts.b], code: setCode })
        : new ChangeGrid(ctx, {
            level,
            pair,
            counts: () => state.counts,
            rowsCounted,
            code: setCode,
          });
    state.views.set(level, view);
    place.append(view.element);
    return view;
  }

  /** The rows were counted: the chip tells exact numbers. @param {Lnb.Json} result */
  function rowsCounted(result) {
    if (!result.is_finished) return;
    state.exact = result;
    paintChips();
  }

  /** @param {string} python @param {string} magic */
  function setCode(python, magic) {
    const { code } = state.counts;
    const lines = { python: `${code.python}${python}`, magic: `${code.magic}${magic}` };
    const view = state.views.get(state.level ?? "");
    if (view) view.lines = lines;
    ctx.code(lines);
  }

  ctx.onScreen(() => load(), ["card"]);
  let before = ctx.kernel.state;
  ctx.onClose(
    ctx.kernel.onState((now) => {
      if (now === "connecting") return;
      // A kernel that was not away answers what was requested before.
      const isAnswering = now === "live" && before !== "static";
      before = now;
      if (!state.counts && !isAnswering) state.shown = "";
      load();
    }),
  );
  return {
    /** Come from elsewhere: to a range of versions. */
    /** @param {{a?: Lnb.Place | null, b?: Lnb.Place, level?: string}} target */
    open({ a, b, level }) {
      if (level) state.chosen = level;
      if (a !== undefined || b) ctx.range.set({ a, b });
    },
    shown() {
      state.visible = true;
      load();
    },
    hidden() {
      state.visible = false;
    },
  };
}

export default widget(mountChanges, "what changed");
