// The stage: changes as cards, looked at before they happen, committed, undone.

import { button, bytes, count, h, plural, setText, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { widget } from "../js/view.js";
import { ConflictTable } from "../refs/conflict_table.js";
import { isOpen, stageCard } from "./stage_card.js";
import { StageForm } from "./stage_form.js";
import { unfinishedJob } from "./unfinished_jobs.js";

const PROGRESS_MS = 400;
const NOTHING_STAGED =
  "Nothing is staged. Choose a change above: its card shows what it would do; nothing happens " +
  "before you commit it.";

/** What of a card takes the keyboard. @param {Element | null} card @returns {HTMLElement[]} */
function inputsOf(card) {
  if (!card) return [];
  /** @type {NodeListOf<HTMLElement>} */
  const inputs = card.querySelectorAll("button,input,select");
  return [...inputs];
}

/** What was typed into a card, and into which consequences of it. @param {HTMLElement} card */
function typedInto(card) {
  /** @param {string} box @returns {HTMLInputElement | null} */
  const find = (box) => card.querySelector(box);
  return {
    message: find(".lnb-sg-message")?.value,
    word: find(".lnb-cc-input")?.value ?? "",
    key: find(".lnb-cc")?.dataset.key,
  };
}

/** @param {Lnb.Props} look @param {...Lnb.Child} content */
const cardList = (look, ...content) => h("div", { class: "lnb-sg-cards", ...look }, ...content);

class Stage {
  /**
   * @type {{cards: Lnb.Json[], not_together: string, not_each?: string, unfinished?: Lnb.Json[]}}
   */
  area = { cards: [], not_together: "" };
  /** @type {Lnb.Asked | null} */
  work = null; // what is under way
  askedAt = 0;
  isComparing = false; // whether the cards are being compared with newer commits
  /** @type {Lnb.Json} */
  pendingCard = null; // a card that another view asked for, before the menu is here
  /** @type {Map<string, {table: ConflictTable, element: HTMLElement}>} */
  tables = new Map();
  notice = h("p.lnb-sg-notice");
  problem = h("div.lnb-sg-problem", { role: "alert" });
  bar = h("progress.lnb-sg-bar", { "aria-label": "progress" });
  progressText = h("span.lnb-sg-progress");
  running = h(
    "div.lnb-sg-running",
    { role: "status", hidden: true },
    this.bar,
    this.progressText,
    button("Cancel", () => this.work?.cancel()),
  );
  cards = cardList({});
  jobs = cardList({ hidden: true });
  message = h("input.lnb-input.lnb-sg-message", {
    placeholder: "why (one message for all)",
    "aria-label": "commit message for all cards",
    on: { keydown: (event) => event.stopPropagation() },
  });
  together = button("", () => this.commitAll(true), { class: "lnb-button lnb-sg-go" });
  each = button("", () => this.commitAll(false));
  why = h("span.lnb-sg-why");
  bottom = h("div.lnb-sg-all", { hidden: true }, this.message, this.together, this.each, this.why);

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.form = new StageForm(ctx, {
      stage: (edit) => this.act("stage.add", edit),
      code: (lines) => ctx.code(lines),
    });
    const needsKernel = h(
      "p.lnb-sg-notice",
      { hidden: true },
      "Changes are staged in the kernel. Run the cell to continue.",
    );
    el.append(
      h(
        "div.lnb-stage",
        {
          tabindex: "0",
          role: "region",
          "aria-label": "stage",
          on: { focusin: () => this.comeBack() },
        },
        needsKernel,
        ctx.writes ? this.notice : h("p.lnb-sg-alone", lockButton(ctx), this.notice),
        this.form.element,
        this.problem,
        this.running,
        this.jobs,
        this.cards,
        this.bottom,
      ),
    );
    ctx.onClose(
      ctx.kernel.onState((state) => {
        needsKernel.hidden = state !== "static";
        this.form.element.hidden = state === "static";
      }),
    );
    window.addEventListener("focus", this.look);
    ctx.onClose(() => window.removeEventListener("focus", this.look));
    ctx.onScreen(
      (screen, patched) => {
        const place = `${screen.branch ?? "main"}:${screen.version}`;
        if (ctx.root.getAttribute("data-fresh") !== place) ctx.root.removeAttribute("data-fresh");
        if (!patched) this.loadMenu();
        else this.repaint();
        this.look();
      },
      ["card", "locked", "news"],
    );
  }

  /** @param {{card?: Lnb.Json}} target */
  open({ card }) {
    if (!card) return;
    this.pendingCard = card;
    this.loadMenu();
  }

  shown() {
    this.loadMenu();
    this.look();
  }

  /** @returns {Lnb.Place} */
  place() {
    const { branch, version } = this.ctx.screen();
    return { branch, version };
  }

  /** Whether nothing can be staged or committed now. */
  isShut() {
    return this.ctx.screen().locked !== false || this.work !== null;
  }

  /**
   * Ask without being asked to; a problem is shown.
   * @param {string} type @param {Lnb.Args} args @param {(result: Lnb.Json) => void} done
   */
  async ask(type, args, done) {
    try {
      const { result } = await this.ctx.kernel.ask(type, args, { quiet: true });
      done(result);
    } catch (error) {
      show(this.problem, this.ctx.problem(error));
    }
  }

  loadMenu() {
    return this.ask("stage.menu", { ...this.place() }, (result) => {
      this.form.offer(result);
      if (this.pendingCard) this.form.fill(this.pendingCard);
      this.pendingCard = null;
    });
  }

  look = async () => {
    this.askedAt = performance.now();
    if (this.work || this.ctx.kernel.state === "static") return;
    await this.ask("stage.cards", {}, ({ area }) => this.work || this.paint(area));
    this.forecast();
  };

  /** Compare the cards with what others committed, while everything else goes on. */
  async forecast() {
    const isUnchecked = this.area.cards.some(
      (card) => card.checking || card.expectations?.checking,
    );
    if (this.isComparing || !isUnchecked) return;
    this.isComparing = true;
    await this.ask("stage.forecast", {}, ({ area }) => this.work || this.paint(area));
    this.isComparing = false;
  }

  /**
   * Coming back to the cards, they are compared again with what others committed; another cell may
   * have made a variable, too.
   */
  comeBack() {
    if (performance.now() - this.askedAt <= 1000) return;
    this.look();
    this.loadMenu();
  }

  /**
   * Do long work: how far it is is asked for by the way.
   * @param {string} type @param {Lnb.Args} [args]
   */
  async act(type, args = {}) {
    if (this.work) return;
    show(this.problem);
    const progress = (/** @type {number} */ done, /** @type {number} */ total) => {
      this.bar.max = total || 1;
      if (total) this.bar.value = done;
    };
    this.work = this.ctx.kernel.ask(type, { ...this.place(), ...args }, { progress });
    this.bar.removeAttribute("value");
    setText(this.progressText, "…");
    this.running.hidden = false;
    this.repaint();
    const timer = setInterval(() => this.showProgress(), PROGRESS_MS);
    try {
      const { result } = await this.work;
      this.work = null;
      this.area = result.area;
      this.repaint();
      if (type === "stage.add") this.showStaged(result.area.cards.at(-1));
      if (type === "stage.commit") this.showOutcome(args.id);
      this.showCommit(result);
    } catch (error) {
      this.work = null;
      show(this.problem, this.ctx.problem(error));
      this.repaint();
      this.look();
    }
    clearInterval(timer);
    this.running.hidden = true;
    this.forecast();
  }

  /** @param {Lnb.Json} card */
  showStaged(card) {
    this.form.clear();
    this.ctx.code(card.code);
    this.ctx.announce(`staged: ${card.title}`);
    this.cards.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  /**
   * A commit was refused: why stands at the head of a card that may be long. Else its code is
   * shown.
   * @param {string} id
   */
  showOutcome(id) {
    const shown = this.cards.querySelector(`[data-card="${id}"]`);
    shown?.querySelector(".lnb-error")?.scrollIntoView({ block: "nearest" });
    const card = this.area.cards.find((candidate) => candidate.id === id);
    if (card?.state === "ready") {
      shown?.scrollIntoView({ block: "start" }); // it was not done: see why
      this.ctx.announce(card.lines[0] ?? "");
    }
    if (card) this.ctx.code(card.code);
  }

  async showProgress() {
    try {
      const { result } = await this.ctx.kernel.ask("stage.running", {}, { quiet: true });
      const { running } = result;
      if (!running || !this.work) return;
      const parts = [
        `${running.title}: ${running.phase}`,
        running.engine === "spark" && "on Spark",
        running.counts_tasks && `${running.done} of ${plural(running.total, "task")}`,
        running.rows && plural(running.rows, "row"),
        running.size_bytes && bytes(running.size_bytes),
        `${count(Math.round(running.elapsed_s))} s`,
      ];
      setText(this.progressText, parts.filter(Boolean).join(" · "));
    } catch {
      // The work itself tells what is wrong.
    }
  }

  /**
   * A new version lights up on the timeline; what has no version shows in the frame.
   * @param {Lnb.Json} result
   */
  showCommit({ version, branch, timeline, card, place }) {
    if (version !== undefined && version !== null) {
      this.ctx.root.setAttribute("data-fresh", `${branch ?? "main"}:${version}`);
      this.ctx.announce(`committed as version ${version}`);
      this.ctx.travel({ branch, version });
    } else if (timeline) {
      this.ctx.refresh({ timeline, card });
      const shown = this.place(); // it may be gone
      if (place.version !== shown.version || place.branch !== shown.branch) this.ctx.travel(place);
    }
  }

  /** @param {boolean} together as one version, or one by one */
  commitAll(together) {
    return this.act("stage.all", { message: this.message.value, together });
  }

  /**
   * Cards that are as they were are left alone: somebody may be typing in one.
   * @param {Lnb.Json} area
   */
  paint(area) {
    const isSame = JSON.stringify(area) === JSON.stringify(this.area);
    this.area = area;
    if (!isSame) this.repaint();
  }

  repaint() {
    const isShut = this.isShut();
    this.form.enable(!isShut);
    setText(this.notice, this.noticeText());
    this.notice.hidden = !this.notice.textContent;
    this.paintCards(isShut);
    this.paintJobs(isShut);
    this.paintBottom(isShut);
  }

  /** What was typed into cards and where the keyboard is stay. @param {boolean} isShut */
  paintCards(isShut) {
    /** @type {NodeListOf<HTMLElement>} */
    const before = this.cards.querySelectorAll(".lnb-sg-card");
    const typed = new Map([...before].map((card) => [card.dataset.card, typedInto(card)]));
    const active = this.cards.contains(document.activeElement) ? document.activeElement : null;
    /** @type {HTMLElement | null} */
    const focused = active?.closest("[data-card]") ?? null;
    const position = inputsOf(focused).indexOf(/** @type {HTMLElement} */ (active));
    const first = this.area.cards.findIndex(isOpen);
    const cards = this.area.cards.map((card, index) => {
      const text = typed.get(card.id);
      const shown = stageCard(
        { ...card, message: text?.message ?? card.message, typed: text },
        { first: first < 0 || index <= first, locked: isShut },
        this.actions(card),
      );
      shown.addEventListener("focusin", () => this.ctx.code(card.code));
      return shown;
    });
    show(this.cards, cards.length ? cards : h("p.lnb-sg-none", NOTHING_STAGED));
    if (!focused) return;
    const next = this.cards.querySelector(`[data-card="${focused.dataset.card}"]`);
    inputsOf(next)[position]?.focus({ preventScroll: true });
  }

  /** @param {boolean} isShut */
  paintJobs(isShut) {
    const unfinished = this.area.unfinished ?? [];
    this.jobs.hidden = !unfinished.length;
    const actions = {
      resume: (/** @type {string} */ id) => this.act("stage.resume", { id }),
      forget: (/** @type {string} */ id) => this.act("stage.forget", { id }),
      code: (/** @type {Lnb.CodeLines} */ code) => this.ctx.code(code),
    };
    show(
      this.jobs,
      unfinished.map((job) => unfinishedJob(job, isShut, actions)),
    );
  }

  /** @param {boolean} isShut */
  paintBottom(isShut) {
    const { cards, not_each: notEach, not_together: notTogether } = this.area;
    const open = cards.filter(isOpen);
    this.bottom.hidden = open.length < 2;
    setText(this.together, `Commit ${open.length} as one version`);
    setText(this.each, `Commit ${open.length} one by one`);
    this.together.disabled = isShut || Boolean(notTogether);
    const refused = open.find((card) => card.expectations?.refused);
    const isFailed = open.some((card) => card.state === "failed");
    this.each.disabled = isShut || Boolean(notEach || refused) || isFailed;
    let why = "Each card is planned on the version it was staged on, without the other cards";
    if (notEach) why = `cannot be committed one by one: ${notEach}`;
    else if (refused)
      why = `cannot be committed one by one: an expectation refuses “${refused.title}”`;
    else if (notTogether) why = `cannot be committed as one version: ${notTogether}`;
    setText(this.why, why);
  }

  noticeText() {
    const { locked } = this.ctx.screen();
    if (locked === null)
      return "Opened with read_only=True: changes can be entered and checked, not staged.";
    return locked === false
      ? ""
      : "The lock is shut: changes can be entered and checked. Open the lock to stage them.";
  }

  /** The conflicts of edits with what others committed, and the way to decide them.
   * @param {Lnb.Json} card */
  conflictsOf({ id, conflicts }) {
    if (!conflicts) {
      this.tables.delete(id);
      return null;
    }
    const open = this.tables.get(id);
    if (open) {
      open.table.put(conflicts);
      return open.element;
    }
    /** @type {Lnb.Json[]} */
    let choices = [];
    const resolve = async () => {
      await this.change("edit.resolve", { id, plan: conflicts.plan, choices });
      this.tables.delete(id);
    };
    const apply = button("Apply choices", resolve, {
      class: "lnb-button lnb-sg-go",
      disabled: true,
    });
    /** @param {Lnb.Json[]} chosen */
    const changed = (chosen) => {
      choices = chosen;
      apply.toggleAttribute("disabled", !chosen.length || this.ctx.screen().locked !== false);
    };
    const requests = { cells: "edit.lines", value: "edit.value", more: { id } };
    const table = new ConflictTable(this.ctx, changed, requests);
    table.put(conflicts);
    const element = h("div.lnb-sg-conflicts", table.element, h("p", apply));
    this.tables.set(id, { table, element });
    return element;
  }

  /** Change the edits of a card. @param {string} type @param {Lnb.Args} args */
  async change(type, args) {
    show(this.problem);
    try {
      await this.ctx.kernel.ask(type, args);
    } catch (error) {
      show(this.problem, this.ctx.problem(error));
    }
    await this.look();
  }

  /** @param {Lnb.Json} card @returns {import("./stage_card.js").CardActions} */
  actions(card) {
    const { id, branch, read_version: version, outcome } = card;
    return {
      conflicts: this.conflictsOf(card),
      drop: (edit) => this.change("edit.drop", { branch, version, ...edit }),
      commit: (message, approval = {}) => this.act("stage.commit", { id, message, ...approval }),
      prepare: (engine) => this.act("stage.prepare", { id, engine }),
      rerun: () => this.act("stage.rerun", { id }),
      look: () => this.act("stage.look", { id }),
      remove: () => this.act("stage.remove", { id }),
      earlier: () => this.act("stage.earlier", { id }),
      undo: () =>
        this.act("stage.add", {
          verb: outcome.undo.verb,
          args: { version: outcome.undo.version },
          branch: outcome.branch,
          version: outcome.version,
        }),
      go: () => this.ctx.travel({ branch: outcome.branch, version: outcome.version }),
    };
  }
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountStage(el, ctx) {
  return new Stage(el, ctx);
}

export default widget(mountStage, "staged changes");
