// The review of a branch against its target: what it changes, old and new side by side with
// pictures and marked words, checks, and a discussion that others take part in at the same time.

import { ageOf, h, plural, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";

const EVERY_MS = 4000;
const PICTURE = /^image\/(png|jpeg|gif|webp)$/; // only these are ever shown
/** @type {Record<string, string>} */
const SAID = { comment: "", approval: "✓ approved", "changes-requested": "✗ asks for changes" };
/** @type {Record<string, string>} */
const SIGNS = { pass: "✓", fail: "✗", unknown: "?" };
/** @type {[section: string, title: string][]} */
const SECTIONS = [
  ["schema", "Schema"],
  ["cells", "Changed cells"],
  ["rows", "Rows"],
  ["drift", "Drift"],
  ["checks", "Checks"],
];

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

/** @param {HTMLElement} el @param {Lnb.Context} ctx @param {ReviewLink} [link] */
export function mountReview(el, ctx, link = alone(ctx)) {
  const guard = writeGuard(ctx);
  const names = { branch: link.branch, into: link.into };
  const head = h("header", { class: "lnb-rv-head" });
  const news = h("div", { class: "lnb-rv-news", role: "status" });
  const loading = h("div", {});
  const parts = new Map(
    SECTIONS.map(([section, title]) => {
      const place = h("div", { class: "lnb-rv-place" });
      const element = h(
        "details",
        { class: `lnb-rv-part lnb-rv-part-${section}`, open: true },
        h("summary", {}, title),
        place,
      );
      return [section, { element, place }];
    }),
  );
  const comments = h("ol", { class: "lnb-rv-comments", "aria-label": "discussion" });
  const problem = h("div", { role: "alert" });
  const box = commentBox();
  const panel = h(
    "section",
    { class: "lnb-rv", tabindex: "0", "aria-label": `review of ${link.branch}` },
    head,
    news,
    loading,
    [...parts.values()].map((part) => part.element),
    h("h4", { class: "lnb-rv-title" }, "Discussion"),
    comments,
    problem,
    box.element,
  );
  el.append(panel);
  /** @type {Lnb.Json} */
  let now = null;
  let identifier = "";
  let turn = 0;
  let asking = false;
  /** @type {string[]} addresses of pictures */
  let pictures = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} words @param {() => unknown} act @param {string | null} [title] */
  const button = (words, act, title = null) =>
    h("button", { class: "lnb-button", type: "button", title, on: { click: act } }, words);

  async function open() {
    const mine = (turn += 1);
    forget();
    show(news);
    const result = await longAction(ctx, loading, {
      type: "review.open",
      args: names,
      words: "Comparing the branch with its target…",
      again: open,
    });
    if (!result || !panel.isConnected || mine !== turn) return;
    identifier = result.identifier;
    box.author(result.author);
    ctx.code(result.code);
    take(result);
    wait();
    for (const [section] of SECTIONS) {
      await load(section);
      if (mine !== turn || !panel.isConnected) return;
    }
  }

  /** @param {string} section */
  async function load(section) {
    const place = /** @type {{place: HTMLElement}} */ (parts.get(section)).place;
    const running = ctx.kernel.ask(
      "review.section",
      { ...names, section },
      { progress: (done, total) => show(words, ` ${done} of ${total}`) },
    );
    const words = h("span", {});
    show(
      place,
      h("p", { class: "lnb-faint" }, "Comparing…", words, " ", button("Cancel", running.cancel)),
    );
    try {
      const { result, buffers } = await running;
      show(place, PAINT[section](result, buffers));
    } catch (error) {
      show(
        place,
        ctx.problem(/** @type {Lnb.Failure} */ (error)),
        button("Refresh", () => load(section)),
      );
    }
  }

  /** What changes while people discuss. @param {Lnb.Json} result */
  function take(result) {
    const before = now;
    now = result;
    paintHead();
    paintComments();
    const { newest, summary } = result;
    const moved = newest && newest.version !== summary.source.version;
    show(
      news,
      newest === null ? h("span", {}, "The branch was deleted; its discussion stays. ") : null,
      moved
        ? [
            h("span", {}, `The branch is at ${newest.label} now. `),
            button("Compare again", open, "Look at the newest version of the branch"),
          ]
        : null,
    );
    const added =
      result.discussion.length - (before?.discussion.length ?? result.discussion.length);
    if (added > 0) ctx.announce(`${plural(added, "new comment")}`);
  }

  function paintHead() {
    const { summary } = now;
    const { source, target, base, facts, state } = summary;
    const pair = base && { a: place(base), b: place(source) };
    show(
      head,
      h(
        "div",
        { class: "lnb-rv-top" },
        h("h3", {}, `${summary.label} into ${summary.into_label}`),
        h("span", { class: `lnb-rv-state lnb-rv-${summary.approved ? "yes" : "no"}` }, state),
        h(
          "span",
          { class: "lnb-rv-acts" },
          button("Merge…", () => link.merge({ source: summary.branch, into: summary.into })),
          pair && ctx.has("changes")
            ? button("Open all changes", () => ctx.go("changes", pair))
            : null,
          button("As one file", download, "The same page for a pull request or a mail"),
          button("Close", link.close),
        ),
      ),
      h(
        "p",
        { class: "lnb-faint" },
        `${source.label} into ${target.label}${base ? `, compared with ${base.label}` : ""}`,
      ),
      h("p", {}, summary.problem || facts.join(" · ") || "nothing differs"),
    );
  }

  /** Fetch the page in one file, in pieces, and have the browser save it. */
  async function download() {
    show(problem);
    try {
      /** @type {Lnb.Buffer[]} */
      const pieces = [];
      let have = 0;
      for (;;) {
        const { result, buffers } = await ctx.kernel.ask("review.page", { ...names, offset: have });
        pieces.push(buffers[0]);
        have += buffers[0].byteLength;
        ctx.code(result.code);
        if (have >= result.size || !buffers[0].byteLength) {
          save(pieces, result.name);
          return;
        }
      }
    } catch (error) {
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
  }

  /** @param {Lnb.Buffer[]} pieces @param {string} name */
  function save(pieces, name) {
    const href = URL.createObjectURL(
      new Blob(/** @type {BlobPart[]} */ (pieces), { type: "text/html" }),
    );
    h("a", { href, download: name }).click(); // it is saved, never opened here
    URL.revokeObjectURL(href);
  }

  /** @param {Lnb.Place} one */
  const place = ({ branch, version }) => ({ branch, version });

  function paintComments() {
    show(
      comments,
      now.discussion.length
        ? now.discussion.map(comment)
        : h("li", { class: "lnb-faint" }, "No comments yet."),
      now.problems.map((/** @type {string} */ problem) =>
        h("li", { class: "lnb-faint" }, `A comment was left out: ${problem}`),
      ),
    );
  }

  /** @param {Lnb.Json} remark */
  function comment(remark) {
    return h(
      "li",
      {
        class: `lnb-rv-say lnb-rv-${remark.kind}${remark.depth ? " lnb-rv-reply" : ""}`,
        "data-id": remark.id,
      },
      h(
        "p",
        { class: "lnb-rv-who" },
        h("b", {}, remark.author),
        SAID[remark.kind] ? h("span", { class: "lnb-rv-said" }, SAID[remark.kind]) : null,
        h(
          "small",
          {},
          remark.time_ms ? ageOf(remark.time_ms) : "",
          remark.is_late ? ` · about version ${remark.version}` : "",
        ),
        h(
          "button",
          { class: "lnb-link", type: "button", on: { click: () => box.reply(remark) } },
          "Reply",
        ),
      ),
      remark.text ? h("p", { class: "lnb-rv-text" }, remark.text) : null,
    );
  }

  function commentBox() {
    const text = h("textarea", {
      class: "lnb-input lnb-rv-box",
      "aria-label": "comment",
      placeholder: "write a comment",
      rows: 3,
      maxlength: 20000,
      on: { keydown: (event) => event.stopPropagation() },
    });
    const author = h("input", {
      class: "lnb-input",
      "aria-label": "your name",
      maxlength: 200,
      on: { keydown: (event) => event.stopPropagation() },
    });
    const about = h("p", { class: "lnb-rv-about" });
    /** @type {string | null} */
    let replyTo = null;
    let usual = "";

    /** @param {Lnb.Json | null} remark */
    function reply(remark) {
      replyTo = remark?.id ?? null;
      show(
        about,
        remark && [
          `In answer to ${remark.author} `,
          h(
            "button",
            { class: "lnb-link", type: "button", on: { click: () => reply(null) } },
            "not so",
          ),
        ],
      );
      if (remark) text.focus();
    }

    /** @param {string} kind */
    async function write(kind) {
      show(problem);
      try {
        const { result } = await ctx.kernel.ask("review.write", {
          ...names,
          identifier,
          kind,
          text: text.value,
          reply_to: kind === "comment" ? replyTo : null,
          author: author.value.trim() === usual ? "" : author.value.trim(),
        });
        text.value = "";
        reply(null);
        take(result);
        ctx.code(result.code);
        ctx.announce(result.words);
        comments.lastElementChild?.scrollIntoView({ block: "nearest" });
      } catch (error) {
        show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
      }
    }

    return {
      element: h(
        "div",
        { class: "lnb-rv-write", role: "group", "aria-label": "write" },
        about,
        text,
        h(
          "p",
          { class: "lnb-rv-acts" },
          h("label", {}, "as ", author),
          guard.button("Comment", () => write("comment")),
          guard.button("Approve", () => write("approval")),
          guard.button("Request changes", () => write("changes-requested")),
        ),
      ),
      reply,
      /** @param {string} name */
      author(name) {
        usual = name;
        if (!author.value) author.value = name;
      },
    };
  }

  // --- sections ---------------------------------------------------------------------------------

  /**
   * @param {(Lnb.Child)[]} titles @param {Lnb.Child[][]} rows of cells
   */
  const table = (titles, rows) =>
    h(
      "div",
      { class: "lnb-rv-scroll", tabindex: "0", role: "region", "aria-label": "table" },
      h(
        "table",
        { class: "lnb-table lnb-rv-table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            titles.map((title) => h("th", { scope: "col" }, title)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) => h("tr", {}, row)),
        ),
      ),
    );
  /** @param {string} words */
  const note = (words) => h("p", { class: "lnb-faint" }, words);

  /** @param {Lnb.Json} value @param {Lnb.Buffer[]} buffers @param {"del" | "ins"} mark */
  function contentOf(value, buffers, mark) {
    if (value.image !== undefined && PICTURE.test(value.mime)) {
      const bytes = /** @type {BlobPart} */ (buffers[value.image]);
      const src = URL.createObjectURL(new Blob([bytes], { type: value.mime }));
      pictures.push(src);
      return [h("img", { src, alt: value.label }), h("small", {}, value.label)];
    }
    if (value.parts)
      return value.parts.map((/** @type {[boolean, string]} */ [changed, words]) =>
        changed ? h(mark, {}, words) : words,
      );
    return value.text === null ? h("span", { class: "lnb-faint" }, "NULL") : value.text;
  }

  /**
   * @param {Lnb.Json} value @param {Lnb.Buffer[]} buffers @param {"old" | "new"} look
   */
  const cell = (value, buffers, look) =>
    h(
      "td",
      { class: `lnb-rv-value lnb-rv-${look}` },
      contentOf(value, buffers, look === "old" ? "del" : "ins"),
    );
  const plain = (/** @type {string | null} */ value) => h("td", {}, value ?? "");

  /** @type {Record<string, (found: Lnb.Json, buffers: Lnb.Buffer[]) => Lnb.Child[]>} */
  const PAINT = {
    schema: ({ columns, rows }) => [
      rows.length
        ? table(
            columns,
            rows.map((/** @type {(string | null)[]} */ row) => row.map(plain)),
          )
        : note("The columns are the same."),
    ],
    cells: ({ rows, is_more: more }, buffers) => [
      rows.length
        ? table(
            ["row", "column", "before", "after"],
            rows.map((/** @type {Lnb.Json} */ row) => [
              plain(row.place),
              plain(row.column),
              cell(row.before, buffers, "old"),
              cell(row.after, buffers, "new"),
            ]),
          )
        : note("No row has changed values."),
      more ? note("Only the first rows are shown: open all changes for the others.") : null,
    ],
    rows: ({ kinds }, buffers) => {
      const shown = kinds.filter((/** @type {Lnb.Json} */ kind) => kind.rows.length);
      if (!shown.length) return [note("No row was added or removed.")];
      return shown.flatMap((/** @type {Lnb.Json} */ kind) => [
        h(
          "p",
          {},
          `${kind.is_more ? "the first " : ""}${plural(kind.num_rows, "row")} ${kind.kind}`,
        ),
        table(
          kind.columns,
          kind.rows.map((/** @type {Lnb.Json[]} */ row) =>
            row.map((value) => cell(value, buffers, kind.kind === "added" ? "new" : "old")),
          ),
        ),
      ]);
    },
    drift: ({ columns }) => [
      columns.length
        ? table(
            ["column", "stability index", "before", "after"],
            columns.map((/** @type {Lnb.Json} */ column) => [
              plain(column.name),
              plain(column.psi === null ? "" : column.psi.toFixed(3)),
              plain(column.before),
              plain(column.after),
            ]),
          )
        : note("The versions have no column in common."),
    ],
    checks: ({ sentence, outcomes }) =>
      outcomes.length
        ? [
            h("p", {}, sentence),
            h(
              "ul",
              { class: "lnb-rv-checks" },
              outcomes.map((/** @type {Lnb.Json} */ outcome) =>
                h(
                  "li",
                  { class: `lnb-rv-check-${outcome.status}` },
                  h("i", { "aria-hidden": "true" }, SIGNS[outcome.status]),
                  h("span", { class: "lnb-offscreen" }, outcome.status),
                  h("code", {}, outcome.statement || outcome.name),
                  h("small", {}, outcome.detail),
                ),
              ),
            ),
          ]
        : [note("The target has no expectations.")],
  };

  // --- news -------------------------------------------------------------------------------------

  async function look() {
    if (!panel.isConnected) return;
    if (asking || !now || ctx.kernel.state !== "live" || document.visibilityState !== "visible")
      return;
    clearTimeout(timer);
    asking = true;
    try {
      const { result } = await ctx.kernel.ask(
        "review.news",
        { ...names, mark: now.mark },
        { quiet: true },
      );
      if (result.discussion && panel.isConnected) take(result);
    } catch {
      // A store that does not answer now is asked again later; what is shown stays.
    }
    asking = false;
    wait();
  }

  function wait() {
    clearTimeout(timer);
    if (panel.isConnected) timer = setTimeout(look, EVERY_MS);
  }

  function forget() {
    for (const url of pictures.splice(0)) URL.revokeObjectURL(url);
    pictures = [];
  }

  document.addEventListener("visibilitychange", look);
  window.addEventListener("focus", look);
  ctx.onClose(() => {
    clearTimeout(timer);
    forget();
    document.removeEventListener("visibilitychange", look);
    window.removeEventListener("focus", look);
  });
  open();
}

export default widget(mountReview, "review of a branch");
