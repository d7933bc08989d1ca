// Branches or tags as a table: only lines in sight exist, and only they are asked for.

import { ageOf, count, h, perFrame, plural, show } from "../js/dom.js";

const ROW = 28;
const OVERSCAN = 12;
const PAGE = 120;
const MAX_HEADS = 40;
const KEPT = 2000;
let instances = 0;

/** @param {number | null | undefined} ms */
const since = (ms) => (ms ? ageOf(ms) : "");
/**
 * A line of a list and the newest version of a branch, see refs/ref_list.py.
 * @typedef {[sort: string, title: string, cell: (line: Lnb.Json, head: Lnb.Json) => Lnb.Child]}
 *   RefColumn
 */

/** How a branch stands to the one that it started from. @param {Lnb.Json} head */
function standing({ ahead, behind, merged, exact }) {
  const most = exact === false ? "≤ " : "";
  const mine = merged && !ahead ? "✓ merged" : `${most}+${count(ahead)}`;
  return `${mine} · ${most}−${behind === null ? "?" : count(behind)}`;
}

/** @type {Record<string, RefColumn[]>} */
const COLUMNS = {
  branch: [
    [
      "name",
      "branch",
      (line) => [h("i", { "aria-hidden": "true" }, line.name === null ? "●" : "↳"), line.label],
    ],
    ["fork", "from", (line) => line.fork?.label ?? ""],
    [
      "",
      "newest",
      (line, head) =>
        line.unfinished ? "unfinished" : head ? (head.problem ?? head.version) : "…",
    ],
    ["", "rows", (_line, head) => (head?.rows === undefined ? "" : count(head.rows))],
    [
      "",
      "ahead · behind",
      (_line, head) => (head?.ahead === undefined || head.ahead === null ? "" : standing(head)),
    ],
    ["", "changed", (_line, head) => since(head?.time_ms)],
    ["created", "created", (line) => since(line.created_ms)],
    [
      "refs",
      "on it",
      (line) =>
        [line.tags && `⚑ ${count(line.tags)}`, line.children && `↳ ${count(line.children)}`]
          .filter(Boolean)
          .join("  "),
    ],
    ["", "note", (line) => line.note],
  ],
  tag: [
    [
      "name",
      "tag",
      (line) => [h("i", { "aria-hidden": "true" }, line.pin ? "⊙" : "⚑"), line.label],
    ],
    ["place", "version", (line) => line.place.label],
    ["created", "created", (line) => since(line.created_ms)],
    [
      "updated",
      "moved",
      (line) => (line.updated_ms === line.created_ms ? "" : since(line.updated_ms)),
    ],
    ["", "note", (line) => (line.pin ? `keeps files for the merge ${line.pin}` : line.note)],
  ],
};

/**
 * @param {Lnb.Context} ctx
 * @param {{open: (kind: string, line: Lnb.Json) => void, listed: (page: Lnb.Json) => void,
 *   failed: Lnb.Failed}} of `listed`: what was found
 */
