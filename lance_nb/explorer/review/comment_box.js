// The place below a discussion where a comment or a verdict is written.

import { button, h, show } from "../js/dom.js";

/** @typedef {{kind: string, text: string, reply_to: string | null, author: string}} Remark */

/** @param {Lnb.Props} props */
const stayingKeys = (props) => ({
  ...props,
  on: { keydown: (/** @type {Event} */ event) => event.stopPropagation() },
});

export class CommentBox {
  /** @type {string | null} */
  #replyTo = null;
  #usualAuthor = "";

  /**
   * @param {ReturnType<typeof import("../js/write_guard.js").writeGuard>} guard
   * @param {(remark: Remark) => unknown} write called for what was written
   */
  constructor(guard, write) {
    this.text = h(
      "textarea",
      stayingKeys({
        class: "lnb-input lnb-rv-box",
        "aria-label": "comment",
        placeholder: "write a comment",
        rows: 3,
        maxlength: 20000,
      }),
    );
    this.author = h(
      "input",
      stayingKeys({ class: "lnb-input", "aria-label": "your name", maxlength: 200 }),
    );
    this.about = h("p.lnb-rv-about");
    /** @param {string} label @param {string} kind */
    const writeButton = (label, kind) => guard.button(label, () => write(this.#remark(kind)));
    this.element = h(
      "div.lnb-rv-write",
      { role: "group", "aria-label": "write" },
      this.about,
      this.text,
      h(
        "p.lnb-rv-acts",
        h("label", "as ", this.author),
        writeButton("Comment", "comment"),
        writeButton("Approve", "approval"),
        writeButton("Request changes", "changes-requested"),
      ),
    );
  }

  /** @param {string} name under which this person writes, unless they say another */
  setUsualAuthor(name) {
    this.#usualAuthor = name;
    if (!this.author.value) this.author.value = name;
  }

  /** Write in answer to a remark, or to none. @param {Lnb.Json | null} remark */
  reply(remark) {
    this.#replyTo = remark?.id ?? null;
    const cancel = button("not so", () => this.reply(null), { class: "lnb-link" });
    show(this.about, remark && [`In answer to ${remark.author} `, cancel]);
    if (remark) this.text.focus();
  }

  clear() {
    this.text.value = "";
    this.reply(null);
  }

  /** @param {string} kind @returns {Remark} */
  #remark(kind) {
    const author = this.author.value.trim();
    return {
      kind,
      text: this.text.value,
      reply_to: kind === "comment" ? this.#replyTo : null,
      author: author === this.#usualAuthor ? "" : author,
    };
  }
}
