// The cells that both sides of a merge changed: base, ours, theirs, and which of them counts. It is
// chosen by cell, row, column or for all, or written by hand. The page holds one window of cells.

import { count, h, plural, show } from "../js/dom.js";

const PAGE = 60;
const RECHECK_MS = 250;

/** @typedef {"base" | "ours" | "theirs"} Side */
/** @type {Side[]} */
const SIDES = ["base", "ours", "theirs"];
/** @type {Record<string, Side | undefined>} */
const KEYS = { b: "base", o: "ours", t: "theirs" };

/**
 * What a person chose: for a cell, a row, a column or all; null stands for every one.
 * @typedef {{row: string | null, column: string | null, take: string, value?: string | null,
 *   shown?: string | null}} Choice
 * @typedef {{row: string, label: string, column: string | null, name: string | null,
 *   base: {text: string | null} | null, ours: {text: string | null} | null,
 *   theirs: {text: string | null} | null, sides?: Side[] | null}} Line see
 *   refs/merge_preview.py; `sides` are those that can be applied, where not all can
 */

/** @param {string | null} row @param {string | null} column */
const keyOf = (row, column) => JSON.stringify([row, column]);

/**
 * @param {Lnb.Context} ctx
 * @param {(choices: Choice[]) => void} changed called a moment after the choices have changed
 * @param {{cells: string, value: string, more?: Lnb.Args}} [requests] that read cells and check
 *   values, and what goes with them
 */
