// Branches and tags: two lists, a card for each ref, forms with their consequences, and merging.

import { count, h, button as makeButton, plural, setText, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { loadViews } from "../js/tab_host.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { mergePage } from "./merge_page.js";
import { placeText, refCard } from "./ref_card.js";
import { refForm } from "./ref_form.js";
import { branchesWord, refList } from "./ref_list.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountBranches(el, ctx) {
  const guard = writeGuard(ctx);
  const status = h("p", { class: "lnb-br-status", role: "status" });
  const problem = h("div", {});
  const form = h("div", { class: "lnb-br-form" });
  const numFound = h("small", { class: "lnb-br-found" });
  /** @param {string} words @param {() => void} act @param {string} [title] */
  const button = (words, act, title) => makeButton(words, act, { title });
  const tools = { guard, done, close: () => show(form), show: open, create, merge, review };
  const list = refList(ctx, {
    open: (kind, line) => open(kind, line.name),
    listed: (page) => {
      show(problem);
      paintFound(page);
      if (!merging()) ctx.code(page.code);
    },
    failed: (error) => show(problem, ctx.problem(error)),
  });
  const kinds = ["branch", "tag"].map((kind) =>
    h("button", { class: "lnb-choice", type: "button", on: { click: () => setKind(kind, "") } }),
  );
  /** @type {HTMLInputElement} */
  const filter = h("input", {
    class: "lnb-input",
    type: "search",
    "aria-label": "filter by name or version",
    placeholder: "filter",
    spellcheck: "false",
    on: { input: () => list.set({ text: filter.value }) },
  });
  const merges = mergePage(ctx, { ...tools, close: () => showPage(false) });
  const lists = h(
    "div",
    { class: "lnb-br-lists" },
    h(
      "div",
      { class: "lnb-br-bar" },
      h("div", { class: "lnb-choices", role: "group", "aria-label": "list" }, kinds),
      filter,
      numFound,
      h(
        "span",
        { class: "lnb-br-acts" },
        ctx.writes ? null : lockButton(ctx),
        button("New branch…", () => create("branch")),
        button("New tag…", () => create("tag")),
        button(
          "Merge…",
          () => merge({}),
          "merge a branch, pick or revert a change: a preview first",
        ),
      ),
    ),
    form,
    problem,
    list.element,
  );
  const reviews = h("div", { class: "lnb-br-review", hidden: true });
  el.append(h("div", { class: "lnb-branches" }, status, lists, merges.element, reviews));

  const merging = () => !merges.element.hidden;

  /** @param {boolean} merge */
  function showPage(merge) {
    reviews.hidden = true;
    show(reviews);
    merges.element.hidden = !merge;
    lists.hidden = merge;
    if (!merge) list.refresh();
  }

  /** @param {string} kind @param {string} [text] */
  function setKind(kind, text = filter.value) {
    filter.value = text;
    kinds.forEach((refKind, index) =>
      refKind.setAttribute("aria-pressed", String((index === 0) === (kind === "branch"))),
    );
    list.set({ kind, text, sort: "name", descending: false });
  }

  /** @param {Lnb.Json} page */
  function paintFound({ branches, tags, damaged, matching, kind }) {
    setText(kinds[0], branchesWord(branches));
    setText(kinds[1], plural(tags, "tag"));
    const all = kind === "branch" ? branches : tags;
    const words = [
      matching < all && `${count(matching)} found`,
      damaged && `${plural(damaged, "tag")} cannot be read`,
    ];
    setText(numFound, words.filter(Boolean).join(" · "));
  }

  /** @param {string} kind @param {string | null} name */
  async function open(kind, name) {
    const title = `${kind === "tag" ? "Tag" : "Branch"} ${name ?? "main"}`;
    try {
      const { result } = await ctx.kernel.ask("refs.show", { kind, name });
      ctx.detail.show({
        title: `${kind === "tag" ? "Tag" : "Branch"} ${result.label}`,
        content: refCard(ctx, result, tools),
        focus: true,
      });
    } catch (error) {
      ctx.detail.show({ title, content: ctx.problem(error) });
    }
  }

  /** @param {string} kind @param {string} [placeWords] */
  function create(kind, placeWords = placeText(ctx.screen())) {
    showPage(false);
    show(form, refForm(ctx, { kind, action: "create", at: placeWords }, tools));
    form.querySelector("input")?.focus();
  }

  /** @param {{kind?: string, source?: string, into?: string}} target */
  function merge(target) {
    showPage(true);
    show(status);
    merges.open(target);
  }

  /** The review of a branch is a view that is loaded when the first one is opened.
   * @param {import("../review/review.js").ReviewOf} of
   */
  async function review(of) {
    showPage(true);
    merges.element.hidden = true;
    reviews.hidden = false;
    ctx.detail.clear();
    show(status);
    show(reviews, h("p", { class: "lnb-loading" }, "Loading…"));
    try {
      const views = await loadViews(ctx.kernel, "review/review.js");
      if (reviews.hidden) return;
      show(reviews);
      const mount = /** @type {(...args: unknown[]) => unknown} */ (views.mount);
      mount(reviews, ctx, { ...of, merge, close: () => showPage(false) });
    } catch (error) {
      const retry = () => review(of);
      show(reviews, ctx.problem(error, retry));
    }
  }

  /**
   * Something was written: say it, show it.
   * @param {Lnb.Json} result @param {{travel?: boolean}} [how]
   */
  function done({ words, place, parts, code }, { travel = false } = {}) {
    const { branch, version } = place ?? {};
    const away = place && (branch !== ctx.screen().branch || version !== ctx.screen().version);
    show(
      status,
      h("span", {}, `✓ ${words}`),
      away && !travel
        ? makeButton(`Go to ${place.label}`, () => ctx.travel({ branch, version }), {
            class: "lnb-link",
          })
        : null,
    );
    ctx.announce(words);
    ctx.refresh(parts);
    if (code) ctx.code(code);
    if (
      travel ||
      (away &&
        ctx.screen().branch !== null &&
        !parts.timeline.lanes?.some(
          (/** @type {Lnb.TimelineLane} */ lane) => lane.branch === ctx.screen().branch,
        ))
    )
      ctx.travel({ branch, version });
  }

  setKind("branch");
  let first = true;
  ctx.onScreen(
    (_screen, patched) => {
      if (!patched) status.querySelector("button")?.remove(); // it leads from where one was
      if (ctx.kernel.state === "static")
        return show(
          problem,
          h(
            "p",
            { class: "lnb-faint" },
            "Branches and tags are read by the kernel. Run the cell to see them.",
          ),
        );
      if (!first) list.refresh();
      first = false;
      return undefined;
    },
    ["timeline"],
  );
  return {
    /**
     * @param {{tag?: string, branch?: string, merge?: {source?: string, into?: string},
     *   review?: import("../review/review.js").ReviewOf}} target
     */
    open({ tag, branch, merge: wanted, review: reviewed }) {
      if (reviewed) return review(reviewed);
      if (wanted) return merge(wanted);
      setKind(tag === undefined ? "branch" : "tag", tag ?? branch ?? "");
      return open(tag === undefined ? "branch" : "tag", tag ?? branch ?? null);
    },
  };
}

export default widget(mountBranches, "branches and tags");
