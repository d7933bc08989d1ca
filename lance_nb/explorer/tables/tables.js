// The tables of a database as cards: found by name, sorted, described when they come into sight.
//
// Only the cards in sight, and a few rows of cards beside them, are in the page. Tables are
// described in small batches, those in sight first; what is scrolled away is not asked for, and a
// batch of which nothing is in sight any more is cancelled.

import { codeFooter } from "../js/code_footer.js";
import {
  ageOf,
  button,
  bytes,
  consume,
  count,
  h,
  perFrame,
  plural,
  setText,
  show,
  svg,
} from "../js/dom.js";
import { lookOfOperation, titleOfOperation } from "../js/operations.js";
import { widget } from "../js/view.js";

const CARD = { width: 260, height: 118, gap: 10 }; // pixels, as in tables.css
const BESIDE = 2; // rows of cards above and below what is in sight
const BATCH = 6;
const BATCHES = 2; // at the same time
const BARS = { count: 24, slot: 9, height: 24 };
const LABELS = 1000; // names in one answer, see tables/widget.py
const ORDERS = [
  ["name", "Name, A to Z"],
  ["name-down", "Name, Z to A"],
  ["changed", "Last change"],
  ["rows", "Rows"],
  ["size", "Size"],
  ["versions", "Versions"],
];
/** @type {Record<string, string>} the value of a card by which it is sorted */
const VALUES = { changed: "time_ms", rows: "rows", size: "bytes", versions: "versions" };
const STATES = /** @type {Record<string, [sign: string, words: string]>} */ ({
  ok: ["✓", "manifest ok"],
  advice: ["!", "advice"],
  error: ["✕", "cannot be opened"],
});

/**
 * What a view of the tables keeps while one of them is open.
 * @typedef {{filter: string, order: string, top: number, active: number | null,
 *   cards: Map<number, Lnb.Json>, listing: number, focus: boolean}} TablesMemory
 * @returns {TablesMemory}
 */
export function tablesMemory() {
  const start = { filter: "", order: "name", top: 0, active: null, listing: 0, focus: false };
  return { ...start, cards: new Map() };
}

const ROW = CARD.height + CARD.gap;

class Tables {
  /** @type {Lnb.Json} */
  tables = null;
  /** @type {string[]} */
  labels = [];
  /** @type {number[]} places of the tables that pass the filter, sorted */
  places = [];
  columns = 1;
  /** @type {Map<number, HTMLElement>} by place, those in the page */
  inPage = new Map();
  /** @type {Set<{tables: number[], request: Lnb.Asked}>} */
  running = new Set();
  /** @type {Set<number>} tables that are asked for one by one, because a batch failed */
  alone = new Set();
  /** @type {Lnb.CodeLines | null} */
  lines = null;
  title = h("h2.lnb-name");
  status = h("span.lnb-tb-status", { role: "status" });
  filter = h("input.lnb-input.lnb-tb-filter", {
    type: "search",
    placeholder: "find a table",
    "aria-label": "find a table by its name",
    on: { input: () => this.onFilter(), keydown: (event) => this.onFilterKey(event) },
  });
  refresh = button("Refresh", () => this.onRefresh(), { title: "list the tables again" });
  problem = h("div.lnb-tb-problem", { role: "alert" });
  list = h("div.lnb-tb-cards", { role: "list", "aria-label": "tables" });
  room = h("div.lnb-tb-room", this.list);
  scroll = h(
    "div.lnb-tb-scroll",
    {
      on: {
        scroll: perFrame(() => this.paint()),
        keydown: (event) => this.onKey(event),
        focusin: (event) => this.onFocus(event),
      },
    },
    this.room,
  );
  none = h("p.lnb-tb-none", { hidden: true });
  note = h("p.lnb-tb-note");

