// One staged change: what it does, where it runs, whom it meets, and what can be done with it.

import { brokenExpectations } from "../checks/broken_expectations.js";
import { ageOf, count, h, button as makeButton, plural } from "../js/dom.js";
import { errorCard } from "../js/error_card.js";
import { titleOfOperation } from "../js/operations.js";
import { sampleTable } from "../js/sample_table.js";
import { consequenceCard } from "./consequence_card.js";

/**
 * @typedef {Lnb.Json} Card see stage/card_view.py
 * @typedef {Object} CardActions
 * @property {(message: string, approval?: Lnb.Args) => void} commit
 * @property {(engine: string | null) => void} prepare
 * @property {() => void} rerun @property {() => void} look @property {() => void} remove
 * @property {(edit: Lnb.Args) => void} drop @property {HTMLElement | null} conflicts
 * @property {() => void} earlier @property {() => void} undo @property {() => void} go
 * @typedef {(words: string, work: () => void, title?: string | null, kind?: string) => HTMLElement}
 *   MakeButton
 */

/** @type {Record<string, string>} */
const STATES = {
  planned: "planned",
  ready: "ready",
  committed: "✓ committed",
  unknown: "? outcome unknown",
  failed: "! not committed",
};
/** @type {Record<string, string>} */
const MARKS = { compatible: "✓", rebasable: "↷", retryable: "!", incompatible: "✕" };
/** @type {Record<string, string>} */
const ENGINES = { local: "here", spark: "on Spark" };

/** @type {Record<string, string>} */
const CHANGES = { new: "+", changed: "~", dropped: "−" };

/** Whether a card can still be committed. */
export const isOpen = (/** @type {Card} */ card) =>
  ["planned", "ready", "failed"].includes(card.state);

/**
 * @param {Card} card @param {{first: boolean, locked: boolean}} how @param {CardActions} act
 */
export function stageCard(card, { first, locked }, act) {
  const open = isOpen(card);
  /** @type {{element: HTMLElement, button: HTMLElement} | null} */
  const review =
    open && card.review && card.state === "ready"
      ? consequenceCard(card, locked, act, () => messageOf(shown))
      : null;
  /** @type {MakeButton} */
  const button = (words, work, title = null, kind = "") =>
    makeButton(words, () => work(), {
      class: `lnb-button${kind}`,
      title,
      disabled: locked && work !== act.go,
    });
  const body = [
    card.lines.length
      ? h(
          "ul.lnb-sg-lines",
          card.lines.map((/** @type {string} */ line) => h("li", line)),
        )
      : null,
    card.facts.length
      ? h(
          "dl.lnb-sg-facts",
          card.facts.map((/** @type {Lnb.Entry} */ fact) =>
            h("div", h("dt", fact.label), h("dd", fact.value)),
          ),
        )
      : null,
    card.problem ? errorCard(card.problem) : null,
    act.conflicts,
    card.edits ? editList(card.edits, locked, act) : null,
    whereLine(card, open, locked, act),
    card.samples.length && card.state !== "committed"
      ? h("div.lnb-sg-samples", card.samples.map(sampleTable))
      : null,
    card.fragments.length && card.state !== "committed" ? fragments(card) : null,
    (card.state === "ready" || card.state === "failed") && card.has_rows ? meetings(card) : null,
    open && card.expectations ? brokenExpectations(card.expectations) : null,
    review?.element,
    foot(card, { locked, button, act, commit: review?.button ?? null }),
  ];
  /** @type {HTMLElement} */
  const shown = h(
    "article",
    {
      class: `lnb-sg-card lnb-sg-is-${card.state}`,
      "aria-label": card.title,
      "data-card": card.id,
    },
    h(
      "header.lnb-sg-head",
      h("strong", card.title),
      h("span.lnb-badge", card.on),
      h("span.lnb-sg-state", STATES[card.state]),
      open && !first
        ? button(
            "↑",
            act.earlier,
            "Commit this one earlier: the order matters for restore and overwrite, " +
              "and for the version numbers",
          )
        : null,
      makeButton("×", () => act.remove(), {
        class: "lnb-close",
        "aria-label": `remove: ${card.title}`,
        title: open ? "Discard the change and delete its files" : "Remove from the list",
        disabled: locked && open,
      }),
    ),
    body,
  );
  return shown;
}

