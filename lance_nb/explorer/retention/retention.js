// The clean-up simulator: a retention rule that is moved while the bars that would go fade, and the
// bytes that would be freed count along. Nothing is changed; the rule can be staged.

import { button, count, h, plural, setText, show } from "../js/dom.js";
import { longAction } from "../js/long_action.js";
import { widget } from "../js/view.js";

const HOVER_MS = 150;

/** How many versions of a branch the timeline lists. @param {Lnb.Screen} screen
 * @param {string | null} branch
 */
function versionsOf({ timeline }, branch) {
  const lane = timeline?.lanes?.find((candidate) => (candidate.branch ?? null) === branch);
  return lane ? lane.runs.reduce((sum, [, length]) => sum + length, lane.older) : 0;
}

/** @typedef {[first: number, last: number, reason?: string]} Run */

/** Whether a version is in one of some runs. @param {Run[]} runs @param {number} version */
const hasRun = (runs, version) => runs.some(([first, last]) => first <= version && version <= last);

class Retention {
  /** @type {Lnb.Json} */
  state = null;
  /** @type {Lnb.Json} */
  simulated = null;
  /** @type {Set<string>} */
  dropped = new Set();
  keep = 1;
  days = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  isStale = false;
  numListed = 0; // versions on the timeline when the survey was taken
  panel = h("section.lnb-rt", { "aria-label": "clean-up simulator" });
  keepLabel = h("output.lnb-rt-value");
  daysLabel = h("output.lnb-rt-value");
  total = h("p.lnb-rt-total", { "aria-live": "polite" });
  detail = h("div.lnb-rt-files");
  notice = h("p.lnb-rt-notice", { hidden: true });
  problem = h("div");
  stageButton = button("Stage this clean-up", () => this.stage(), {
    class: "lnb-button lnb-write",
  });

  /**
   * @param {HTMLElement} el @param {Lnb.Context} ctx
   * @param {import("./retention_button.js").RetentionLink} [link]
   */
  constructor(el, ctx, link) {
    this.ctx = ctx;
    this.link = link;
    this.request = ctx.kernel.line();
    this.files = ctx.kernel.line();
    this.branch = ctx.screen().branch ?? null;
    el.append(this.panel);
    link?.put({ hovered: (branch, version) => this.hovered(branch, version) });
    ctx.onScreen((screen, patched) => this.follow(screen, patched), ["timeline", "locked", "news"]);
    this.open();
  }

  /** @param {Lnb.Screen} screen @param {boolean} patched */
  follow(screen, patched) {
    if (!this.panel.isConnected || !this.simulated) return;
    if ((screen.branch ?? null) !== this.branch) {
      this.link?.close();
      return;
    }
    const news = patched && Boolean(screen.news?.added || screen.news?.gone);
    this.isStale ||= news || versionsOf(screen, this.branch) !== this.numListed;
    this.paintResult();
  }

  async open() {
    const result = await longAction(this.ctx, this.panel, {
      type: "retention.open",
      args: { branch: this.branch },
      words: "Reading which version needs which file…",
      noun: "manifest",
      again: () => this.open(),
    });
    if (!result || !this.panel.isConnected) return;
    this.isStale = false;
    this.numListed = versionsOf(this.ctx.screen(), this.branch);
    this.state = result;
    this.keep = this.state.versions;
    this.days = 0;
    this.dropped.clear();
    this.paint();
    this.move();
  }

  paint() {
    const { versions, oldest_days: oldest } = this.state;
    const keepRange = { min: 1, max: Math.max(1, versions), value: this.keep };
    const daysRange = { min: 0, max: Math.max(1, Math.ceil(oldest)), value: this.days };
    show(
      this.panel,
      h(
        "div.lnb-rt-controls",
        this.slider("keep the newest", keepRange, this.keepLabel, (value) => (this.keep = value)),
        this.slider("and all younger than", daysRange, this.daysLabel, (value) => {
          this.days = value;
        }),
        this.tags(),
      ),
      h(
        "div.lnb-rt-result",
        this.total,
        h(
          "p.lnb-rt-acts",
          this.stageButton,
          button("Close", () => this.link?.close()),
        ),
      ),
      this.notice,
      this.problem,
      this.detail,
    );
  }

  /**
   * @param {string} label @param {{min: number, max: number, value: number}} range
   * @param {HTMLElement} output @param {(value: number) => unknown} set
   */
  slider(label, range, output, set) {
    const onInput = () => {
      set(Number(input.value));
      this.move();
    };
    /** @type {HTMLInputElement} */
    const input = h("input", {
      type: "range",
      class: "lnb-rt-slider",
      "aria-label": label,
      ...range,
      on: { input: onInput, keydown: (event) => event.stopPropagation() },
    });
    return h("label.lnb-rt-control", h("span", label), input, output);
  }

  /** Tags keep their versions; one that is switched off counts as deleted. */
  tags() {
    const { tags, hidden_tags: numHidden } = this.state;
    if (!tags.length) return null;
    return h(
      "div.lnb-rt-tags",
      { role: "group", "aria-label": "tags that keep their version" },
      h("span", "tags kept"),
      tags.map((/** @type {Lnb.Json} */ tag) => this.tagButton(tag)),
      numHidden > 0 && h("span.lnb-faint", `and ${numHidden} more`),
    );
  }

