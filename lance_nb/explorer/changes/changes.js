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

/**
 * @typedef {{element: HTMLElement, begin: (all?: boolean) => void, stop: () => void,
 *   lines?: Lnb.CodeLines}} LevelView
 */

let instances = 0;

class Changes {
  uid = `lnb-changes${(instances += 1)}`;
  /** @type {Lnb.Json} */
  counts = null;
  /** @type {{key: string, counts: Lnb.Json} | null} numbers that came with a typed ref */
  ready = null;
  shownKey = ""; // of the range that is shown
  /** @type {string | null} of the range over which a handle is dragged */
  draggedKey = null;
  /** @type {string | null} */
  level = null;
  /** @type {string | null} the level that a person wants to see */
  chosen = null;
  /** @type {Map<string, LevelView>} */
  views = new Map();
  /** @type {Set<string>} */
  begun = new Set();
  isVisible = true;
  /** @type {Lnb.Json} rows that were counted one by one */
  exact = null;
  ends = h("span.lnb-ch-ends");
  fork = h("span.lnb-ch-fork");
  swap = button("⇄", () => this.swapEnds(), {
    title: "swap A and B",
    "aria-label": "swap A and B",
  });
  badge = h("span.lnb-ch-badge");
  reason = h("p.lnb-ch-reason", { hidden: true });
  chips = changeChips((level) => this.choose(level), `${this.uid}-level`);
  place = h("div.lnb-ch-place", { role: "tabpanel", id: `${this.uid}-level` });
  note = h("div.lnb-ch-said");

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.request = ctx.kernel.line();
    this.numbers = dragCounts(ctx, (counts) => this.paintCounts(counts));
    const compared = ctx.screen().compare ?? null; // what a view by itself was asked to compare
    /** @type {string[] | null} */
    this.key = compared?.key ?? null;
    if (compared?.a) ctx.range.set({ a: compared.a }, {});
    const travel = (/** @type {object} */ target) =>
      this.compareWith(/** @type {{ref: string}} */ (target));
    const other = refPicker(
      { ...ctx, travel },
      { hint: "compare with…", label: "compare with a version, tag or branch" },
    );
    const picker = keyPicker(ctx, {
      choose: (key) => this.setKey(key),
      of: () => ctx.range.get().b,
    });
    this.head = h(
      "div.lnb-ch-head",
      h(
        "div.lnb-ch-line",
        this.ends,
        this.swap,
        other,
        this.fork,
        h("span.lnb-ch-by", this.badge, picker.toggle),
      ),
      this.reason,
      picker.element,
    );
    el.append(h("div.lnb-changes", this.head, this.chips.element, this.note, this.place));
    ctx.describe("changes", () => ({ ...this.pair(), level: this.level }));
    this.follow();
  }

  /** Load anew when the range, the screen or the kernel is another. */
  follow() {
    const { kernel, range } = this.ctx;
    this.ctx.onClose(range.on((ends, { dragging }) => (dragging ? this.scrub(ends) : this.load())));
    this.ctx.onClose(
      range.onReach((end) => {
        if (this.isVisible && this.counts && range.get().a && kernel.state === "live")
          this.numbers.soon(this.pair(), end);
      }),
    );
    this.ctx.onScreen(() => this.load(), ["card"]);
    let before = kernel.state;
    this.ctx.onClose(
      kernel.onState((state) => {
        if (state === "connecting") return;
        // A kernel that was not away answers what was requested before.
        const isAnswering = state === "live" && before !== "static";
        before = state;
        if (!this.counts && !isAnswering) this.shownKey = "";
        this.load();
      }),
    );
  }

  /** Come from elsewhere: to a range of versions.
   * @param {{a?: Lnb.Place | null, b?: Lnb.Place, level?: string}} target */
  open({ a, b, level }) {
    if (level) this.chosen = level;
    if (a !== undefined || b) this.ctx.range.set({ a, b });
  }

  shown() {
    this.isVisible = true;
    this.load();
  }

  hidden() {
    this.isVisible = false;
  }

  /** @returns {Lnb.Pair} where A is known */
  pair() {
    const { a, b } = this.ctx.range.get();
    return { a: /** @type {Lnb.Place} */ (a), b, key: this.key };
  }

  /**
   * While a handle is dragged the numbers follow; the level waits until it is dropped.
   * @param {Lnb.Range} range
   */
  scrub({ a, b }) {
    if (!this.isVisible || !a || this.ctx.kernel.state === "static") return;
    const pair = { a, b, key: this.key };
    this.paintEnds(a, b);
    this.place.classList.add("lnb-ch-stale");
    this.draggedKey = JSON.stringify(pair);
    this.numbers.at(pair);
  }

  load() {
    this.numbers.stop();
    this.draggedKey = null;
    const pair = this.pair();
    const { a, b } = pair;
    const key = JSON.stringify(pair);
    if (!this.isVisible || key === this.shownKey)
      return this.place.classList.remove("lnb-ch-stale");
    this.shownKey = key;
    this.paintEnds(a, b);
    if (this.ctx.kernel.state === "static")
      return this.say("Changes are read by the kernel. Run the cell to see them.");
    if (!a)
      return this.say(
        `${placeLabel(b)} is the first version: there is nothing before it to compare with.`,
        "Go to a later version, or drag handle A on the timeline to another branch.",
      );
    if (samePlace(a, b))
      return this.say(
        `A and B are the same version, ${placeLabel(b)}.`,
        "Drag one of the handles on the timeline, or press [ and ] to move A.",
      );
    const { ready } = this;
    this.ready = null; // its numbers are for this once
    if (ready?.key === key) return this.take(ready.counts);
    /** @type {Lnb.Done} */
    const done = ({ result }) => key === this.shownKey && this.take(result);
    this.request("changes.counts", pair, done, (error) => {
      this.counts = null;
      this.showProblem(error); // what is shown is not what is asked for
    });
  }

  /** Show the numbers of other versions, and what differs. @param {Lnb.Json} counts */
  take(counts) {
    this.exact = null;
    this.begun.clear();
    for (const view of this.views.values()) view.stop();
    this.paintCounts(counts);
    this.calm();
    const { a, b, empty, chips } = counts;
    if (empty)
      this.say(
        `No difference between ${a} and ${b}: the same rows, columns, files and settings.`,
        "",
        true,
      );
    else this.openLevel(this.chosen ?? firstLevel(chips));
  }

  /** @param {unknown} error */
  showProblem(error) {
    this.say("");
    show(this.note, this.ctx.problem(error));
  }

  calm() {
    this.place.classList.remove("lnb-ch-stale");
    this.place.hidden = false;
    show(this.note);
  }

  /**
   * A state in which there are no levels to look at; `some` leaves the chips.
   * @param {string} words
   */
  say(words, hint = "", some = false) {
    this.calm();
    this.place.hidden = true;
    this.head.classList.toggle("lnb-ch-quiet", !some);
    this.chips.element.hidden = !some;
    if (some) this.chips.choose(null);
    const advice = hint ? h("span", hint) : null;
    if (words) show(this.note, h("p.lnb-empty", h("b", words), advice));
    this.ctx.code(null);
  }

  /** @param {Lnb.Place | null} a @param {Lnb.Place} b */
  paintEnds(a, b) {
    show(this.ends, endLabel("A", a), h("i", { "aria-hidden": "true" }, "→"), endLabel("B", b));
    this.swap.disabled = !a || samePlace(a, b);
  }

  /**
   * What was counted row by row is of the versions shown, not of those a handle is dragged over.
   */
  paintChips() {
    const { counts, exact, draggedKey } = this;
    const isExact = exact && (!draggedKey || draggedKey === this.shownKey);
    const models = isExact ? exactly(counts.chips, exact) : counts.chips;
    this.chips.paint(models);
    const { a, b } = this.pair();
    const rows = models.find((/** @type {Chip} */ chip) => chip.id === "rows");
    if (rows && placeLabel(a) === counts.a && placeLabel(b) === counts.b)
      this.ctx.range.compare(a, b, rows);
  }

  /** @param {Lnb.Json} counts */
  paintCounts(counts) {
    this.counts = counts;
    this.head.classList.remove("lnb-ch-quiet");
    this.chips.element.hidden = false;
    this.paintChips();
    const { kind, label, reason } = counts.identity;
    const [sign, look] = HONESTY[kind];
    this.badge.className = `lnb-ch-badge lnb-ch-${look}`;
    this.badge.title = this.reason.textContent = reason;
    show(this.badge, h("i", { "aria-hidden": "true" }, sign), ` by ${label}`);
    const rows = counts.chips.find((/** @type {Chip} */ chip) => chip.id === "rows");
    this.reason.hidden = kind !== "address" || !(rows?.bound || rows?.note);
    this.paintFork(counts.fork);
  }

  /** Two sides of a fork: where they parted, and what happened on each. @param {Lnb.Json} parted */
  paintFork(parted) {
    this.fork.hidden = !parted;
    if (!parted) return;
    if (parted.version === null) return show(this.fork, "no common history");
    const { branch, version, label, a_side: numA, b_side: numB } = parted;
    const compare = () => this.ctx.range.set({ a: { branch, version } });
    const look = { class: "lnb-link", title: "Compare B with the merge base" };
    show(
      this.fork,
      h("i", { "aria-hidden": "true" }, "↳"),
      ` parted at ${label}: A +${numA}, B +${numB} · `,
      button("since the fork", compare, look),
    );
  }

  /** A typed ref becomes A; the numbers come with what it names. @param {{ref: string}} to */
  async compareWith({ ref }) {
    try {
      const { b, key } = this.pair();
      const { result } = await this.ctx.kernel.ask("changes.place", { ref, b, key });
      const { place: a, counts } = result;
      this.ready = counts && { key: JSON.stringify({ a, b, key }), counts };
      atOnce(() => this.ctx.range.set({ a }));
    } catch (error) {
      this.shownKey = "";
      this.showProblem(error);
    }
  }

  swapEnds() {
    const { a, b } = this.ctx.range.get();
    if (a) this.ctx.range.set({ a: b, b: a });
  }

  /** @param {string[] | null} key */
  setKey(key) {
    this.key = key;
    this.shownKey = "";
    this.load();
  }

  /** A person wants this level, also of other versions. @param {string} level */
  choose(level) {
    this.chosen = level;
    this.openLevel(level);
  }

  /** @param {string} level */
  openLevel(level) {
    if (!this.counts) return;
    this.level = level;
    this.calm();
    this.chips.choose(level);
    const view = this.views.get(level) ?? this.viewOf(level);
    for (const [name, { element }] of this.views) element.hidden = name !== level;
    this.place.setAttribute("aria-labelledby", this.chips.idOf(level));
    if (this.begun.has(level)) return this.ctx.code(view.lines ?? null);
    this.begun.add(level);
    view.begin();
  }

  /** @param {string} level @returns {LevelView} */
  viewOf(level) {
    const link = {
      pair: () => this.pair(),
      /** @param {string} python @param {string} magic */
      code: (python, magic) => this.setCode(python, magic),
    };
    const view =
      level === "drift"
        ? driftCards(this.ctx, { ...link, names: () => [this.counts.a, this.counts.b] })
        : new ChangeGrid(this.ctx, {
            ...link,
            level,
            counts: () => this.counts,
            rowsCounted: (result) => this.rowsCounted(result),
          });
    this.views.set(level, view);
    this.place.append(view.element);
    return view;
  }

  /** The rows were counted: the chip tells exact numbers. @param {Lnb.Json} result */
  rowsCounted(result) {
    if (!result.is_finished) return;
    this.exact = result;
    this.paintChips();
  }

  /** @param {string} python @param {string} magic */
  setCode(python, magic) {
    const { code } = this.counts;
    const lines = { python: `${code.python}${python}`, magic: `${code.magic}${magic}` };
    const view = this.views.get(this.level ?? "");
    if (view) view.lines = lines;
    this.ctx.code(lines);
  }
}

/** The first level in which something differs. @param {Chip[]} chips */
function firstLevel(chips) {
  const level = chips.find(
    ({ id, added, removed, changed, note }) =>
      id !== "transactions" && (added || removed || changed || note),
  );
  return level?.id ?? "transactions";
}

/** @param {string} name @param {Lnb.Place | null} place */
function endLabel(name, place) {
  return h(
    "span",
    { class: `lnb-ch-end lnb-ch-end-${name.toLowerCase()}` },
    h("b", { "aria-hidden": "true" }, name),
    h("span", place ? placeLabel(place) : "–"),
  );
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountChanges(el, ctx) {
  return new Changes(el, ctx);
}

export default widget(mountChanges, "what changed");