/**
 * The edits of a draft, each with its way back.
 * @param {Lnb.Json} edits @param {boolean} locked @param {CardActions} act
 */
function editList({ cells, added, deleted, hidden }, locked, act) {
  /** @param {string} sign @param {string} look @param {Lnb.Json} words @param {Lnb.Args} edit */
  const line = (sign, look, words, edit) =>
    h(
      "li",
      { class: look },
      h("i", { "aria-hidden": "true" }, sign),
      h("span", words),
      makeButton("×", () => act.drop(edit), {
        class: "lnb-close",
        "aria-label": "take this edit back",
        disabled: locked,
      }),
    );
  const value = (/** @type {string | null} */ text) =>
    text === null ? h("em.lnb-faint", "null") : text || h("em", "empty");
  return h(
    "ul.lnb-sg-edits",
    { "aria-label": "edits" },
    cells.map((/** @type {Lnb.Json} */ shownCell) =>
      line(
        "~",
        "lnb-sg-edited",
        [
          h("b", `${shownCell.name}, row id ${shownCell.row}: `),
          // Each in its own direction: between two texts in Persian the arrow would be turned.
          h("del", { dir: "auto" }, value(shownCell.before)),
          " → ",
          h("ins", { dir: "auto" }, value(shownCell.after)),
        ],
        { kind: "cell", row: shownCell.row, column: shownCell.column },
      ),
    ),
    added.map((/** @type {Lnb.Json} */ newRow) =>
      line("+", "lnb-sg-new", newRow.values || "a row of nulls", {
        kind: "added",
        row: newRow.row,
      }),
    ),
    deleted.map((/** @type {string} */ row) =>
      line("−", "lnb-sg-gone", `row id ${row} is deleted`, { kind: "deleted", row }),
    ),
    hidden ? h("li.lnb-faint", `and ${plural(hidden, "more edit")}`) : null,
  );
}

/** The commit message in a card. @param {HTMLElement} card */
function messageOf(card) {
  /** @type {HTMLInputElement | null} */
  const box = card.querySelector(".lnb-sg-message");
  return box?.value ?? "";
}

/** @param {Card} card @param {boolean} open @param {boolean} locked @param {CardActions} act */
function whereLine(card, open, locked, act) {
  const { where } = card;
  if (card.state === "committed" || !where) return null;
  const done = card.state === "planned" ? "will run" : "ran";
  const much =
    where.tasks > 1 && !/ tasks?$/.test(where.reason)
      ? ` · ${where.size} in ${plural(where.tasks, "task")}`
      : ""; // a reason may be just that
  const words = `${done} ${ENGINES[where.name]}: ${where.reason}${much}`;
  if (!where.movable || !open) return h("p.lnb-sg-where", words);
  /** @type {HTMLSelectElement} */
  const select = h(
    "select.lnb-input",
    {
      "aria-label": "where it runs",
      disabled: locked,
      on: { change: () => act.prepare(select.value), keydown: (event) => event.stopPropagation() },
    },
    [
      ["auto", "automatic"],
      ["local", "here"],
      ["spark", "Spark"],
    ].map(([value, label]) => h("option", { value, selected: value === where.asked }, label)),
  );
  return h("p.lnb-sg-where", words, " ", select);
}

/** @param {Card} card */
function fragments(card) {
  const rows = card.fragments.map((/** @type {Lnb.Json} */ stored) =>
    h(
      "li",
      `${CHANGES[stored.change]} fragment ${stored.id}: ` +
        `${count(stored.before)} → ${plural(stored.after, "row")}`,
    ),
  );
  return h(
    "details.lnb-sg-fragments",
    h("summary", `${plural(card.num_fragments, "changed fragment")}`),
    h("ul", rows),
  );
}

