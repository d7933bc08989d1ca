// Branches or tags as a table: only lines in sight exist, and only they are asked for.

import {
  ageOf,
  button,
  consume,
  count,
  h,
  onResize,
  perFrame,
  plural,
  setBox,
  show,
} from "../js/dom.js";

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

export class RefList {
  uid = `lnb-refs-list${(instances += 1)}`;
  query = { kind: "branch", text: "", sort: "name", descending: false };
  /** @type {Map<number, HTMLElement>} */
  rows = new Map();
  /** @type {Map<number, Lnb.Json>} */
  lines = new Map();
  /** @type {Map<string | null, Lnb.Json>} by the name of a branch */
  heads = new Map();
  total = 0;
  cursor = 0;
  head = h("div.lnb-rl-row.lnb-rl-head", { role: "row", "aria-rowindex": "1" });
  space = h("div.lnb-rl-space", { role: "rowgroup" });
  paint = perFrame(() => this.paintNow());
  element = h(
    "div.lnb-rl",
    {
      role: "grid",
      tabindex: "0",
      on: { scroll: this.paint, keydown: (event) => this.onKey(event) },
    },
    h("div.lnb-rl-top", { role: "rowgroup" }, this.head),
    this.space,
  );

  /**
   * @param {Lnb.Context} ctx
   * @param {{open: (kind: string, line: Lnb.Json) => void, listed: (page: Lnb.Json) => void,
   *   failed: Lnb.Failed}} of `listed`: what matches
   */
  constructor(ctx, { open, listed, failed }) {
    this.open = open;
    this.listed = listed;
    this.failed = failed;
    this.request = ctx.kernel.line();
    this.askHeads = ctx.kernel.line();
    ctx.onClose(onResize(this.element, this.paint));
    this.paintHead();
  }

  get kind() {
    return this.query.kind;
  }

  /**
   * Show another kind, order or filter, from the top.
   * @param {Partial<RefList["query"]>} changes
   */
  set(changes) {
    Object.assign(this.query, changes);
    this.lines.clear();
    this.cursor = 0;
    this.element.scrollTop = 0;
    this.paintHead();
    this.ask(0);
  }

  /** Read the records again; what is in sight stays there. */
  refresh() {
    this.ask(this.firstInSight(), true);
  }

  firstInSight() {
    return Math.max(0, Math.floor(this.element.scrollTop / ROW) - OVERSCAN);
  }

  paintNow() {
    const { scrollTop, clientHeight } = this.element;
    const first = this.firstInSight();
    const end = Math.ceil((scrollTop + clientHeight) / ROW) + OVERSCAN;
    const stop = Math.min(this.total, end);
    for (const [index, row] of this.rows) {
      if (index >= first && index < stop) continue;
      row.remove();
      this.rows.delete(index);
    }
    /** @type {number | null} */
    let missing = null;
    for (let index = first; index < stop; index += 1) {
      if (!this.lines.has(index)) missing ??= index;
      this.paintRow(index);
    }
    if (this.rows.has(this.cursor))
      this.element.setAttribute("aria-activedescendant", `${this.uid}-${this.cursor}`);
    else this.element.removeAttribute("aria-activedescendant");
    if (missing !== null) this.ask(missing);
    else this.loadHeads(first, stop);
  }

  /** @param {number} index */
  rowOf(index) {
    const existing = this.rows.get(index);
    if (existing) return existing;
    const row = h("div.lnb-rl-row", {
      role: "row",
      id: `${this.uid}-${index}`,
      "aria-rowindex": index + 2,
      on: { click: () => this.choose(index, true) },
    });
    setBox(row, { top: index * ROW });
    this.rows.set(index, row);
    this.space.append(row);
    return row;
  }

  /** @param {number} index */
  paintRow(index) {
    const row = this.rowOf(index);
    row.setAttribute("aria-selected", String(index === this.cursor));
    const line = this.lines.get(index);
    const head = line && this.kind === "branch" ? this.heads.get(line.name) : null;
    const cells = COLUMNS[this.kind].map(([, , cell]) => {
      const content = line ? cell(line, head) : "";
      const title = content instanceof Node ? null : line?.label;
      const text = typeof content === "string" ? content : title;
      return h("span", { role: "gridcell", title: text }, content);
    });
    renew(row, cells);
  }

  /** @param {number} first */
  ask(first, fresh = false) {
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      const name = this.lines.get(this.cursor)?.name;
      if (fresh || this.lines.size > KEPT) this.lines.clear();
      if (fresh) this.heads.clear();
      this.total = result.matching;
      this.cursor = Math.min(this.cursor, Math.max(0, this.total - 1));
      result.lines.forEach((/** @type {Lnb.Json} */ line, /** @type {number} */ index) => {
        this.lines.set(result.first + index, line);
        // Lines before it may have come or gone.
        if (fresh && line.name === name) this.cursor = result.first + index;
      });
      setBox(this.space, { height: this.total * ROW });
      this.element.setAttribute("aria-rowcount", String(this.total + 1));
      this.listed(result);
      this.paint();
    };
    this.request("refs.list", { ...this.query, first, count: PAGE, fresh }, done, this.failed);
  }

  /** Read the newest versions of branches. @param {number} first @param {number} stop */
  loadHeads(first, stop) {
    if (this.kind !== "branch") return;
    const names = [];
    for (let index = first; index < stop; index += 1) {
      const line = this.lines.get(index);
      if (line && !this.heads.has(line.name)) names.push(line.name);
    }
    if (!names.length) return;
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      for (const head of result.heads) this.heads.set(head.name, head);
      this.paint();
    };
    this.askHeads("refs.heads", { names: names.slice(0, MAX_HEADS) }, done, this.failed);
  }

  /** @param {number} index @param {boolean} opened */
  choose(index, opened) {
    if (!this.lines.has(index)) return;
    this.cursor = index;
    const { scrollTop, clientHeight } = this.element;
    const highest = Math.min(scrollTop, index * ROW);
    this.element.scrollTop = Math.max(highest, (index + 2) * ROW - clientHeight);
    this.paint();
    if (opened) this.open(this.kind, this.lines.get(index));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.target !== this.element || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    /** @type {Record<string, number>} */
    const keys = {
      ArrowDown: this.cursor + 1,
      ArrowUp: this.cursor - 1,
      PageDown: this.cursor + page,
      PageUp: this.cursor - page,
      Home: 0,
      End: this.total - 1,
      Enter: this.cursor,
    };
    const next = keys[event.key];
    if (next === undefined || !this.total) return;
    consume(event);
    const index = Math.max(0, Math.min(this.total - 1, next));
    if (this.lines.has(index)) return this.choose(index, event.key === "Enter");
    this.cursor = index;
    this.element.scrollTop = index * ROW;
    return this.paint();
  }

  paintHead() {
    const { kind, sort: sortedBy, descending } = this.query;
    this.element.setAttribute("aria-label", kind === "branch" ? "branches" : "tags");
    this.element.classList.toggle("lnb-rl-tags", kind === "tag");
    const titles = COLUMNS[kind].map(([sort, title]) => {
      const isSorted = sort !== "" && sort === sortedBy;
      const order = descending ? "descending" : "ascending";
      const label = isSorted ? [title, descending ? " ↓" : " ↑"] : title;
      const turn = () => this.set({ sort, descending: isSorted && !descending });
      return h(
        "span",
        { role: "columnheader", "aria-sort": isSorted && order },
        sort ? button(label, turn, { class: "lnb-rl-sort" }) : title,
      );
    });
    show(this.head, titles);
  }
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