  /** @param {Lnb.Json} tag @returns {HTMLElement} */
  tagButton({ name, label, version }) {
    const toggle = () => {
      if (!this.dropped.delete(name)) this.dropped.add(name);
      chip.setAttribute("aria-pressed", String(!this.dropped.has(name)));
      this.move();
    };
    const look = { class: "lnb-choice", "aria-pressed": "true", title: `version ${version}` };
    const chip = button(`⚑ ${label}`, toggle, look);
    return chip;
  }

  rule() {
    return { keep: this.keep, days: this.days || null, drop_tags: [...this.dropped] };
  }

  move() {
    setText(this.keepLabel, `${count(this.keep)} of ${plural(this.state.versions, "version")}`);
    setText(this.daysLabel, this.days ? plural(this.days, "day") : "any age");
    /** @type {Lnb.Done} */
    const done = ({ result }) => {
      this.simulated = result;
      show(this.problem);
      this.paintResult();
    };
    /** @type {Lnb.Failed} */
    const failed = (error) => {
      const problem = this.ctx.problem(error, () => this.open());
      show(this.problem, problem);
    };
    this.request("retention.move", this.rule(), done, failed);
  }

  paintResult() {
    const { versions, files, size, code } = this.simulated;
    const isEmpty = !versions && !files;
    const removed = h("b", plural(versions, "version"));
    const freed = [" and free ", h("b", size), ` in ${plural(files, "file")}`];
    show(this.total, isEmpty ? "Nothing would be removed" : ["Would remove ", removed, ...freed]);
    const isShut = this.ctx.screen().locked !== false;
    this.stageButton.disabled = isShut || this.isStale || isEmpty;
    this.stageButton.title = isShut ? "Open the lock first" : "";
    const { damaged } = this.state;
    const notices = [
      this.isStale && "The dataset changed. Close and open the simulator to see it as it is now.",
      damaged && `${plural(damaged, "manifest")} cannot be read: a clean-up would be refused.`,
      this.dropped.size &&
        `Deleting ${plural(this.dropped.size, "tag")} is staged as a card of its own: commit it ` +
          "first, then refresh the card of the clean-up.",
    ].filter(Boolean);
    this.notice.hidden = !notices.length;
    setText(this.notice, notices.join(" "));
    this.ctx.code(code);
    this.link?.put({
      goes: (branch, version) => this.goes(branch, version),
      words: (branch, version) => this.reason(branch, version),
    });
  }

  /** Whether a version would be removed. @param {string | null} branch @param {number} version */
  goes(branch, version) {
    return (branch ?? null) === this.branch && hasRun(this.simulated.goes, version);
  }

  /** Why a version stays. @param {string | null} branch @param {number} version */
  reason(branch, version) {
    if ((branch ?? null) !== this.branch || !this.simulated) return "";
    if (this.goes(branch, version)) return "would be removed";
    const run = this.simulated.stays.find((/** @type {Run} */ stay) => hasRun([stay], version));
    return run ? `stays: ${run[2]}` : "";
  }

  /** List the files of a version. @param {string | null} branch @param {number} version */
  hovered(branch, version) {
    if ((branch ?? null) !== this.branch || !this.state) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      /** @type {Lnb.Done} */
      const done = ({ result }) => this.paintFiles(result);
      /** @type {Lnb.Failed} */
      const failed = (error) => show(this.detail, this.ctx.problem(error));
      this.files("retention.files", { ...this.rule(), version }, done, failed);
    }, HOVER_MS);
  }

  /** @param {Lnb.Json} result */
  paintFiles({ version, goes, reason, files }) {
    const items = files.map((/** @type {Lnb.Json} */ file) =>
      h(
        "li",
        { class: file.goes ? "lnb-rt-goes" : "", title: file.kept },
        h("i", { "aria-hidden": "true" }, file.goes ? "−" : "="),
        h("code", file.name),
        h("small", file.size),
        h("span", file.kept),
      ),
    );
    const fate = goes ? "would be removed" : `stays: ${reason}`;
    const title = h("h4", `${this.state.label}:${version} `, h("small", fate));
    show(this.detail, title, h("ul", items));
  }

  async stage() {
    const { ctx } = this;
    this.stageButton.disabled = true;
    const { branch, version } = ctx.screen();
    /** @param {string} verb @param {Lnb.Args} args */
    const add = (verb, args) => ctx.kernel.ask("stage.add", { branch, version, verb, args });
    try {
      for (const name of this.dropped) await add("tag", { action: "delete", name });
      await add("cleanup", { keep: this.keep, ...(this.days && { older_than: this.days }) });
      ctx.go("stage");
    } catch (error) {
      show(this.problem, ctx.problem(error));
    }
    if (this.simulated && this.panel.isConnected) this.paintResult();
  }
}

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./retention_button.js").RetentionLink} [link]
 */
export function mountRetention(el, ctx, link) {
  new Retention(el, ctx, link);
}

export default widget(mountRetention, "clean-up simulator");
