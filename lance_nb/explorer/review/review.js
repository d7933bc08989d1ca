// The review of a branch against its target: what it changes (review_sections.js), and a discussion
// that others take part in at the same time (comment_box.js).

import { ageOf, button, h, plural, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { CommentBox } from "./comment_box.js";
import { SECTIONS, SectionPainter } from "./review_sections.js";

const EVERY_MS = 4000;
/** @type {Record<string, string>} */
const VERDICTS = { approval: "✓ approved", "changes-requested": "✗ asks for changes" };

/**
 * @typedef {{branch: string, into: string | null}} ReviewOf a branch and what it is merged into
 * @typedef {ReviewOf & {close: () => void,
 *   merge: (target: {source?: string, into?: string}) => void}} ReviewLink
 */

/** A review of the branch in view, by itself. @param {Lnb.Context} ctx @returns {ReviewLink} */
const alone = (ctx) => ({
  branch: ctx.screen().branch ?? "main",
  into: null,
  close() {},
  merge() {},
});

class Review {
  /** @type {Lnb.Json} the newest answer */
  state = null;
  identifier = "";
  openings = 0;
  isAsking = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  painter = new SectionPainter();
  head = h("header.lnb-rv-head");
  news = h("div.lnb-rv-news", { role: "status" });
  loading = h("div");
  comments = h("ol.lnb-rv-comments", { "aria-label": "discussion" });
  problem = h("div", { role: "alert" });
  /** @type {Map<string, HTMLElement>} */
  places = new Map(SECTIONS.map(([section]) => [section, h("div.lnb-rv-place")]));

  /** @param {HTMLElement} el @param {Lnb.Context} ctx @param {ReviewLink} link */
  constructor(el, ctx, link) {
    this.ctx = ctx;
    this.link = link;
    this.names = { branch: link.branch, into: link.into };
    this.box = new CommentBox(writeGuard(ctx), (remark) => this.write(remark));
    this.panel = h(
      "section.lnb-rv",
      { tabindex: "0", "aria-label": `review of ${link.branch}` },
      this.head,
      this.news,
      this.loading,
      SECTIONS.map(([section, title]) =>
        h(
          "details",
          { class: `lnb-rv-part lnb-rv-part-${section}`, open: true },
          h("summary", title),
          this.places.get(section),
        ),
      ),
      h("h4.lnb-rv-title", "Discussion"),
      this.comments,
      this.problem,
      this.box.element,
    );
    el.append(this.panel);
    document.addEventListener("visibilitychange", this.askForNews);
    window.addEventListener("focus", this.askForNews);
    ctx.onClose(() => this.close());
    this.open();
  }

  close() {
    clearTimeout(this.timer);
    this.painter.clear();
    document.removeEventListener("visibilitychange", this.askForNews);
    window.removeEventListener("focus", this.askForNews);
  }

  async open() {
    const opening = (this.openings += 1);
    const isStale = () => opening !== this.openings || !this.panel.isConnected;
    this.painter.clear();
    show(this.news);
    const result = await longAction(this.ctx, this.loading, {
      type: "review.open",
      args: this.names,
      words: "Comparing the branch with its target…",
      again: () => this.open(),
    });
    if (!result || isStale()) return;
    this.identifier = result.identifier;
    this.box.setUsualAuthor(result.author);
    this.ctx.code(result.code);
    this.update(result);
    this.waitForNews();
    for (const [section] of SECTIONS) {
      await this.load(section);
      if (isStale()) return;
    }
  }

  /** @param {string} section */
  async load(section) {
    const place = /** @type {HTMLElement} */ (this.places.get(section));
    const progress = h("span");
    const running = this.ctx.kernel.ask(
      "review.section",
      { ...this.names, section },
      { progress: (done, total) => show(progress, ` ${done} of ${total}`) },
    );
    const cancel = button("Cancel", running.cancel);
    show(place, h("p.lnb-faint", "Comparing…", progress, " ", cancel));
    try {
      const { result, buffers } = await running;
      show(place, this.painter.paint(section, result, buffers));
    } catch (error) {
      const refresh = button("Refresh", () => this.load(section));
      show(place, this.ctx.problem(error), refresh);
    }
  }

  /** Show what changes while people discuss. @param {Lnb.Json} result */
  update(result) {
    const { discussion, newest, summary } = result;
    const numBefore = this.state?.discussion.length ?? discussion.length;
    this.state = result;
    this.paintHead();
    this.paintComments();
    const isMoved = newest && newest.version !== summary.source.version;
    const title = "Look at the newest version of the branch";
    show(
      this.news,
      newest === null && h("span", "The branch was deleted; its discussion stays. "),
      isMoved && [
        h("span", `The branch is at ${newest.label} now. `),
        button("Compare again", () => this.open(), { title }),
      ],
    );
    if (discussion.length > numBefore)
      this.ctx.announce(plural(discussion.length - numBefore, "new comment"));
  }

  paintHead() {
    const { summary } = this.state;
    const { source, target, base } = summary;
    /** @param {Lnb.Place} place @returns {Lnb.Place} */
    const bare = ({ branch, version }) => ({ branch, version });
    const openAll = () => this.ctx.go("changes", { a: bare(base), b: bare(source) });
    const merge = () => this.link.merge({ source: summary.branch, into: summary.into });
    const approved = summary.approved ? "yes" : "no";
    show(
      this.head,
      h(
        "div.lnb-rv-top",
        h("h3", `${summary.label} into ${summary.into_label}`),
        h("span", { class: `lnb-rv-state lnb-rv-${approved}` }, summary.state),
        h(
          "span.lnb-rv-acts",
          button("Merge…", merge),
          base && this.ctx.has("changes") && button("Open all changes", openAll),
          button("As one file", () => this.download(), {
            title: "The same page for a pull request or a mail",
          }),
          button("Close", this.link.close),
        ),
      ),
      h(
        "p.lnb-faint",
        `${source.label} into ${target.label}${base ? `, compared with ${base.label}` : ""}`,
      ),
      h("p", summary.problem || summary.facts.join(" · ") || "nothing differs"),
    );
  }

  paintComments() {
    const { discussion, problems } = this.state;
    /** @param {string} text */
    const note = (text) => h("li.lnb-faint", text);
    show(
      this.comments,
      discussion.length
        ? discussion.map((/** @type {Lnb.Json} */ remark) => this.comment(remark))
        : note("No comments yet."),
      problems.map((/** @type {string} */ problem) => note(`A comment was left out: ${problem}`)),
    );
  }

  /** @param {Lnb.Json} remark */
  comment(remark) {
    const verdict = VERDICTS[remark.kind];
    const about = remark.is_late ? ` · about version ${remark.version}` : "";
    return h(
      "li",
      {
        class: `lnb-rv-say lnb-rv-${remark.kind}${remark.depth ? " lnb-rv-reply" : ""}`,
        "data-id": remark.id,
      },
      h(
        "p.lnb-rv-who",
        h("b", remark.author),
        verdict && h("span.lnb-rv-said", verdict),
        h("small", remark.time_ms ? ageOf(remark.time_ms) : "", about),
        button("Reply", () => this.box.reply(remark), { class: "lnb-link" }),
      ),
      remark.text && h("p.lnb-rv-text", remark.text),
    );
  }

  /** @param {import("./comment_box.js").Remark} remark */
  async write(remark) {
    show(this.problem);
    const args = { ...this.names, identifier: this.identifier, ...remark };
    try {
      const { result } = await this.ctx.kernel.ask("review.write", args);
      this.box.clear();
      this.update(result);
      this.ctx.code(result.code);
      this.ctx.announce(result.words);
      this.comments.lastElementChild?.scrollIntoView({ block: "nearest" });
    } catch (error) {
      show(this.problem, this.ctx.problem(error));
    }
  }

  /** Fetch the page in one file, in pieces, and have the browser save it. */
  async download() {
    show(this.problem);
    try {
      /** @type {Lnb.Buffer[]} */
      const pieces = [];
      for (let offset = 0; ; ) {
        const { result, buffers } = await this.ctx.kernel.ask("review.page", {
          ...this.names,
          offset,
        });
        pieces.push(buffers[0]);
        offset += buffers[0].byteLength;
        this.ctx.code(result.code);
        if (offset >= result.size || !buffers[0].byteLength) return save(pieces, result.name);
      }
    } catch (error) {
      show(this.problem, this.ctx.problem(error));
    }
  }

  /** Ask what others wrote, if somebody can see it. */
  askForNews = async () => {
    const { ctx, state } = this;
    if (!this.panel.isConnected || this.isAsking || !state) return;
    if (ctx.kernel.state !== "live" || document.visibilityState !== "visible") return;
    clearTimeout(this.timer);
    this.isAsking = true;
    try {
      const args = { ...this.names, mark: state.mark };
      const { result } = await ctx.kernel.ask("review.news", args, { quiet: true });
      if (result.discussion && this.panel.isConnected) this.update(result);
    } catch {
      // A store that does not answer now is asked again later; what is shown stays.
    }
    this.isAsking = false;
    this.waitForNews();
  };

  waitForNews() {
    clearTimeout(this.timer);
    if (this.panel.isConnected) this.timer = setTimeout(this.askForNews, EVERY_MS);
  }
}

/** @param {Lnb.Buffer[]} pieces @param {string} name */
function save(pieces, name) {
  const blob = new Blob(/** @type {BlobPart[]} */ (pieces), { type: "text/html" });
  const href = URL.createObjectURL(blob);
  h("a", { href, download: name }).click(); // it is saved, never opened here
  URL.revokeObjectURL(href);
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx @param {ReviewLink} [link] */
export function mountReview(el, ctx, link = alone(ctx)) {
  new Review(el, ctx, link);
}

export default widget(mountReview, "review of a branch");