export function refList(ctx, { open, listed, failed }) {
  const uid = `lnb-refs-list${(instances += 1)}`;
  const head = h("div", { class: "lnb-rl-row lnb-rl-head", role: "row", "aria-rowindex": "1" });
  const space = h("div", { class: "lnb-rl-space", role: "rowgroup" });
  const element = h(
    "div",
    { class: "lnb-rl", role: "grid", tabindex: "0", on: { scroll: () => paint(), keydown: onKey } },
    h("div", { role: "rowgroup", class: "lnb-rl-top" }, head),
    space,
  );
  const state = { kind: "branch", text: "", sort: "name", descending: false };
  const request = ctx.kernel.line();
  const askHeads = ctx.kernel.line();
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  /** @type {Map<number, Lnb.Json>} */
  const lines = new Map();
  /** @type {Map<string | null, Lnb.Json>} by the name of a branch */
  const heads = new Map();
  let total = 0;
  let cursor = 0;

  const paint = perFrame(() => {
    const first = Math.max(0, Math.floor(element.scrollTop / ROW) - OVERSCAN);
    const stop = Math.min(
      total,
      Math.ceil((element.scrollTop + element.clientHeight) / ROW) + OVERSCAN,
    );
    for (const [index, row] of rows) {
      if (index >= first && index < stop) continue;
      row.remove();
      rows.delete(index);
    }
    /** @type {number | null} */
    let missing = null;
    for (let index = first; index < stop; index += 1) {
      if (!lines.has(index)) missing ??= index;
      paintRow(index);
    }
    if (rows.has(cursor)) element.setAttribute("aria-activedescendant", `${uid}-${cursor}`);
    else element.removeAttribute("aria-activedescendant");
    if (missing !== null) ask(missing);
    else loadHeads(first, stop);
  });

  /** @param {number} index */
  function paintRow(index) {
    let row = rows.get(index);
    if (!row) {
      row = h("div", {
        class: "lnb-rl-row",
        role: "row",
        id: `${uid}-${index}`,
        "aria-rowindex": index + 2,
        on: { click: () => choose(index, true) },
      });
      row.style.top = `${index * ROW}px`;
      rows.set(index, row);
      space.append(row);
    }
    row.setAttribute("aria-selected", String(index === cursor));
    const line = lines.get(index);
    const head = line && state.kind === "branch" ? heads.get(line.name) : null;
    renew(
      row,
      COLUMNS[state.kind].map(([, , cell]) => {
        const content = line ? cell(line, head) : "";
        return h(
          "span",
          {
            role: "gridcell",
            title:
              typeof content === "string" ? content : content instanceof Node ? null : line.label,
          },
          content,
        );
      }),
    );
  }

  /** @param {number} first */
  function ask(first, fresh = false) {
    const query = { ...state };
    request(
      "refs.list",
      { ...query, first, count: PAGE, fresh },
      ({ result }) => {
        const currentName = lines.get(cursor)?.name;
        if (fresh || lines.size > KEPT) lines.clear();
        if (fresh) heads.clear();
        total = result.matching;
        cursor = Math.min(cursor, Math.max(0, total - 1));
        result.lines.forEach((/** @type {Lnb.Json} */ line, /** @type {number} */ index) => {
          lines.set(result.first + index, line);
          // Lines before it may have come or gone.
          if (fresh && line.name === currentName) cursor = result.first + index;
        });
        space.style.height = `${total * ROW}px`;
        element.setAttribute("aria-rowcount", String(total + 1));
        listed(result);
        paint();
      },
      failed,
    );
  }

  /** @param {number} first @param {number} stop */
  function loadHeads(first, stop) {
    if (state.kind !== "branch") return;
    const names = [];
    for (let index = first; index < stop; index += 1) {
      const line = lines.get(index);
      if (line && !heads.has(line.name)) names.push(line.name);
    }
    if (!names.length) return;
    askHeads(
      "refs.heads",
      { names: names.slice(0, MAX_HEADS) },
      ({ result }) => {
        for (const head of result.heads) heads.set(head.name, head);
        paint();
      },
      failed,
    );
  }

  /** @param {number} index @param {boolean} opened */
  function choose(index, opened) {
    if (!lines.has(index)) return;
    cursor = index;
    element.scrollTop = Math.max(
      Math.min(element.scrollTop, index * ROW),
      (index + 2) * ROW - element.clientHeight,
    );
    paint();
    if (opened) open(state.kind, lines.get(index));
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.target !== element || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(element.clientHeight / ROW) - 2);
    /** @type {Record<string, number>} */
    const keys = {
      ArrowDown: cursor + 1,
      ArrowUp: cursor - 1,
      PageDown: cursor + page,
      PageUp: cursor - page,
      Home: 0,
      End: total - 1,
      Enter: cursor,
    };
    const next = keys[event.key];
    if (next === undefined || !total) return;
    event.preventDefault();
    event.stopPropagation();
    const index = Math.max(0, Math.min(total - 1, next));
    if (lines.has(index)) return choose(index, event.key === "Enter");
    cursor = index;
    element.scrollTop = index * ROW;
    return paint();
  }

  function paintHead() {
    element.setAttribute("aria-label", state.kind === "branch" ? "branches" : "tags");
    element.classList.toggle("lnb-rl-tags", state.kind === "tag");
    show(
      head,
      COLUMNS[state.kind].map(([sort, title]) => {
        const isCurrent = sort && sort === state.sort;
        const order = isCurrent ? (state.descending ? "descending" : "ascending") : null;
        return h(
          "span",
          { role: "columnheader", "aria-sort": order },
          sort
            ? h(
                "button",
                {
                  class: "lnb-rl-sort",
                  type: "button",
                  on: {
                    click: () =>
                      list.set({ sort, descending: Boolean(isCurrent) && !state.descending }),
                  },
                },
                title,
                isCurrent ? (state.descending ? " ↓" : " ↑") : "",
              )
            : title,
        );
      }),
    );
  }

  const list = {
    element,
    get kind() {
      return state.kind;
    },
    /** Show another kind, order or filter, from the top. @param {Partial<typeof state>} changes */
    set(changes) {
      Object.assign(state, changes);
      lines.clear();
      cursor = 0;
      element.scrollTop = 0;
      paintHead();
      ask(0);
    },
    /** Read the records again; what is in sight stays there. */
    refresh() {
      ask(Math.max(0, Math.floor(element.scrollTop / ROW) - OVERSCAN), true);
    },
  };
  const observer = new ResizeObserver(() => paint());
  observer.observe(element);
  ctx.onClose(() => observer.disconnect());
  paintHead();
  return list;
}

/**
 * Show cells in a row whose cells stay: the browser makes no click of a press on an element that is
 * gone when the button is let go, and what is read of a branch may come in between.
 * @param {HTMLElement} row @param {HTMLElement[]} cells
 */
function renew(row, cells) {
  if (row.children.length !== cells.length) return show(row, cells);
  cells.forEach((cell, index) => {
    const shown = /** @type {HTMLElement} */ (row.children[index]);
    if (shown.isEqualNode(cell)) return;
    show(shown, ...cell.childNodes);
    if (cell.title) shown.title = cell.title;
    else shown.removeAttribute("title");
  });
}

/** "2 branches". @param {number} number */
export function branchesWord(number) {
  return number === 1 ? "1 branch" : plural(number, "branch").replace(/hs$/, "hes");
}