/** The rows that both change, as far as they are named. @param {Lnb.Json} meeting */
function sameRows({ rows, more_rows: more }) {
  if (!rows.length) return "";
  return `: ${rows.join("; ")}${more ? ` and ${count(more)} more` : ""}`;
}

/** What others committed since, and what that means. @param {Card} card */
function meetings(card) {
  if (card.checking)
    return h(
      "p.lnb-sg-checking.lnb-faint",
      { role: "status" },
      `… Checking what others committed since ${card.on}`,
    );
  if (!card.meetings.length) return h("p.lnb-sg-calm", `✓ No other commits since ${card.on}`);
  return h(
    "div.lnb-sg-meetings",
    { role: "status" },
    h("p", `${plural(card.meetings.length, "version")} by others since ${card.on}:`),
    h(
      "ul",
      card.meetings.map((/** @type {Lnb.Json} */ meeting) =>
        h(
          "li",
          { class: `lnb-sg-${meeting.verdict}` },
          h("i", { "aria-hidden": "true" }, MARKS[meeting.verdict]),
          h(
            "span",
            h("b", `version ${meeting.version}: ${titleOfOperation(meeting.operation)}`),
            meeting.author && ` by ${meeting.author}`,
            meeting.time && [" ", ageOf(meeting.time)],
            meeting.message && ` “${meeting.message}”`,
            `: ${meeting.words}`,
            meeting.overlap ? h("small", ` (${meeting.overlap}${sameRows(meeting)})`) : null,
          ),
        ),
      ),
    ),
  );
}

/**
 * @param {Card} card
 * @param {{locked: boolean, button: MakeButton, act: CardActions, commit: HTMLElement | null}} how
 *   `commit`: the button of an act that takes something away
 */
function foot(card, { locked, button, act, commit: named }) {
  if (card.outcome) {
    const { version, text } = card.outcome;
    return h(
      "p.lnb-sg-foot",
      h("span.lnb-sg-done", `✓ ${text}`),
      version === null
        ? null
        : makeButton(`Show version ${version}`, act.go, { class: "lnb-link" }),
      card.outcome.undo
        ? button(
            `Undo: restore version ${card.outcome.undo.version}`,
            act.undo,
            "Stages a restore as a new version; nothing is lost",
          )
        : null,
    );
  }
  if (card.state === "unknown")
    return h(
      "p.lnb-sg-foot",
      button("Check again", act.look, "Check whether the commit was made"),
      button(
        "Commit again",
        () => act.commit(""),
        "Safe: the same transaction is committed only once",
      ),
    );
  const message = h("input.lnb-input.lnb-sg-message", {
    placeholder: "why (commit message)",
    "aria-label": "commit message",
    value: card.message,
    disabled: locked,
    on: { keydown: (event) => event.stopPropagation() },
  });
  const blocked = card.meetings.some(
    (/** @type {Lnb.Json} */ meeting) =>
      meeting.verdict === "retryable" || meeting.verdict === "incompatible",
  );
  const refused = card.expectations?.refused ? "The gate of the expectations refuses it" : null;
  const rerun =
    card.meetings.length || card.state === "failed"
      ? button(
          "Re-run on the newest version",
          act.rerun,
          "Plan this change again on the newest version",
          blocked || card.state === "failed" ? " lnb-sg-go" : "",
        )
      : null;
  const commit =
    card.state === "failed"
      ? null
      : (named ??
        button(
          "Commit",
          () => act.commit(message.value),
          refused ?? (blocked ? "A commit now would be refused" : null),
          blocked || card.checking ? "" : " lnb-sg-go",
        ));
  if (commit && refused) commit.setAttribute("disabled", "");
  const isAction = !card.has_rows; // tags, branches and clean-ups have no message
  return h(
    "p.lnb-sg-foot",
    card.state === "failed" || isAction ? null : message,
    card.state === "planned"
      ? button(
          "Prepare",
          () => act.prepare(null),
          "Run the work now and look at the result; nothing is committed",
        )
      : null,
    rerun,
    commit,
  );
}
