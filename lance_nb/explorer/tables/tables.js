// The tables of a database as cards: found by name, sorted, described when they come into sight.
//
// Only the cards in sight, and a few rows of cards beside them, are in the page. Tables are
// described in small batches, those in sight first; what is scrolled away is not asked for, and a
// batch of which nothing is in sight any more is cancelled.

import { ioMeter } from "../history/overview.js";
import { codeFooter } from "../js/code_footer.js";
import { ageOf, button, bytes, count, h, perFrame, plural, setText, show, svg } from "../js/dom.js";
import { lookOfOperation } from "../js/operations.js";
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
  const memory_ = { top: 0, active: null, listing: 0, focus: false };
  return { filter: "", order: "name", cards: new Map(), ...memory_ };
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx @param {TablesMemory} [memory] */
export function mountTables(el, ctx, memory = tablesMemory()) {
  /** @type {Lnb.Json} */
  let tables = null;
  /** @type {string[]} */
  let labels = [];
  /** @type {number[]} places of the tables that pass the filter, sorted */
  let places = [];
  let columns = 1;
  /** @type {Map<number, HTMLElement>} by place, those in the page */
  const inPage = new Map();
  /** @type {Set<{tables: number[], asked: Lnb.Asked}>} */
  const running = new Set();
  /** @type {Set<number>} tables that are asked for one by one, because a batch failed */
  const alone = new Set();

  const title = h("h2", { class: "lnb-name" });
  const status = h("span", { class: "lnb-tb-status", role: "status" });
  const filter = h("input", {
    class: "lnb-input lnb-tb-filter",
    type: "search",
    placeholder: "find a table",
    "aria-label": "find a table by its name",
    on: { input: onFilter, keydown: onFilterKey },
  });
  filter.value = memory.filter;
  const order = h(
    "select",
    { class: "lnb-input", "aria-label": "sort the tables", on: { change: onOrder } },
    ORDERS.map(([value, words]) => h("option", { value, selected: value === memory.order }, words)),
  );
  const refresh = button("Refresh", onRefresh, { title: "list the tables again" });
  const problem = h("div", { class: "lnb-tb-problem", role: "alert" });
  const list = h("div", { class: "lnb-tb-cards", role: "list", "aria-label": "tables" });
  const room = h("div", { class: "lnb-tb-room" }, list);
  const scroll = h(
    "div",
    { class: "lnb-tb-scroll", on: { scroll: perFrame(paint), keydown: onKey, focusin: onFocus } },
    room,
  );
  const none = h("p", { class: "lnb-tb-none", hidden: true });
  const note = h("p", { class: "lnb-tb-note" });
  const code = h("div", {});
  el.append(
    h(
      "div",
      { class: "lnb-card lnb-tb" },
      h(
        "header",
        { class: "lnb-tb-head" },
        h("div", { class: "lnb-title" }, title, status),
        h("div", { class: "lnb-tb-tools" }, filter, order, refresh, ioMeter(ctx)),
      ),
      problem,
      none,
      scroll,
      note,
      code,
    ),
  );
  /** @type {Lnb.CodeLines | null} */
  let lines = null;
  const paintCode = codeFooter(code, ctx, () => lines);

  ctx.onScreen((screen) => screen.tables?.labels && take(screen.tables));
  ctx.describe("tables", () => ({
    filter: memory.filter,
    order: memory.order,
    first: firstInSight(),
  }));
  const observer = new ResizeObserver(perFrame(layOut));
  observer.observe(scroll);
  ctx.onClose(() => observer.disconnect());
  ctx.onClose(ctx.kernel.onState((state) => state === "live" && paint()));
  scroll.scrollTop = memory.top;
  paint();
  if (memory.focus && memory.active !== null) buttonOf(memory.active)?.focus();
  memory.focus = false;

  /** @param {Lnb.Json} answer a listing */
  function take(answer) {
    tables = answer;
    labels = answer.labels;
    if (memory.listing !== answer.listing) memory.cards.clear();
    memory.listing = answer.listing;
    for (const [index, card] of Object.entries(answer.cards)) memory.cards.set(Number(index), card);
    setText(title, answer.name);
    title.title = answer.uri;
    setText(note, answer.looked_at);
    arrange();
    loadLabels();
  }

  async function loadLabels() {
    const { listing } = tables;
    while (labels.length < tables.num_tables && ctx.kernel.state !== "static") {
      const listing_ = ctx.kernel.ask("tables.list", { listing, first: labels.length });
      const { result } = await listing_.catch(() => ({ result: { labels: [] } }));
      if (listing !== tables.listing || !result.labels.length) return;
      labels = [...labels, ...result.labels];
      arrange();
      if (result.labels.length < LABELS) return;
    }
  }

  /** Filter and sort; what is not described comes last. */
  function arrange() {
    const query = memory.filter.trim().toLowerCase();
    places = [...labels.keys()].filter((index) => labels[index].toLowerCase().includes(query));
    const value = VALUES[memory.order];
    /** @param {number} index */
    const rank = (index) => memory.cards.get(index)?.[value] ?? -1;
    if (memory.order === "name-down") places.reverse();
    else if (value) places.sort((a, b) => rank(b) - rank(a) || a - b);
    if (memory.active === null || !places.includes(memory.active))
      memory.active = places[0] ?? null;
    none.hidden = places.length > 0;
    setText(none, labels.length ? "No table matches the filter." : "There are no tables here.");
    scroll.hidden = !places.length;
    layOut();
  }

  function layOut() {
    const wide = scroll.clientWidth || CARD.width;
    columns = Math.max(1, Math.floor((wide - CARD.gap) / (CARD.width + CARD.gap)));
    const rows = Math.ceil(places.length / columns);
    const height = rows * (CARD.height + CARD.gap) + CARD.gap;
    room.style.setProperty("height", `${height}px`);
    scroll.style.setProperty("height", `min(var(--lnb-height), ${height}px)`);
    list.style.setProperty("grid-template-columns", `repeat(${columns}, minmax(0, 1fr))`);
    paint();
  }

  function heightInSight() {
    return scroll.clientHeight || ctx.height;
  }

  function firstInSight() {
    return Math.floor(scroll.scrollTop / (CARD.height + CARD.gap)) * columns;
  }

  /** The places in sight, with `beside` rows of cards on each side. @param {number} beside */
  function inSight(beside) {
    const high = CARD.height + CARD.gap;
    const first = Math.max(0, Math.floor(scroll.scrollTop / high) - beside);
    const stop = Math.ceil((scroll.scrollTop + heightInSight()) / high) + beside;
    return { first, places: places.slice(first * columns, stop * columns) };
  }

  function paint() {
    if (!tables) return;
    memory.top = scroll.scrollTop;
    const { first, places: shown } = inSight(BESIDE);
    if (memory.active !== null && !shown.includes(memory.active) && !hasFocus())
      memory.active = inSight(0).places[0] ?? memory.active;
    const focused = hasFocus() ? memory.active : null;
    for (const index of [...inPage.keys()]) if (!shown.includes(index)) inPage.delete(index);
    const items = shown.map((tableIndex, index) => itemOf(tableIndex, first * columns + index));
    if (
      items.some((item, index) => list.children[index] !== item) ||
      list.children.length > items.length
    )
      show(list, items);
    list.style.setProperty("top", `${first * (CARD.height + CARD.gap) + CARD.gap}px`);
    if (focused !== null && document.activeElement !== buttonOf(focused))
      buttonOf(focused)?.focus({ preventScroll: true });
    paintStatus();
    request();
  }

  function paintStatus() {
    const all = plural(tables.num_tables, "table");
    const waiting = sortsAll() ? places.filter((index) => !memory.cards.has(index)).length : 0;
    const countText = places.length < labels.length ? `${count(places.length)} of ${all}` : all;
    setText(
      status,
      waiting ? `${countText} · reading ${count(waiting)} more to sort them` : countText,
    );
  }

  function sortsAll() {
    return memory.order in VALUES && ctx.kernel.state === "live";
  }

  function hasFocus() {
    return list.contains(document.activeElement);
  }

  /** @param {number} index */
  function buttonOf(index) {
    return inPage.get(index)?.querySelector("button");
  }

  /** @param {number} tableIndex @param {number} index among those that pass the filter */
  function itemOf(tableIndex, index) {
    const existing = inPage.get(tableIndex);
    const card = memory.cards.get(tableIndex);
    const state = card?.state ?? "waiting";
    const item = existing ?? h("div", { role: "listitem" });
    item.setAttribute("aria-posinset", String(index + 1));
    item.setAttribute("aria-setsize", String(places.length));
    if (!existing || item.dataset.state !== state || item.dataset.version !== versionOf(card)) {
      item.dataset.state = state;
      item.dataset.version = versionOf(card);
      show(item, cardButton(tableIndex, card));
      inPage.set(tableIndex, item);
    }
    buttonOf(tableIndex)?.setAttribute("tabindex", tableIndex === memory.active ? "0" : "-1");
    return item;
  }

  /** @param {number} index @param {Lnb.Json} card */
  function cardButton(index, card) {
    const label = labels[index];
    return h(
      "button",
      {
        class: `lnb-tb-card lnb-tb-${card?.state ?? "waiting"}`,
        type: "button",
        "aria-label": spoken(label, card),
        title: card?.health ?? label,
        on: { click: () => open(index) },
      },
      h(
        "span",
        { class: "lnb-tb-name" },
        h("strong", {}, label),
        card && h("i", { "aria-hidden": "true" }, STATES[card.state][0]),
      ),
      card ? figures(card) : h("span", { class: "lnb-waiting lnb-faint" }, "…"),
      card && !card.error ? bars(card) : null,
      card && card.state !== "ok" ? h("span", { class: "lnb-tb-health" }, card.health) : null,
    );
  }

  /** Tables without a card: those in sight first, then all when they are sorted by a value. */
  function request() {
    if (ctx.kernel.state !== "live") return;
    const { places: shown } = inSight(0);
    for (const batch of running)
      if (!sortsAll() && !batch.tables.some((index) => shown.includes(index))) batch.asked.cancel();
    const busy = new Set([...running].flatMap((batch) => batch.tables));
    const missing = [...new Set([...shown, ...(sortsAll() ? places : [])])].filter(
      (index) => !memory.cards.has(index) && !busy.has(index),
    );
    while (missing.length && running.size < BATCHES) {
      const single = missing.findIndex((index) => alone.has(index));
      describe(single < 0 ? missing.splice(0, BATCH) : missing.splice(single, 1));
    }
  }

  /** @param {number[]} asked_tables */
  async function describe(asked_tables) {
    const { listing } = tables;
    const describing = ctx.kernel.ask(
      "tables.describe",
      { listing, tables: asked_tables },
      { quiet: true, progress: () => {} },
    );
    const batch = { tables: asked_tables, asked: describing };
    running.add(batch);
    try {
      const { result } = await describing;
      if (result.listing === tables.listing)
        for (const [index, card] of Object.entries(result.cards))
          memory.cards.set(Number(index), card);
    } catch (error) {
      const { card } = /** @type {Lnb.Failure} */ (error);
      // A table that spoils its batch is told from the others by asking for each alone.
      if (card?.kind !== "CancelledError" && listing === tables.listing)
        for (const index of asked_tables) {
          if (asked_tables.length > 1) alone.add(index);
          else memory.cards.set(index, failedCard(labels[index], card));
        }
    }
    running.delete(batch);
    if (sortsAll()) arrange();
    else paint();
  }

  /** @param {number} index */
  async function open(index) {
    const card = memory.cards.get(index);
    memory.active = index;
    select(index);
    if (ctx.screen().kept)
      return ctx.announce("This page is a snapshot. The line below opens the table in a notebook.");
    show(problem);
    scroll.setAttribute("aria-busy", "true");
    ctx.announce(`Opening ${labels[index]}…`);
    try {
      await ctx.kernel.ask("tables.open", { listing: tables.listing, table: index });
    } catch (error) {
      const retry = () => open(index);
      show(problem, ctx.problem(error, card ? undefined : retry));
    }
    return scroll.removeAttribute("aria-busy");
  }

  async function onRefresh() {
    show(problem);
    refresh.disabled = true;
    try {
      const { result } = await ctx.kernel.ask("tables.refresh", {});
      alone.clear();
      inPage.clear();
      memory.active = null;
      take(result);
      ctx.announce(plural(result.num_tables, "table"));
    } catch (error) {
      show(problem, ctx.problem(error, onRefresh));
    }
    refresh.disabled = false;
  }

  function onFilter() {
    memory.filter = filter.value;
    scroll.scrollTop = 0;
    arrange();
  }

  /** @param {KeyboardEvent} event */
  function onFilterKey(event) {
    if (event.key === "Escape" && filter.value) {
      event.preventDefault();
      filter.value = "";
      onFilter();
    } else if (event.key === "ArrowDown" && places.length) {
      event.preventDefault();
      move(0);
    } else if (event.key === "Enter" && places.length === 1) open(places[0]);
  }

  function onOrder() {
    memory.order = order.value;
    scroll.scrollTop = 0;
    arrange();
  }

  /** @param {Lnb.Heard<FocusEvent>} event */
  function onFocus(event) {
    const item = event.target.closest("[role=listitem]");
    for (const [index, element] of inPage) if (element === item) select(index);
  }

  /** @param {number} index */
  function select(index) {
    if (memory.active !== index && memory.active !== null)
      buttonOf(memory.active)?.setAttribute("tabindex", "-1");
    memory.active = index;
    buttonOf(index)?.setAttribute("tabindex", "0");
    lines = memory.cards.get(index)?.code ?? null;
    paintCode();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const index = memory.active === null ? -1 : places.indexOf(memory.active);
    const page = columns * Math.max(1, Math.floor(heightInSight() / (CARD.height + CARD.gap)));
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: index + 1,
      ArrowLeft: index - 1,
      ArrowDown: index + columns,
      ArrowUp: index - columns,
      PageDown: Math.min(index + page, places.length - 1),
      PageUp: Math.max(index - page, 0),
      Home: 0,
      End: places.length - 1,
    };
    const next = steps[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (next < 0 && event.key === "ArrowUp") filter.focus();
    else if (next >= 0 && next < places.length) move(next);
  }

  /** Focus the card at an index among those that pass the filter. @param {number} index */
  function move(index) {
    const high = CARD.height + CARD.gap;
    const top = Math.floor(index / columns) * high;
    const seen = heightInSight();
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + high + CARD.gap > scroll.scrollTop + seen)
      scroll.scrollTop = top + high + CARD.gap - seen;
    memory.active = places[index];
    paint();
    buttonOf(places[index])?.focus({ preventScroll: true });
    select(places[index]);
  }
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
      "span",
      { class: "lnb-tb-figures" },
      h("span", {}, plural(card.rows ?? 0, "row")),
      h("span", {}, plural(card.columns ?? 0, "column")),
      card.bytes === null ? null : h("span", {}, bytes(card.bytes)),
    ),
    h(
      "span",
      { class: "lnb-tb-figures lnb-faint" },
      h("span", {}, plural(card.versions ?? 0, "version")),
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
    "svg",
    {
      class: "lnb-tb-bars",
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
        svg("title", {}, `version ${version} ${operation}`.trim()),
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
