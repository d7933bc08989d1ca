// One branch or tag in the pane of details: what it is, what can be done with it, and what comes of
// that.

import { button, h, show } from "../js/dom.js";
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

class RefCard {
  out = h("div.lnb-rc-out");

  /**
   * @param {Lnb.Context} ctx @param {Lnb.Json} model see refs/ref_list.py
   * @param {CardTools} tools
   */
  constructor(ctx, model, tools) {
    this.ctx = ctx;
    this.model = model;
    this.tools = tools;
    this.isBranch = model.kind === "branch";
    const [tags, branches] = this.isBranch
      ? ["Tags on it", "Branches from it"]
      : ["Other tags there", "Branches that started there"];
    this.element = h(
      "div.lnb-rc",
      model.note && h("p.lnb-rc-note", model.note),
      factList(model.facts),
      h("p.lnb-rf-acts", this.actions()),
      this.out,
      model.metadata.length > 0 && section("Metadata", factList(model.metadata)),
      this.related(tags, model.tags, "tag"),
      this.related(branches, model.children, "branch"),
    );
  }

  actions() {
    const { ctx, tools, isBranch } = this;
    const { name, place, fork } = this.model;
    const parent = fork?.branch ?? null;
    const compare = () => ctx.go("changes", { a: bare(fork), b: bare(place) });
    const source = name === null ? { into: "main" } : { source: name, into: parent ?? "main" };
    const canCompare = fork && place && ctx.has("changes");
    const canReview = isBranch && ctx.has("refs") && ctx.kernel.state !== "static";
    return [
      place && button("Go to it", () => ctx.travel(bare(place))),
      canCompare &&
        button("Compare with fork", compare, {
          title: `what changed from ${fork.label} to ${place.label}`,
        }),
      isBranch && button("Merge…", () => tools.merge(source)),
      name !== null &&
        canReview &&
        button("Review…", () => tools.review({ branch: name, into: parent }), {
          title: "what it changes, checks, and the discussion",
        }),
      place && button("New tag…", () => tools.create("tag", placeText(place))),
      place && button("New branch…", () => tools.create("branch", placeText(place))),
      !isBranch && button("Move…", () => this.move()),
      name !== null && button("Note…", () => this.writeNote()),
      name !== null && button("Delete…", () => this.explain()),
    ];
  }

  /** @param {...Lnb.Child} content */
  put(...content) {
    show(this.out, ...content);
    this.out.scrollIntoView({ block: "nearest" });
  }

  clear = () => show(this.out);

  again = () => this.tools.show(this.model.kind, this.model.name);

  move() {
    const { kind, name, seen } = this.model;
    const tools = { ...this.tools, again: this.again, close: this.clear };
    const place = placeText(this.ctx.screen());
    this.put(refForm(this.ctx, { kind, action: "move", name, seen, at: place }, tools));
  }

  /** Show what depends on the ref before it is deleted. */
  async explain() {
    const { ctx } = this;
    const { kind, name, label } = this.model;
    const deletion = await longAction(ctx, this.out, {
      type: "refs.explain",
      args: { kind, name },
      words: "Checking what depends on it…",
      again: () => this.explain(),
    });
    if (!deletion) return;
    ctx.code(deletion.code);
    const freed = h("div");
    const act = h("span");
    /** @param {boolean} isRight whether the word was typed that confirms it */
    const paintAct = (isRight) => {
      const remove = () => this.remove(deletion.seen, typed.value());
      const refused = deletion.refused || !isRight;
      show(act, this.tools.guard.button(deletion.button, remove, { refused }));
    };
    const typed = typedWord(deletion.refused ? "" : deletion.typed, "", paintAct);
    paintAct(typed.right());
    this.put(
      h(
        "section.lnb-rf",
        { "aria-label": `delete ${kind} ${label}` },
        h("h4.lnb-br-title", `Delete ${kind} ${label}?`),
        consequenceList(deletion.consequences),
        freed,
        typed.element,
        h(
          "p.lnb-rf-acts",
          act,
          !this.isBranch && button("How many bytes?", () => this.countBytes(freed)),
          button("Keep it", this.clear),
        ),
      ),
    );
  }

  /** @param {HTMLElement} place */
  async countBytes(place) {
    const result = await longAction(this.ctx, place, {
      type: "refs.bytes",
      args: { name: this.model.name },
      words: "Counting…",
      noun: "manifest",
    });
    if (result) show(place, h("p", result.words));
  }

  /** @param {Lnb.Json} seen the record that was shown @param {string} typed */
  async remove(seen, typed) {
    const { kind, name } = this.model;
    const result = await longAction(this.ctx, this.out, {
      type: "refs.delete",
      args: { kind, name, seen, typed },
      words: "Deleting…",
      again: this.again,
    });
    if (!result) return;
    this.ctx.detail.clear();
    this.tools.done(result);
  }

  writeNote() {
    const { kind, name, note } = this.model;
    const box = h("input.lnb-input.lnb-rf-note", {
      "aria-label": "note",
      value: note,
      maxlength: "2000",
    });
    const save = async () => {
      try {
        const args = { kind, name, note: box.value, before: note };
        const { result } = await this.ctx.kernel.ask("refs.note", args);
        this.tools.done(result);
        this.again();
      } catch (error) {
        show(this.out, this.ctx.problem(error), button("Refresh", this.again));
      }
    };
    const acts = [this.tools.guard.button("Save", save), button("Cancel", this.clear)];
    this.put(h("p.lnb-rf-acts", box, acts));
  }

  /** @param {string} title @param {Lnb.Json} refs @param {string} kind */
  related(title, { lines, hidden }, kind) {
    if (!lines.length) return null;
    const items = lines.map((/** @type {Lnb.Json} */ line) => {
      const open = () => this.tools.show(kind, line.name);
      return h("li", button(line.label, open, { class: "lnb-link" }), h("small", line.place.label));
    });
    const more = hidden > 0 && h("p.lnb-faint", `and ${hidden} more`);
    return section(title, h("ul.lnb-rc-list", items), more);
  }
}

/**
 * @param {Lnb.Context} ctx @param {Lnb.Json} model see refs/ref_list.py
 * @param {CardTools} tools
 */
export function refCard(ctx, model, tools) {
  return new RefCard(ctx, model, tools).element;
}

/** @param {string} title @param {...Lnb.Child} content */
const section = (title, ...content) =>
  h("section.lnb-br-section", h("h4.lnb-br-title", title), ...content);

/** @param {Lnb.Entry[]} entries */
const factList = (entries) =>
  h(
    "dl.lnb-rc-facts",
    entries.map(({ label, value }) => h("div", h("dt", label), h("dd", value))),
  );

/** @param {Lnb.Place} place @returns {Lnb.Place} */
const bare = ({ branch, version }) => ({ branch, version });

/** A place as the boxes take it. @param {Lnb.Place} place */
export function placeText({ branch, version }) {
  return `${branch ?? "main"}:${version}`;
}