export function conflictTable(
  ctx,
  changed,
  { cells: cellsRequest, value: valueRequest, more = {} } = {
    cells: "refs.cells",
    value: "refs.value",
  },
) {
  /** @type {Map<string, Choice>} */
  const choices = new Map();
  /** @type {Lnb.Json} the preview whose conflicts are shown */
  let plan = null;
  /** @type {Line[]} */
  let lines = [];
  let first = 0;
  /** @type {Map<string, HTMLElement>} what is in the result of a cell that is being written */
  const editors = new Map();
  /** @type {{line: number, spot: number}} the button that the tab key leads to */
  let cursor = { line: 0, spot: 1 };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  const request = ctx.kernel.line();
  const intro = h("p", {});
  const wide = h("div", { class: "lnb-ct-wide" });
  const body = h("div", {});
  const pager = h("p", { class: "lnb-ct-pager" });
  const element = h(
    "section",
    { class: "lnb-ct", "aria-label": "conflicts", on: { keydown: onKey } },
    h("h4", { class: "lnb-ct-title" }, "Conflicts"),
    intro,
    wide,
    body,
    pager,
  );

  const titles = () => ({
    base: `as before (${plan.base.label})`,
    ours: plan.target.label,
    theirs: plan.source.label,
  });

  /** Whether a choice can be applied to a line, or to any. @param {Line | Lnb.Json} line
   * @param {string} take */
  const applies = ({ sides }, take) => !sides || sides.includes(/** @type {Side} */ (take));

  /** The choice that counts for a line: the narrowest. @param {Line} line */
  function chosen(line) {
    const { row, column } = line;
    const cell = column === null ? undefined : choices.get(keyOf(row, column));
    const byColumn = column === null ? undefined : choices.get(keyOf(null, column));
    const choice =
      cell ?? choices.get(keyOf(row, null)) ?? byColumn ?? choices.get(keyOf(null, null));
    return choice && applies(line, choice.take) ? choice : undefined;
  }

  /** A wider choice replaces the narrower ones that it covers. @param {Choice} choice */
  function choose(choice) {
    const { row, column } = choice;
    const key = keyOf(row, column);
    for (const [other, choice] of choices) {
      if (other === key) continue;
      const covers =
        (row === null || choice.row === row) && (column === null || choice.column === column);
      if (covers) choices.delete(other);
    }
    choices.set(key, choice);
    editors.delete(key);
    paint();
    clearTimeout(waiting);
    waiting = setTimeout(() => changed([...choices.values()]), RECHECK_MS);
  }

  /** @param {string} label @param {string | null} row @param {string | null} column */
  function sideButtons(label, row, column) {
    const chosen = choices.get(keyOf(row, column));
    const words = titles();
    const [ours, theirs] = [words.ours, words.theirs].map((label) => label.replace(/:\d+$/, ""));
    const names = ours === theirs ? words : { ours, theirs };
    return h(
      "span",
      { class: "lnb-choices", role: "group", "aria-label": label },
      SIDES.filter((side) => row !== null || applies(plan, side)).map((side) =>
        h(
          "button",
          {
            class: "lnb-choice",
            type: "button",
            "aria-pressed": String(chosen?.take === side),
            title: `${label}: ${words[side]}`,
            tabindex: row === null ? "0" : "-1",
            on: { click: () => choose({ row, column, take: side }) },
          },
          side === "base" ? "base" : names[side],
        ),
      ),
    );
  }

  function paint() {
    if (!plan) return;
    const { cells } = plan;
    const deleted = cells.deleted_rows
      ? `, ${plural(cells.deleted_rows, "row")} of them deleted on one side`
      : "";
    const rows = plural(cells.rows, "row");
    const [ours, theirs] = [plan.target.label, plan.source.label];
    show(
      intro,
      plan.sides
        ? null
        : `Both sides changed ${plural(cells.total, "cell")} in ${rows}${deleted}. ` +
            `Choose what counts: ${ours} is kept, ${theirs} is taken, or the value stays as ` +
            "before. Narrower choices count before wider ones. ",
      plan.note ? h("span", { class: "lnb-ct-note" }, plan.note) : null,
    );
    /** @param {string} words @param {string | null} column */
    const group = (words, column) =>
      h("div", {}, h("b", {}, words), sideButtons(words, null, column));
    show(
      wide,
      group("all conflicts", null),
      cells.columns.length > 1 || cells.deleted_rows
        ? cells.columns.map((/** @type {Lnb.Json} */ column) =>
            group(`${column.label} (${count(column.count)})`, column.name),
          )
        : null,
      cells.hidden ? h("small", {}, `and ${plural(cells.hidden, "more column")}`) : null,
    );
    paintLines();
    const last = Math.min(first + PAGE, cells.total);
    /** @param {string} words @param {number} to @param {boolean} off */
    const turn = (words, to, off) =>
      h(
        "button",
        { class: "lnb-button", type: "button", disabled: off, on: { click: () => load(to) } },
        words,
      );
    show(
      pager,
      cells.total > PAGE
        ? [
            turn("Previous", Math.max(0, first - PAGE), first === 0),
            h("span", {}, `cells ${count(first + 1)} to ${count(last)} of ${count(cells.total)}`),
            turn("Next", first + PAGE, last >= cells.total),
          ]
        : null,
    );
  }

  function paintLines() {
    const words = titles();
    const active = /** @type {HTMLElement | null} */ (body.ownerDocument.activeElement);
    const focused = body.contains(active);
    const head = [plan.cells.key, "column", words.base, words.ours, words.theirs, "result"];
    const table = h(
      "table",
      { class: "lnb-table lnb-ct-table", role: "grid", "aria-label": "cells in conflict" },
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          head.map((title) => h("th", { scope: "col", role: "columnheader" }, title)),
        ),
      ),
      h(
        "tbody",
        { role: "rowgroup" },
        lines.map((line, index) => lineRow(line, index)),
      ),
    );
    show(body, h("div", { class: "lnb-ct-scroll" }, table));
    if (!focused) return;
    // The same box stands in the new table while its value is being typed.
    if (active && body.contains(active)) active.focus({ preventScroll: true });
    else focusSpot();
  }

  /** @param {Line} line @param {number} index */
  function lineRow(line, index) {
    const taken = chosen(line);
    const isFirst = !index || lines[index - 1].row !== line.row;
    const isMany = line.column !== null && (lines[index + 1]?.row === line.row || !isFirst);
    const spots = SIDES.map((side, spot) => {
      const sideCell = line[side];
      const isTaken = taken?.take === side;
      const absent = side === "base" ? "absent" : "deleted";
      const words = sideCell ? (sideCell.text ?? "null") : absent;
      return h(
        "td",
        { role: "gridcell", class: isTaken ? "lnb-ct-taken" : null },
        h(
          "button",
          {
            class: `lnb-ct-side${sideCell && sideCell.text !== null ? "" : " lnb-faint"}`,
            type: "button",
            "aria-pressed": String(isTaken),
            tabindex: tabOf(index, spot),
            title: applies(line, side) ? words : `${words}: cannot be applied to this row`,
            "aria-disabled": applies(line, side) ? null : "true",
            on: {
              click: () => {
                if (applies(line, side)) choose({ row: line.row, column: line.column, take: side });
              },
              focus: () => rove(index, spot),
            },
          },
          isTaken ? h("i", { "aria-hidden": "true" }, "✓ ") : null,
          words,
        ),
      );
    });
    return h(
      "tr",
      { role: "row", class: isFirst ? "lnb-ct-first" : null },
      h(
        "th",
        { scope: "row", role: "rowheader" },
        isFirst ? line.label : "",
        isFirst && isMany ? sideButtons(`row ${line.label}`, line.row, null) : null,
      ),
      h("td", { role: "gridcell" }, line.name ?? "whole row"),
      spots,
      h("td", { role: "gridcell" }, result(line, index, taken)),
    );
  }

  /** @param {Line} line @param {number} index @param {Choice | undefined} taken */
  function result(line, index, taken) {
    const editor = editors.get(keyOf(line.row, line.column));
    if (editor) return editor;
    const place = h("span", { class: "lnb-ct-result" });
    const words = titles();
    const shown = !taken
      ? h("em", { class: "lnb-ct-open" }, "to choose")
      : taken.take === "value"
        ? h("b", {}, `✎ ${taken.shown ?? "null"}`)
        : words[/** @type {Side} */ (taken.take)];
    show(
      place,
      shown,
      line.column === null
        ? null
        : h(
            "button",
            {
              class: "lnb-link",
              type: "button",
              tabindex: tabOf(index, 3),
              "aria-label": `write a value for ${line.name} of row ${line.label}`,
              on: { click: () => edit(line, place), focus: () => rove(index, 3) },
            },
            "Write…",
          ),
    );
    return place;
  }

  /** @param {Line} line @param {HTMLElement} place */
  function edit(line, place) {
    editors.set(keyOf(line.row, line.column), place);
    const close = () => {
      editors.delete(keyOf(line.row, line.column));
      paint();
    };
    const now = chosen(line);
    const side = now && now.take !== "value" ? line[/** @type {Side} */ (now.take)] : line.ours;
    const start = now?.take === "value" ? now.value : side?.text;
    const problem = h("small", { class: "lnb-cq-stop", role: "alert" });
    /** @type {HTMLInputElement} */
    const box = h("input", {
      class: "lnb-input",
      "aria-label": `value of ${line.name} for row ${line.label}`,
      value: start ?? "",
      spellcheck: "false",
    });
    /** @param {string | null} text */
    const set = async (text) => {
      const args = { ...more, plan: plan.plan, column: line.column, text };
      try {
        const { result: found } = await ctx.kernel.ask(valueRequest, args);
        if (!found.problem) {
          const { row, column } = line;
          return choose({ row, column, take: "value", value: text, shown: found.shown });
        }
        problem.textContent = found.problem;
        box.setAttribute("aria-invalid", "true");
        box.focus();
      } catch (error) {
        show(place, ctx.problem(/** @type {Lnb.Failure} */ (error)));
      }
      return undefined;
    };
    box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") close();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      if (event.key === "Enter") set(box.value);
    });
    /** @param {string} words @param {() => void} act */
    const button = (words, act) =>
      h("button", { class: "lnb-button", type: "button", on: { click: act } }, words);
    show(
      place,
      box,
      button("Set", () => set(box.value)),
      button("Null", () => set(null)),
      button("Cancel", close),
      problem,
    );
    box.focus();
    box.select();
  }

  // --- keyboard ---------------------------------------------------------------------------------

  /** @param {number} line @param {number} spot */
  const tabOf = (line, spot) => (line === cursor.line && spot === cursor.spot ? "0" : "-1");

  /** @param {number} line @param {number} spot */
  function spotAt(line, spot) {
    const row = body.querySelectorAll("tbody tr")[line];
    const buttons = row?.querySelectorAll(".lnb-ct-side, .lnb-link") ?? [];
    return /** @type {HTMLElement | undefined} */ (buttons[Math.min(spot, buttons.length - 1)]);
  }

  /** @param {number} line @param {number} spot */
  function rove(line, spot) {
    spotAt(cursor.line, cursor.spot)?.setAttribute("tabindex", "-1");
    cursor = { line, spot };
    spotAt(line, spot)?.setAttribute("tabindex", "0");
  }

  function focusSpot() {
    spotAt(cursor.line, cursor.spot)?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const target = /** @type {Element} */ (event.target);
    if (!target.closest(".lnb-ct-table") || !lines[cursor.line]) return;
    /** @type {Record<string, [number, number] | undefined>} */
    const moves = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [10, 0],
      PageUp: [-10, 0],
    };
    const move = moves[event.key];
    const side = KEYS[event.key];
    const line = lines[cursor.line];
    if (move) {
      const to = Math.max(0, Math.min(lines.length - 1, cursor.line + move[0]));
      rove(to, Math.max(0, Math.min(3, cursor.spot + move[1])));
      const spot = spotAt(cursor.line, cursor.spot);
      spot?.focus();
    } else if (side && applies(line, side)) {
      choose({ row: line.row, column: line.column, take: side });
    } else if (event.key === "e" && line.column !== null) {
      /** @type {HTMLElement | undefined} */ (spotAt(cursor.line, 3))?.click();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // --- loading ----------------------------------------------------------------------------------

  /** @param {number} from */
  function load(from) {
    first = from;
    cursor = { line: 0, spot: 1 };
    editors.clear();
    request(
      cellsRequest,
      { ...more, plan: plan.plan, first, count: PAGE },
      ({ result: found }) => {
        lines = found.lines;
        paint();
      },
      (error) => show(body, ctx.problem(/** @type {Lnb.Failure} */ (error))),
    );
  }

  return {
    element,
    /** Show the conflicts of a preview; the choices stay if it is of the same two versions. */
    put(/** @type {Lnb.Json} */ next) {
      const before = plan;
      plan = next;
      if (before?.source.label === next.source.label && before.target.label === next.target.label)
        return;
      choices.clear();
      lines = [];
      load(0);
    },
    /** Forget the choices: the form asks for something else. */
    reset() {
      clearTimeout(waiting);
      plan = null;
      choices.clear();
      editors.clear();
    },
  };
}