  /** @param {HTMLElement} el @param {Lnb.Context} ctx @param {TablesMemory} memory */
  constructor(el, ctx, memory) {
    this.ctx = ctx;
    this.memory = memory;
    this.filter.value = memory.filter;
    this.order = h(
      "select.lnb-input",
      { "aria-label": "sort the tables", on: { change: () => this.onOrder() } },
      ORDERS.map(([value, label]) =>
        h("option", { value, selected: value === memory.order }, label),
      ),
    );
    const code = h("div");
    el.append(
      h(
        "div.lnb-card.lnb-tb",
        h(
          "header.lnb-tb-head",
          h("div.lnb-title", this.title, this.status),
          h("div.lnb-tb-tools", this.filter, this.order, this.refresh),
        ),
        this.problem,
        this.none,
        this.scroll,
        this.note,
        code,
      ),
    );
    this.paintCode = codeFooter(code, ctx, () => this.lines);
    ctx.onScreen((screen) => screen.tables?.labels && this.take(screen.tables));
    ctx.describe("tables", () => {
      const { filter, order } = memory;
      return { filter, order, first: Math.floor(this.scroll.scrollTop / ROW) * this.columns };
    });
    const observer = new ResizeObserver(perFrame(() => this.layOut()));
    observer.observe(this.scroll);
    ctx.onClose(() => observer.disconnect());
    ctx.onClose(ctx.kernel.onState((state) => state === "live" && this.paint()));
    this.scroll.scrollTop = memory.top;
    this.paint();
    if (memory.focus && memory.active !== null) this.buttonOf(memory.active)?.focus();
    memory.focus = false;
  }

  /** @param {Lnb.Json} answer a listing */
  take(answer) {
    const { memory } = this;
    this.tables = answer;
    this.labels = answer.labels;
    if (memory.listing !== answer.listing) memory.cards.clear();
    memory.listing = answer.listing;
    this.keepCards(answer.cards);
    setText(this.title, answer.name);
    this.title.title = answer.uri;
    setText(this.note, answer.looked_at);
    this.arrange();
    this.loadLabels();
  }

  /** @param {Record<string, Lnb.Json>} cards by place of the table */
  keepCards(cards) {
    for (const [index, card] of Object.entries(cards)) this.memory.cards.set(Number(index), card);
  }

  async loadLabels() {
    const { listing } = this.tables;
    while (this.labels.length < this.tables.num_tables && this.ctx.kernel.state !== "static") {
      const request = this.ctx.kernel.ask("tables.list", { listing, first: this.labels.length });
      const { result } = await request.catch(() => ({ result: { labels: [] } }));
      if (listing !== this.tables.listing || !result.labels.length) return;
      this.labels = [...this.labels, ...result.labels];
      this.arrange();
      if (result.labels.length < LABELS) return;
    }
  }

  /** Filter and sort; what is not described comes last. */
  arrange() {
    const { memory, labels } = this;
    const query = memory.filter.trim().toLowerCase();
    const places = [...labels.keys()].filter((index) =>
      labels[index].toLowerCase().includes(query),
    );
    const value = VALUES[memory.order];
    const rank = (/** @type {number} */ index) => memory.cards.get(index)?.[value] ?? -1;
    if (memory.order === "name-down") places.reverse();
    else if (value) places.sort((a, b) => rank(b) - rank(a) || a - b);
    if (memory.active === null || !places.includes(memory.active))
      memory.active = places[0] ?? null;
    this.places = places;
    this.none.hidden = places.length > 0;
    const reason = labels.length ? "No table matches the filter." : "There are no tables here.";
    setText(this.none, reason);
    this.scroll.hidden = !places.length;
    this.layOut();
  }

  layOut() {
    const wide = this.scroll.clientWidth || CARD.width;
    this.columns = Math.max(1, Math.floor((wide - CARD.gap) / (CARD.width + CARD.gap)));
    const rows = Math.ceil(this.places.length / this.columns);
    const height = rows * ROW + CARD.gap;
    this.room.style.setProperty("height", `${height}px`);
    this.scroll.style.setProperty("height", `min(var(--lnb-height), ${height}px)`);
    this.list.style.setProperty("grid-template-columns", `repeat(${this.columns}, minmax(0, 1fr))`);
    this.paint();
  }

