// One branch or tag in the pane of details: what it is, what can be done with it, and what comes of
// that.

import { h, button as makeButton, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { consequenceList, typedWord } from "../stage/consequence_card.js";
import { refForm } from "./ref_form.js";

/**
 * @typedef {Object} CardActions
 * @property {(kind: string, name: string | null) => void} show open another card
 * @property {(kind: string, at?: string) => void} create
 * @property {(target: {source?: string, into?: string}) => void} merge
 * @property {(of: import("../review/review.js").ReviewOf) => void} review
 * @typedef {import("./ref_form.js").RefTools & CardActions} CardTools
 */

/**
 * @param {Lnb.Context} ctx @param {Lnb.Json} model see refs/ref_list.py
 * @param {CardTools} tools
 */
export function refCard(ctx, model, tools) {
  const { kind, name, place, fork, seen } = model;
  const out = h("div", { class: "lnb-rc-out" });
  /** @param {string} words @param {() => unknown} act @param {string | null} [title] */
  const button = (words, act, title = null) => makeButton(words, act, { title });
  const again = () => tools.show(kind, name);
  const isBranch = kind === "branch";
  /** @param {...Lnb.Child} content */
  const put = (...content) => {
    show(out, ...content);
    out.scrollIntoView({ block: "nearest" });
  };

  function move() {
    put(
      refForm(
        ctx,
        { kind, action: "move", name, seen, at: placeText(ctx.screen()) },
        { ...tools, again, close: () => show(out) },
      ),
    );
  }

  async function explain() {
    const deletion = await longAction(ctx, out, {
      type: "refs.explain",
      args: { kind, name },
      words: "Checking what depends on it…",
      again: explain,
    });
    if (!deletion) return;
    ctx.code(deletion.code);
    const freed = h("div", {});
    const count = isBranch
      ? null
      : button("How many bytes?", async () => {
          const freedBytes = await longAction(ctx, freed, {
            type: "refs.bytes",
            args: { name },
            words: "Counting…",
            noun: "manifest",
          });
          if (freedBytes) show(freed, h("p", {}, freedBytes.words));
        });
    const word = deletion.refused ? "" : deletion.typed;
    const act = h("span", {});
    /** @param {boolean} right */
    const paintAct = (right) =>
      show(
        act,
        tools.guard.button(deletion.button, () => remove(deletion.seen, typed.value()), {
          refused: deletion.refused || !right,
        }),
      );
    const typed = typedWord(word, "", paintAct);
    paintAct(typed.right());
    put(
      h(
        "section",
        { class: "lnb-rf", "aria-label": `delete ${kind} ${model.label}` },
        h("h4", { class: "lnb-br-title" }, `Delete ${kind} ${model.label}?`),
        consequenceList(deletion.consequences),
        freed,
        typed.element,
        h(
          "p",
          { class: "lnb-rf-acts" },
          act,
          count,
          button("Keep it", () => show(out)),
        ),
      ),
    );
  }

  /** @param {Lnb.Json} record @param {string} typed */
  async function remove(record, typed) {
    const result = await longAction(ctx, out, {
      type: "refs.delete",
      args: { kind, name, seen: record, typed },
      words: "Deleting…",
      again,
    });
    if (!result) return;
    ctx.detail.clear();
    tools.done(result);
  }

  function write() {
    const box = h("input", {
      class: "lnb-input lnb-rf-note",
      "aria-label": "note",
      value: model.note,
      maxlength: "2000",
    });
    const save = async () => {
      try {
        const { result } = await ctx.kernel.ask("refs.note", {
          kind,
          name,
          note: box.value,
          before: model.note,
        });
        tools.done(result);
        again();
      } catch (error) {
        show(out, ctx.problem(error), button("Refresh", again));
      }
    };
    put(
      h(
        "p",
        { class: "lnb-rf-acts" },
        box,
        tools.guard.button("Save", save),
        button("Cancel", () => show(out)),
      ),
    );
  }

  /** @param {string} title @param {Lnb.Json} refs @param {string} of */
  const related = (title, refs, of) =>
    refs.lines.length
      ? h(
          "section",
          { class: "lnb-br-section" },
          h("h4", { class: "lnb-br-title" }, title),
          h(
            "ul",
            { class: "lnb-rc-list" },
            refs.lines.map((/** @type {Lnb.Json} */ line) =>
              h(
                "li",
                {},
                makeButton(line.label, () => tools.show(of, line.name), { class: "lnb-link" }),
                h("small", {}, line.place.label),
              ),
            ),
          ),
          refs.hidden ? h("p", { class: "lnb-faint" }, `and ${refs.hidden} more`) : null,
        )
      : null;
  /** @param {Lnb.Entry[]} entries */
  const pairs = (entries) =>
    h(
      "dl",
      { class: "lnb-rc-facts" },
      entries.map((entry) => h("div", {}, h("dt", {}, entry.label), h("dd", {}, entry.value))),
    );
  const acts = [
    place && button("Go to it", () => ctx.travel({ branch: place.branch, version: place.version })),
    fork &&
      place &&
      ctx.has("changes") &&
      button(
        "Compare with fork",
        () =>
          ctx.go("changes", {
            a: { branch: fork.branch, version: fork.version },
            b: { branch: place.branch, version: place.version },
          }),
        `what changed from ${fork.label} to ${place.label}`,
      ),
    isBranch &&
      button("Merge…", () =>
        tools.merge(
          name === null ? { into: "main" } : { source: name, into: fork?.branch ?? "main" },
        ),
      ),
    name !== null &&
      isBranch &&
      ctx.has("refs") &&
      ctx.kernel.state !== "static" &&
      button(
        "Review…",
        () => tools.review({ branch: name, into: fork?.branch ?? null }),
        "what it changes, checks, and the discussion",
      ),
    place && button("New tag…", () => tools.create("tag", placeText(place))),
    place && button("New branch…", () => tools.create("branch", placeText(place))),
    !isBranch && button("Move…", move),
    name !== null && button("Note…", write),
    name !== null && button("Delete…", explain),
  ];
  return h(
    "div",
    { class: "lnb-rc" },
    model.note ? h("p", { class: "lnb-rc-note" }, model.note) : null,
    pairs(model.facts),
    h("p", { class: "lnb-rf-acts" }, acts),
    out,
    model.metadata.length
      ? h(
          "section",
          { class: "lnb-br-section" },
          h("h4", { class: "lnb-br-title" }, "Metadata"),
          pairs(model.metadata),
        )
      : null,
    related(isBranch ? "Tags on it" : "Other tags there", model.tags, "tag"),
    related(
      isBranch ? "Branches from it" : "Branches that started there",
      model.children,
      "branch",
    ),
  );
}

/** A place as the boxes take it. @param {Lnb.Place} place */
export function placeText({ branch, version }) {
  return `${branch ?? "main"}:${version}`;
}
