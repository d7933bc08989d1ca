// Branches and tags: two lists, a card for each ref, forms with their consequences, and merging.

import { button, count, h, plural, setText, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { loadViews } from "../js/tab_host.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { MergePage } from "./merge_page.js";
import { placeText, refCard } from "./ref_card.js";
import { refForm } from "./ref_form.js";
import { branchesWord, RefList } from "./ref_list.js";

const NO_KERNEL = "Branches and tags are read by the kernel. Run the cell to see them.";

class Branches {
  isFirst = true;
  status = h("p.lnb-br-status", { role: "status" });
  problem = h("div");
  form = h("div.lnb-br-form");
  matches = h("small.lnb-br-found");
  reviews = h("div.lnb-br-review", { hidden: true });
  kinds = [
    button("branches", () => this.setKind("branch", ""), { class: "lnb-choice" }),
    button("tags", () => this.setKind("tag", ""), { class: "lnb-choice" }),
  ];
  /** @type {HTMLInputElement} */
  filter = h("input.lnb-input", {
    type: "search",
    "aria-label": "filter by name or version",
    placeholder: "filter",
    spellcheck: "false",
    on: { input: () => this.list.set({ text: this.filter.value }) },
  });

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    /** What cards, forms and the merge page do with the tab. */
    this.tools = {
      guard: writeGuard(ctx),
      done: this.done,
      close: () => show(this.form),
      show: this.showCard,
      create: this.create,
      merge: this.merge,
      review: this.review,
    };
    this.list = new RefList(ctx, {
      open: (kind, line) => this.showCard(kind, line.name),
      listed: (page) => {
        show(this.problem);
        this.paintMatches(page);
        if (this.merges.element.hidden) ctx.code(page.code);
      },
      failed: (error) => show(this.problem, ctx.problem(error)),
    });
    this.merges = new MergePage(ctx, { ...this.tools, close: () => this.showPage(false) });
    this.lists = h("div.lnb-br-lists", this.bar(), this.form, this.problem, this.list.element);
    el.append(h("div.lnb-branches", this.status, this.lists, this.merges.element, this.reviews));
    this.setKind("branch");
    ctx.onScreen((_screen, patched) => this.follow(patched), ["timeline"]);
  }

  bar() {
    return h(
      "div.lnb-br-bar",
      h("div.lnb-choices", { role: "group", "aria-label": "list" }, this.kinds),
      this.filter,
      this.matches,
      h(
        "span.lnb-br-acts",
        this.ctx.writes ? null : lockButton(this.ctx),
        button("New branch…", () => this.create("branch")),
        button("New tag…", () => this.create("tag")),
        button("Merge…", () => this.merge({}), {
          title: "merge a branch, pick or revert a change: a preview first",
        }),
      ),
    );
  }

  /** @param {boolean} patched */
  follow(patched) {
    if (!patched) this.status.querySelector("button")?.remove(); // it leads from where one was
    if (this.ctx.kernel.state === "static") return show(this.problem, h("p.lnb-faint", NO_KERNEL));
    if (!this.isFirst) this.list.refresh();
    this.isFirst = false;
  }

  /**
   * @param {{tag?: string, branch?: string, merge?: {source?: string, into?: string},
   *   review?: import("../review/review.js").ReviewOf}} target
   */
  open({ tag, branch, merge, review }) {
    if (review) return this.review(review);
    if (merge) return this.merge(merge);
    const kind = tag === undefined ? "branch" : "tag";
    this.setKind(kind, tag ?? branch ?? "");
    return this.showCard(kind, tag ?? branch ?? null);
  }

  /** Show the page of merges, or the lists. @param {boolean} isMerge */
  showPage(isMerge) {
    this.reviews.hidden = true;
    show(this.reviews);
    this.merges.element.hidden = !isMerge;
    this.lists.hidden = isMerge;
    if (!isMerge) this.list.refresh();
  }

  /** @param {string} kind @param {string} [text] of the filter */
  setKind(kind, text = this.filter.value) {
    this.filter.value = text;
    this.kinds.forEach((choice, index) =>
      choice.setAttribute("aria-pressed", String((index === 0) === (kind === "branch"))),
    );
    this.list.set({ kind, text, sort: "name", descending: false });
  }

  /** @param {Lnb.Json} page */
  paintMatches({ branches, tags, damaged, matching, kind }) {
    setText(this.kinds[0], branchesWord(branches));
    setText(this.kinds[1], plural(tags, "tag"));
    const words = [
      matching < (kind === "branch" ? branches : tags) && `${count(matching)} found`,
      damaged && `${plural(damaged, "tag")} cannot be read`,
    ];
    setText(this.matches, words.filter(Boolean).join(" · "));
  }

  /** @param {string} kind @param {string | null} name */
  showCard = async (kind, name) => {
    const { ctx } = this;
    const title = (/** @type {string} */ label) => `${kind === "tag" ? "Tag" : "Branch"} ${label}`;
    try {
      const { result } = await ctx.kernel.ask("refs.show", { kind, name });
      const content = refCard(ctx, result, this.tools);
      ctx.detail.show({ title: title(result.label), content, focus: true });
    } catch (error) {
      ctx.detail.show({ title: title(name ?? "main"), content: ctx.problem(error) });
    }
  };

  /** Open the form of a new ref. @param {string} kind @param {string} [place] */
  create = (kind, place = placeText(this.ctx.screen())) => {
    this.showPage(false);
    show(this.form, refForm(this.ctx, { kind, action: "create", at: place }, this.tools));
    this.form.querySelector("input")?.focus();
  };

  /** @param {{kind?: string, source?: string, into?: string}} target */
  merge = (target) => {
    this.showPage(true);
    show(this.status);
    this.merges.open(target);
  };

  /** Open the review of a branch: a view that is loaded when the first one is opened.
   * @param {import("../review/review.js").ReviewOf} branch
   */
  review = async (branch) => {
    const { ctx, reviews } = this;
    this.showPage(true);
    this.merges.element.hidden = true;
    reviews.hidden = false;
    ctx.detail.clear();
    show(this.status);
    show(reviews, h("p.lnb-loading", "Loading…"));
    try {
      const views = await loadViews(ctx.kernel, "review/review.js");
      if (reviews.hidden) return;
      show(reviews);
      const mount = /** @type {(...args: unknown[]) => unknown} */ (views.mount);
      const close = () => this.showPage(false);
      mount(reviews, ctx, { ...branch, merge: this.merge, close });
    } catch (error) {
      const problem = ctx.problem(error, () => this.review(branch));
      show(reviews, problem);
    }
  };

  /**
   * Something was written: say it, show it.
   * @param {Lnb.Json} result @param {{travel?: boolean}} [options] go to the version written
   */
  done = ({ words, place, parts, code }, { travel = false } = {}) => {
    const { ctx } = this;
    const { branch, version } = place ?? {};
    const screen = ctx.screen();
    const isAway = place && (branch !== screen.branch || version !== screen.version);
    const go = () => ctx.travel({ branch, version });
    const link = button(`Go to ${place?.label}`, go, { class: "lnb-link" });
    show(this.status, h("span", `✓ ${words}`), isAway && !travel && link);
    ctx.announce(words);
    ctx.refresh(parts);
    if (code) ctx.code(code);
    const isDeleted =
      screen.branch !== null &&
      !parts.timeline.lanes?.some(
        (/** @type {Lnb.TimelineLane} */ lane) => lane.branch === screen.branch,
      );
    if (travel || (isAway && isDeleted)) go();
  };
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountBranches(el, ctx) {
  return new Branches(el, ctx);
}

export default widget(mountBranches, "branches and tags");