  heightInSight() {
    return this.scroll.clientHeight || this.ctx.height;
  }

  /** The places in sight, with `beside` rows of cards on each side. @param {number} beside */
  inSight(beside) {
    const top = this.scroll.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - beside);
    const stop = Math.ceil((top + this.heightInSight()) / ROW) + beside;
    return { first, places: this.places.slice(first * this.columns, stop * this.columns) };
  }

  paint() {
    if (!this.tables) return;
    const { memory, list } = this;
    memory.top = this.scroll.scrollTop;
    const { first, places } = this.inSight(BESIDE);
    const hasFocus = list.contains(document.activeElement);
    if (memory.active !== null && !places.includes(memory.active) && !hasFocus)
      memory.active = this.inSight(0).places[0] ?? memory.active;
    for (const index of [...this.inPage.keys()])
      if (!places.includes(index)) this.inPage.delete(index);
    const items = places.map((index, position) =>
      this.itemOf(index, first * this.columns + position),
    );
    const isSame =
      list.children.length <= items.length &&
      items.every((item, position) => list.children[position] === item);
    if (!isSame) show(list, items);
    list.style.setProperty("top", `${first * ROW + CARD.gap}px`);
    const focused = hasFocus && memory.active !== null ? this.buttonOf(memory.active) : null;
    if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
    this.paintStatus();
    this.request();
  }

  paintStatus() {
    const { places, labels, memory } = this;
    const all = plural(this.tables.num_tables, "table");
    const shown = places.length < labels.length ? `${count(places.length)} of ${all}` : all;
    const waiting = this.sortsAll() ? places.filter((index) => !memory.cards.has(index)) : [];
    const reading = ` · reading ${count(waiting.length)} more to sort them`;
    setText(this.status, waiting.length ? shown + reading : shown);
  }

  sortsAll() {
    return this.memory.order in VALUES && this.ctx.kernel.state === "live";
  }

  /** @param {number} index */
  buttonOf(index) {
    return this.inPage.get(index)?.querySelector("button");
  }

  /** @param {number} tableIndex @param {number} index among those that pass the filter */
  itemOf(tableIndex, index) {
    const existing = this.inPage.get(tableIndex);
    const card = this.memory.cards.get(tableIndex);
    const state = card?.state ?? "waiting";
    const item = existing ?? h("div", { role: "listitem" });
    item.setAttribute("aria-posinset", String(index + 1));
    item.setAttribute("aria-setsize", String(this.places.length));
    if (!existing || item.dataset.state !== state || item.dataset.version !== versionOf(card)) {
      item.dataset.state = state;
      item.dataset.version = versionOf(card);
      show(item, this.cardButton(tableIndex, card));
      this.inPage.set(tableIndex, item);
    }
    const isActive = tableIndex === this.memory.active;
    this.buttonOf(tableIndex)?.setAttribute("tabindex", isActive ? "0" : "-1");
    return item;
  }

  /** @param {number} index @param {Lnb.Json} card */
  cardButton(index, card) {
    const label = this.labels[index];
    return h(
      "button",
      {
        class: `lnb-tb-card lnb-tb-${card?.state ?? "waiting"}`,
        type: "button",
        "aria-label": spoken(label, card),
        title: card?.health ?? label,
        on: { click: () => this.open(index) },
      },
      h(
        "span.lnb-tb-name",
        h("strong", label),
        card && h("i", { "aria-hidden": "true" }, STATES[card.state][0]),
      ),
      card ? figures(card) : h("span.lnb-waiting.lnb-faint", "…"),
      card && !card.error ? bars(card) : null,
      card && card.state !== "ok" ? h("span.lnb-tb-health", card.health) : null,
    );
  }

  /** Tables without a card: those in sight first, then all when they are sorted by a value. */
  request() {
    if (this.ctx.kernel.state !== "live") return;
    const { places: shown } = this.inSight(0);
    for (const batch of this.running)
      if (!this.sortsAll() && !batch.tables.some((index) => shown.includes(index)))
        batch.request.cancel();
    const busy = new Set([...this.running].flatMap((batch) => batch.tables));
    const missing = [...new Set([...shown, ...(this.sortsAll() ? this.places : [])])].filter(
      (index) => !this.memory.cards.has(index) && !busy.has(index),
    );
    while (missing.length && this.running.size < BATCHES) {
      const single = missing.findIndex((index) => this.alone.has(index));
      this.describe(single < 0 ? missing.splice(0, BATCH) : missing.splice(single, 1));
    }
  }

  /** @param {number[]} tables */
  async describe(tables) {
    const { listing } = this.tables;
    const options = { quiet: true, progress: () => {} };
    const request = this.ctx.kernel.ask("tables.describe", { listing, tables }, options);
    const batch = { tables, request };
    this.running.add(batch);
    try {
      const { result } = await request;
      if (result.listing === this.tables.listing) this.keepCards(result.cards);
    } catch (error) {
      const { card } = /** @type {Lnb.Failure} */ (error);
      // A table that spoils its batch is told from the others by asking for each alone.
      if (card?.kind !== "CancelledError" && listing === this.tables.listing)
        for (const index of tables) {
          if (tables.length > 1) this.alone.add(index);
          else this.memory.cards.set(index, failedCard(this.labels[index], card));
        }
    }
    this.running.delete(batch);
    if (this.sortsAll()) this.arrange();
    else this.paint();
  }

  /** @param {number} index */
  async open(index) {
    const card = this.memory.cards.get(index);
    this.memory.active = index;
    this.select(index);
    if (this.ctx.screen().kept)
      return this.ctx.announce(
        "This page is a snapshot. The line below opens the table in a notebook.",
      );
    show(this.problem);
    this.scroll.setAttribute("aria-busy", "true");
    this.ctx.announce(`Opening ${this.labels[index]}…`);
    try {
      await this.ctx.kernel.ask("tables.open", { listing: this.tables.listing, table: index });
    } catch (error) {
      const retry = () => this.open(index);
      show(this.problem, this.ctx.problem(error, card ? undefined : retry));
    }
    return this.scroll.removeAttribute("aria-busy");
  }

  async onRefresh() {
    show(this.problem);
    this.refresh.disabled = true;
    try {
      const { result } = await this.ctx.kernel.ask("tables.refresh", {});
      this.alone.clear();
      this.inPage.clear();
      this.memory.active = null;
      this.take(result);
      this.ctx.announce(plural(result.num_tables, "table"));
    } catch (error) {
      const problem = this.ctx.problem(error, () => this.onRefresh());
      show(this.problem, problem);
    }
    this.refresh.disabled = false;
  }

  onFilter() {
    this.memory.filter = this.filter.value;
    this.scroll.scrollTop = 0;
    this.arrange();
  }

  /** @param {KeyboardEvent} event */
  onFilterKey(event) {
    if (event.key === "Escape" && this.filter.value) {
      event.preventDefault();
      this.filter.value = "";
      this.onFilter();
    } else if (event.key === "ArrowDown" && this.places.length) {
      event.preventDefault();
      this.move(0);
    } else if (event.key === "Enter" && this.places.length === 1) this.open(this.places[0]);
  }

  onOrder() {
    this.memory.order = this.order.value;
    this.scroll.scrollTop = 0;
    this.arrange();
  }

  /** @param {Lnb.Heard<FocusEvent>} event */
  onFocus(event) {
    const item = event.target.closest("[role=listitem]");
    for (const [index, element] of this.inPage) if (element === item) this.select(index);
  }

  /** @param {number} index */
  select(index) {
    if (this.memory.active !== index && this.memory.active !== null)
      this.buttonOf(this.memory.active)?.setAttribute("tabindex", "-1");
    this.memory.active = index;
    this.buttonOf(index)?.setAttribute("tabindex", "0");
    this.lines = this.memory.cards.get(index)?.code ?? null;
    this.paintCode();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const index = this.memory.active === null ? -1 : this.places.indexOf(this.memory.active);
    const page = this.columns * Math.max(1, Math.floor(this.heightInSight() / ROW));
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: index + 1,
      ArrowLeft: index - 1,
      ArrowDown: index + this.columns,
      ArrowUp: index - this.columns,
      PageDown: Math.min(index + page, this.places.length - 1),
      PageUp: Math.max(index - page, 0),
      Home: 0,
      End: this.places.length - 1,
    };
    const next = steps[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    consume(event);
    if (next < 0 && event.key === "ArrowUp") this.filter.focus();
    else if (next >= 0 && next < this.places.length) this.move(next);
  }

  /** Focus the card at an index among those that pass the filter. @param {number} index */
  move(index) {
    const top = Math.floor(index / this.columns) * ROW;
    const bottom = top + ROW + CARD.gap - this.heightInSight();
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (bottom > this.scroll.scrollTop) this.scroll.scrollTop = bottom;
    this.memory.active = this.places[index];
    this.paint();
    this.buttonOf(this.places[index])?.focus({ preventScroll: true });
    this.select(this.places[index]);
  }
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx @param {TablesMemory} [memory] */
export function mountTables(el, ctx, memory = tablesMemory()) {
  new Tables(el, ctx, memory);
}

