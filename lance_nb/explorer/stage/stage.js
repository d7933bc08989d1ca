// The stage: changes as cards, looked at before they happen, committed, undone.

import { bytes, count, h, plural, setText, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { widget } from "../js/view.js";
import { conflictTable } from "../refs/conflict_table.js";
import { isOpen, stageCard } from "./stage_card.js";
import { stageForm } from "./stage_form.js";
import { unfinishedJob } from "./unfinished_jobs.js";

const LOOK_MS = 400;

/** What of a card takes the keyboard. @param {Element | null} card @returns {HTMLElement[]} */
function inputsOf(card) {
  return [...(card?.querySelectorAll("button,input,select") ?? [])].map(
    (element) => /** @type {HTMLElement} */ (element),
  );
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

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountStage(el, ctx) {
  const notice = h("p", { class: "lnb-sg-notice" });
  const problem = h("div", { class: "lnb-sg-problem", role: "alert" });
  const bar = h("progress", { class: "lnb-sg-bar", "aria-label": "progress" });
  const progressText = h("span", { class: "lnb-sg-progress" });
  const stop = h(
    "button",
    { class: "lnb-button", type: "button", on: { click: () => work?.cancel() } },
    "Cancel",
  );
  const running = h(
    "div",
    { class: "lnb-sg-running", role: "status", hidden: true },
    bar,
    progressText,
    stop,
  );
  const cards = h("div", { class: "lnb-sg-cards" });
  const jobs = h("div", { class: "lnb-sg-cards", hidden: true });
  const message = h("input", {
    class: "lnb-input lnb-sg-message",
    placeholder: "why (one message for all)",
    "aria-label": "commit message for all cards",
    on: { keydown: (event) => event.stopPropagation() },
  });
  const together = h("button", {
    class: "lnb-button lnb-sg-go",
    type: "button",
    on: { click: () => all(true) },
  });
  const each = h("button", {
    class: "lnb-button",
    type: "button",
    on: { click: () => all(false) },
  });
  const why = h("span", { class: "lnb-sg-why" });
  const bottom = h("div", { class: "lnb-sg-all", hidden: true }, message, together, each, why);
  const form = stageForm(ctx, {
    stage: (edit) => act("stage.add", edit),
    code: (lines) => ctx.code(lines),
  });
  const static_ = h(
    "p",
    { class: "lnb-sg-notice", hidden: true },
    "Changes are staged in the kernel. Run the cell to continue.",
  );
  el.append(
    h(
      "div",
      {
        class: "lnb-stage",
        tabindex: "0",
        role: "region",
        "aria-label": "stage",
        on: { focusin: soon },
      },
      static_,
      ctx.writes ? notice : h("p", { class: "lnb-sg-alone" }, lockButton(ctx), notice),
      form.element,
      problem,
      running,
      jobs,
      cards,
      bottom,
    ),
  );
  /**
   * @type {{cards: Lnb.Json[], not_together: string, not_each?: string, unfinished?: Lnb.Json[]}}
   */
  let area = { cards: [], not_together: "" };
  /** @type {Lnb.Asked | null} */
  let work = null; // what is under way
  let turnBefore = 0;
  let checking = false; // whether the cards are being compared with newer commits
  /** @type {Lnb.Json} */
  let pendingCard = null; // a card that another view asked for, before the menu is here

  const current = () => ({ branch: ctx.screen().branch, version: ctx.screen().version });
  const locked = () => ctx.screen().locked !== false;

  async function menu() {
    try {
      const { result } = await ctx.kernel.ask("stage.menu", current(), { quiet: true });
      form.offer(result);
      if (pendingCard) form.fill(pendingCard);
      pendingCard = null;
    } catch (error) {
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
  }

  async function look() {
    turnBefore = performance.now();
    if (work || ctx.kernel.state === "static") return;
    try {
      const { result } = await ctx.kernel.ask("stage.cards", {}, { quiet: true });
      if (!work) paint(result.area);
    } catch (error) {
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
    forecast();
  }

  /** Compare the cards with what others committed, while everything else goes on. */
  async function forecast() {
    if (checking || !area.cards.some((card) => card.checking || card.expectations?.checking))
      return;
    checking = true;
    try {
      const { result } = await ctx.kernel.ask("stage.forecast", {}, { quiet: true });
      if (!work) paint(result.area);
    } catch (error) {
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
    checking = false;
  }

  /**
   * Coming back to the cards, they are compared again with what others committed; another cell may
   * have made a variable, too.
   */
  function soon() {
    if (performance.now() - turnBefore <= 1000) return;
    look();
    menu();
  }

  /**
   * Do long work: how far it is is asked for by the way.
   * @param {string} type @param {Lnb.Args} [args]
   */
  async function act(type, args = {}) {
    if (work) return;
    show(problem);
    work = ctx.kernel.ask(
      type,
      { ...current(), ...args },
      {
        progress: (done, total) => {
          bar.max = total || 1;
          if (total) bar.value = done;
        },
      },
    );
    bar.removeAttribute("value");
    setText(progressText, "…");
    running.hidden = false;
    repaint();
    const timer = setInterval(tell, LOOK_MS);
    try {
      const { result } = await work;
      work = null;
      area = result.area;
      repaint();
      if (type === "stage.add") {
        form.clear();
        const created = result.area.cards.at(-1);
        ctx.code(created.code);
        ctx.announce(`staged: ${created.title}`);
        cards.lastElementChild?.scrollIntoView({ block: "nearest" });
      }
      if (type === "stage.commit") outcome(args.id);
      landed(result);
    } catch (error) {
      work = null;
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
      repaint();
      look();
    }
    clearInterval(timer);
    running.hidden = true;
    forecast();
  }

  /**
   * A commit was refused: why stands at the head of a card that may be long. Else its code is
   * shown.
   * @param {string} id
   */
  function outcome(id) {
    cards.querySelector(`[data-card="${id}"] .lnb-error`)?.scrollIntoView({ block: "nearest" });
    const card = area.cards.find((candidate) => candidate.id === id);
    if (card?.state === "ready") {
      const shown = cards.querySelector(`[data-card="${id}"]`); // it was not done: see why
      shown?.scrollIntoView({ block: "start" });
      ctx.announce(card.lines[0] ?? "");
    }
    if (card) ctx.code(card.code);
  }

  async function tell() {
    try {
      const { result } = await ctx.kernel.ask("stage.running", {}, { quiet: true });
      const now = result.running;
      if (!now || !work) return;
      const parts = [
        `${now.what}: ${now.phase}`,
        now.engine === "spark" ? "on Spark" : null,
        now.counts_tasks ? `${now.done} of ${plural(now.total, "task")}` : null,
        now.rows ? plural(now.rows, "row") : null,
        now.size_bytes ? bytes(now.size_bytes) : null,
        `${count(Math.round(now.elapsed_s))} s`,
      ];
      setText(progressText, parts.filter(Boolean).join(" · "));
    } catch {
      // The work itself tells what is wrong.
    }
  }

  /**
   * A new version lights up on the timeline; what has no version shows in the frame.
   * @param {Lnb.Json} result
   */
  function landed({ version, branch, timeline, card, place }) {
    if (version !== undefined && version !== null) {
      ctx.root.setAttribute("data-fresh", `${branch ?? "main"}:${version}`);
      ctx.announce(`committed as version ${version}`);
      ctx.travel({ branch, version });
    } else if (timeline) {
      ctx.refresh({ timeline, card });
      const screen = current(); // it may be gone
      if (place.version !== screen.version || place.branch !== screen.branch) ctx.travel(place);
    }
  }

  const all = (/** @type {boolean} */ asOne) =>
    act("stage.all", { message: message.value, together: asOne });

  /**
   * Cards that are as they were are left alone: somebody may be typing in one.
   * @param {Lnb.Json} next
   */
  function paint(next) {
    const same = JSON.stringify(next) === JSON.stringify(area);
    area = next;
    if (!same) repaint();
  }

  function repaint() {
    const shut = locked() || Boolean(work);
    const typed = new Map(
      [.../** @type {NodeListOf<HTMLElement>} */ (cards.querySelectorAll(".lnb-sg-card"))].map(
        (element) => [element.dataset.card, typedInto(element)],
      ),
    );
    const active = cards.contains(document.activeElement) ? document.activeElement : null;
    /** @type {HTMLElement | null} */
    const focused = active?.closest("[data-card]") ?? null;
    const focus = focused?.dataset.card;
    const position =
      focused && active ? inputsOf(focused).indexOf(/** @type {HTMLElement} */ (active)) : -1;
    form.enable(!shut);
    setText(notice, noticeText());
    notice.hidden = !notice.textContent;
    show(
      cards,
      area.cards.length
        ? area.cards.map((card, index) => {
            const shown = stageCard(
              {
                ...card,
                message: typed.get(card.id)?.message ?? card.message,
                typed: typed.get(card.id),
              },
              { first: !area.cards.slice(0, index).some(isOpen), locked: shut },
              actions(card),
            );
            shown.addEventListener("focusin", () => ctx.code(card.code));
            return shown;
          })
        : h(
            "p",
            { class: "lnb-sg-none" },
            "Nothing is staged. Choose a change above: its card shows what it would do; " +
              "nothing happens before you commit it.",
          ),
    );
    if (focus)
      inputsOf(cards.querySelector(`[data-card="${focus}"]`))[position]?.focus({
        preventScroll: true,
      });
    const unfinished = area.unfinished ?? [];
    jobs.hidden = !unfinished.length;
    show(
      jobs,
      unfinished.map((job) =>
        unfinishedJob(job, shut, {
          resume: (id) => act("stage.resume", { id }),
          forget: (id) => act("stage.forget", { id }),
          code: (code) => ctx.code(code),
        }),
      ),
    );
    const open = area.cards.filter(isOpen);
    bottom.hidden = open.length < 2;
    setText(together, `Commit ${open.length} as one version`);
    together.disabled = shut || Boolean(area.not_together);
    setText(each, `Commit ${open.length} one by one`);
    const refused = open.find((card) => card.expectations?.refused);
    each.disabled =
      shut || Boolean(area.not_each || refused) || open.some((card) => card.state === "failed");
    setText(
      why,
      area.not_each
        ? `cannot be committed one by one: ${area.not_each}`
        : refused
          ? `cannot be committed one by one: an expectation refuses “${refused.title}”`
          : area.not_together
            ? `cannot be committed as one version: ${area.not_together}`
            : "Each card is planned on the version it was staged on, without the other cards",
    );
  }

  function noticeText() {
    const state = ctx.screen().locked;
    if (state === null)
      return "Opened with read_only=True: changes can be entered and checked, not staged.";
    return state === false
      ? ""
      : "The lock is shut: changes can be entered and checked. Open the lock to stage them.";
  }

  /** @type {Map<string, {table: ReturnType<typeof conflictTable>, element: HTMLElement}>} */
  const tables = new Map();

  /** The conflicts of edits with what others committed, and the way to decide them. */
  function conflictsOf(/** @type {Lnb.Json} */ card) {
    if (!card.conflicts) {
      tables.delete(card.id);
      return null;
    }
    const openTable = tables.get(card.id);
    if (openTable) {
      openTable.table.put(card.conflicts);
      return openTable.element;
    }
    /** @type {Lnb.Json[]} */
    let choices = [];
    const apply = h(
      "button",
      {
        class: "lnb-button lnb-sg-go",
        type: "button",
        disabled: true,
        on: {
          click: () =>
            change("edit.resolve", { id: card.id, plan: card.conflicts.plan, choices }).then(() =>
              tables.delete(card.id),
            ),
        },
      },
      "Apply choices",
    );
    const table = conflictTable(
      ctx,
      (result) => {
        choices = result;
        apply.toggleAttribute("disabled", !result.length || locked());
      },
      { cells: "edit.lines", value: "edit.value", more: { id: card.id } },
    );
    table.put(card.conflicts);
    const element = h("div", { class: "lnb-sg-conflicts" }, table.element, h("p", {}, apply));
    tables.set(card.id, { table, element });
    return element;
  }

  /** Change the edits of a card. @param {string} type @param {Lnb.Args} args */
  async function change(type, args) {
    show(problem);
    try {
      await ctx.kernel.ask(type, args);
    } catch (error) {
      show(problem, ctx.problem(/** @type {Lnb.Failure} */ (error)));
    }
    await look();
  }

  /** @param {Lnb.Json} card @returns {import("./stage_card.js").CardActions} */
  const actions = (card) => ({
    conflicts: conflictsOf(card),
    drop: (edit) =>
      change("edit.drop", { branch: card.branch, version: card.read_version, ...edit }),
    commit: (words, approval = {}) =>
      act("stage.commit", { id: card.id, message: words, ...approval }),
    prepare: (engine) => act("stage.prepare", { id: card.id, engine }),
    rerun: () => act("stage.rerun", { id: card.id }),
    look: () => act("stage.look", { id: card.id }),
    remove: () => act("stage.remove", { id: card.id }),
    earlier: () => act("stage.earlier", { id: card.id }),
    undo: () =>
      act("stage.add", {
        verb: card.outcome.undo.verb,
        args: { version: card.outcome.undo.version },
        branch: card.outcome.branch,
        version: card.outcome.version,
      }),
    go: () => ctx.travel({ branch: card.outcome.branch, version: card.outcome.version }),
  });

  /** @param {{card?: Lnb.Json}} target */
  function open({ card }) {
    if (!card) return;
    pendingCard = card;
    menu();
  }

  ctx.onClose(
    ctx.kernel.onState((state) => {
      static_.hidden = state !== "static";
      form.element.hidden = state === "static";
    }),
  );
  window.addEventListener("focus", look);
  ctx.onClose(() => window.removeEventListener("focus", look));
  ctx.onScreen(
    (screen, patched) => {
      const place = `${screen.branch ?? "main"}:${screen.version}`;
      if (ctx.root.getAttribute("data-fresh") !== place) ctx.root.removeAttribute("data-fresh");
      if (!patched) menu();
      else repaint();
      look();
    },
    ["card", "locked", "news"],
  );
  return {
    open,
    shown: () => {
      menu();
      look();
    },
  };
}

export default widget(mountStage, "staged changes");