/** @param {Lnb.Json} card */
function versionOf(card) {
  return card ? `${card.version} ${card.time_ms}` : "";
}

/** @param {string} label @param {Lnb.Card | undefined} card */
function failedCard(label, card) {
  const health = card ? `${card.title}: ${card.message}` : "The kernel cannot be reached";
  return { label, state: "error", health, bars: [], error: card ?? {}, code: null };
}

/** @param {Lnb.Json} card */
function figures(card) {
  if (card.error) return null;
  return [
    h(
      "span.lnb-tb-figures",
      h("span", plural(card.rows ?? 0, "row")),
      h("span", plural(card.columns ?? 0, "column")),
      card.bytes === null ? null : h("span", bytes(card.bytes)),
    ),
    h(
      "span.lnb-tb-figures.lnb-faint",
      h("span", plural(card.versions ?? 0, "version")),
      card.time_ms === null ? null : h("span", { title: card.time }, ageOf(card.time_ms)),
    ),
  ];
}

/** The newest versions: height is rows changed, colour the operation. @param {Lnb.Json} card */
function bars(card) {
  /** @type {[version: number, operation: string, changed: number | null][]} */
  const versions = card.bars;
  const most = Math.max(1, ...versions.map(([, , changed]) => changed ?? 0));
  return svg(
    "svg.lnb-tb-bars",
    {
      viewBox: `0 0 ${BARS.count * BARS.slot} ${BARS.height}`,
      width: BARS.count * BARS.slot,
      height: BARS.height,
      "aria-hidden": "true",
    },
    versions.map(([version, operation, changed], index) => {
      const height = 4 + (BARS.height - 4) * Math.sqrt((changed ?? 0) / most);
      const { family } = operation ? lookOfOperation(operation) : { family: "unknown" };
      const place = { x: index * BARS.slot, y: BARS.height - height, width: BARS.slot - 2, height };
      return svg(
        "rect",
        { class: `lnb-op-${family}`, rx: 1, ...place },
        svg("title", `version ${version}: ${titleOfOperation(operation)}`),
      );
    }),
  );
}

/** What a screen reader says of a card. @param {string} label @param {Lnb.Json} card */
function spoken(label, card) {
  if (!card) return `${label}, not read yet`;
  if (card.error) return `${label}, ${card.health}`;
  return [
    label,
    plural(card.rows ?? 0, "row"),
    plural(card.columns ?? 0, "column"),
    plural(card.versions ?? 0, "version"),
    card.bytes === null ? null : bytes(card.bytes),
    card.time && `changed ${card.time}`,
    card.state === "ok" ? STATES.ok[1] : card.health,
  ]
    .filter(Boolean)
    .join(", ");
}

export default widget((el, ctx) => mountTables(el, ctx), "tables of a Lance database");
