// The expectations of a dataset: what they found at the version shown, the version that broke one,
// a form for a new one (expectation_form.js), and the gate of staging.

import { button, count, h, plural, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { longAction } from "../js/long_action.js";
import { titleOfOperation } from "../js/operations.js";
import { sampleTable } from "../js/sample_table.js";
import { widget } from "../js/view.js";
import { writeGuard } from "../js/write_guard.js";
import { ExpectationForm } from "./expectation_form.js";

/** @type {Record<string, string>} */
const SIGNS = { pass: "✓", fail: "✗", unknown: "?" };
/** @type {Record<string, string>} */
const LABELS = { pass: "passed", fail: "failed", unknown: "cannot be evaluated" };
const NOT_BOUND =
  "Other writers, such as pylance, Spark and ds.insert, do not know the gate and are not bound " +
  "by it.";
const NONE_YET =
  "Expect something of every version, such as score BETWEEN 0 AND 1: versions that pass and fail " +
  "are marked on the timeline.";
const CLOSED = "The gate is closed: the Stage tab refuses a commit that breaks an expectation.";

/** @param {Lnb.Json} outcome */
const isFailure = (outcome) => outcome.status === "fail";

/** @param {Lnb.Child} text */
const note = (text) => h("li.lnb-faint", text);

class Expectations {
  /** @type {Lnb.Json} */
  state = null;
  /** @type {Lnb.Json} the result at the version shown */
  result = null;
  place = "";
  loads = 0;
  /** @type {number | null} a failing version that was asked for before the state was loaded */
  failingVersion = null;
  head = h("div.lnb-ex-head");
  progress = h("div.lnb-ex-progress");
  status = h("p.lnb-ex-status", { role: "status" });
  list = h("ul.lnb-ex-list", { "aria-label": "expectations" });
  out = h("div.lnb-ex-out");

  /** @param {HTMLElement} el @param {Lnb.Context} ctx */
  constructor(el, ctx) {
    this.ctx = ctx;
    this.guard = writeGuard(ctx);
    this.form = new ExpectationForm(ctx, this.guard, (args) =>
      this.write("checks.add", args, "Adding…"),
    );
    el.append(
      h(
        "div.lnb-ex",
        { tabindex: "0", role: "region", "aria-label": "checks" },
        ctx.writes ? null : h("p", lockButton(ctx)),
        this.head,
        this.progress,
        this.status,
        this.list,
        this.form.element,
        this.out,
      ),
    );
    ctx.onClose(
      ctx.kernel.onState((state) => {
        if (state === "static")
          show(this.status, "Expectations are evaluated by the kernel. Run the cell to see them.");
      }),
    );
    ctx.onScreen((_screen, patched) => patched || this.load(), ["card", "news"]);
  }

  /** @param {{bisect?: number}} target a version at which something fails */
  open({ bisect: version }) {
    if (version === undefined) return;
    if (this.state) this.findFirst(version);
    else this.failingVersion = version;
  }

  async load() {
    const { ctx } = this;
    if (ctx.kernel.state === "static") return;
    const { branch, version } = ctx.screen();
    const load = (this.loads += 1);
    try {
      const { result } = await ctx.kernel.ask("checks.state", { branch }, { quiet: true });
      if (load !== this.loads) return;
      const isSame = this.state?.key === result.key && this.place === `${branch}:${version}`;
      this.state = result;
      this.place = `${branch}:${version}`;
      this.form.offer(result.columns ?? []);
      if (!isSame) this.result = null;
      this.paint();
      if (this.failingVersion !== null) {
        const failing = this.failingVersion;
        this.failingVersion = null;
        await this.run();
        this.findFirst(failing);
      } else if (!isSame && result.expectations.length) this.run();
    } catch (error) {
      const problem = ctx.problem(error, () => this.load());
      show(this.progress, problem);
    }
  }

  /** @param {number} version @param {HTMLElement} place where the progress is shown */
  check(version, place) {
    return longAction(this.ctx, place, {
      type: "checks.run",
      args: { branch: this.ctx.screen().branch, version },
      words: "Checking…",
      noun: "expectation",
    });
  }

  async run() {
    const { branch, version } = this.ctx.screen();
    const result = await this.check(version, this.progress);
    if (!result || this.place !== `${branch}:${version}`) return;
    this.result = result;
    this.ctx.code(result.code);
    this.paint();
  }

  paint() {
    const { expectations, problems, gate } = this.state;
    const total = expectations.length;
    const setGate = () => this.write("checks.gate", { closed: !gate }, "Committing…");
    show(
      this.head,
      h(
        "strong",
        this.result?.sentence ?? (total ? plural(total, "expectation") : "No expectations"),
      ),
      total > 0 &&
        button("Run now", () => this.run(), {
          title: "Evaluate the expectations at the version shown",
        }),
      h(
        "span.lnb-ex-gate",
        { title: NOT_BOUND },
        `gate of staging: ${gate ? "closed" : "open"} `,
        (total || gate) && this.guard.button(gate ? "Open the gate" : "Close the gate", setGate),
      ),
    );
    show(
      this.list,
      expectations.map((/** @type {Lnb.Json} */ expectation) => this.line(expectation)),
      problems.map((/** @type {Lnb.Json} */ problem) => this.damagedLine(problem)),
      total + problems.length === 0 && note(NONE_YET),
      gate && note(`${CLOSED} ${NOT_BOUND}`),
    );
  }

  /** @param {string} name of an expectation */
  removeButton(name) {
    return this.guard.button("Remove", () => this.write("checks.remove", { name }, "Removing…"));
  }

  /** A line for what the configuration holds and nobody can read. @param {Lnb.Json} problem */
  damagedLine({ label, problem, name }) {
    return h(
      "li.lnb-ex-one.lnb-ex-unknown",
      h("i", { "aria-hidden": "true" }, "?"),
      h("b", label),
      h("span.lnb-ex-detail", problem),
      this.removeButton(name),
    );
  }

  /** @param {Lnb.Json} expectation */
  line({ name, statement }) {
    const outcome = this.result?.outcomes.find(
      (/** @type {Lnb.Json} */ candidate) => candidate.name === name,
    );
    const status = outcome?.status ?? "none";
    const { branch, version } = this.ctx.screen();
    return h(
      "li",
      { class: `lnb-ex-one lnb-ex-${status}`, "data-name": name },
      h("i", { "aria-hidden": "true" }, SIGNS[status] ?? "·"),
      h("b", name),
      h("code", statement),
      h("span.lnb-offscreen", LABELS[status] ?? "not checked"),
      h("span.lnb-ex-detail", outcome?.detail ?? ""),
      status === "fail" &&
        outcome.rows > 0 &&
        button("Show rows", () => this.showRows(name, version), {
          title: "The rows that fail here",
        }),
      status === "fail" &&
        button("Find the first", () => this.bisect(name, branch, version), {
          title: "Find the first version at which it fails, by binary search",
        }),
      this.removeButton(name),
    );
  }

  /** Find what failed first up to a version that fails. @param {number} version */
  async findFirst(version) {
    const { branch, version: shown } = this.ctx.screen();
    let failure = shown === version ? this.result?.outcomes.find(isFailure) : null;
    failure ??= (await this.check(version, this.out))?.outcomes.find(isFailure);
    if (failure) this.bisect(failure.name, branch, version);
  }

  /** @param {string} name @param {string | null} branch @param {number} bad */
  async bisect(name, branch, bad) {
    const { ctx } = this;
    const result = await longAction(ctx, this.out, {
      type: "checks.bisect",
      args: { branch, name, bad },
      words: `Searching the first version at which ${name} fails…`,
      again: () => this.bisect(name, branch, bad),
    });
    if (!result) return;
    const { outcome, label, first_bad: version, last_good: lastGood } = result;
    ctx.code(result.code);
    ctx.announce(result.sentence);
    const place = { branch, version };
    const compare = () => ctx.go("changes", { a: { branch, version: lastGood }, b: place });
    this.showSection(
      `first version at which ${name} fails`,
      h("h4", version === null ? "It does not fail" : `${name} fails first at ${label}`),
      h("p", result.sentence),
      outcome?.detail && h("p.lnb-ex-detail", outcome.detail),
      version !== null &&
        h(
          "p.lnb-ex-acts",
          button(`Go to ${label}`, () => ctx.travel(place)),
          lastGood !== null && ctx.has("changes") && button("What changed there", compare),
          this.gridButton(outcome, place),
        ),
      sampleOf(result),
      triedList(result.tried),
    );
  }

  /** @param {string} name @param {number} version */
  async showRows(name, version) {
    const { branch } = this.ctx.screen();
    const result = await longAction(this.ctx, this.out, {
      type: "checks.rows",
      args: { branch, version, name },
      words: "Reading…",
      noun: "expectation",
    });
    if (!result) return;
    this.showSection(
      `rows for which ${name} fails`,
      sampleOf(result) ?? h("p", "No row fails."),
      h("p.lnb-ex-acts", this.gridButton(result.outcome, { branch, version })),
    );
  }

  /** @param {string} label @param {...Lnb.Child} content */
  showSection(label, ...content) {
    show(this.out, h("section.lnb-ex-bisect", { "aria-label": label }, ...content));
    this.out.scrollIntoView({ block: "nearest" });
  }

  /** @param {Lnb.Json} outcome @param {Lnb.Place} place */
  gridButton(outcome, place) {
    const { ctx } = this;
    if (!outcome?.filter || !ctx.has("rows")) return null;
    return button("Filter the grid for them", () => {
      const { branch, version } = ctx.screen();
      if (place.version !== version || place.branch !== branch) ctx.travel(place);
      ctx.go("rows", { filter: outcome.filter });
    });
  }

  /** @param {string} type @param {Lnb.Args} args @param {string} words */
  async write(type, args, words) {
    const { ctx } = this;
    const result = await longAction(ctx, this.progress, {
      type,
      args: { branch: ctx.screen().branch, ...args },
      words,
      again: () => this.load(),
    });
    if (!result) return false;
    show(this.status, `✓ ${result.words}`);
    ctx.announce(result.words);
    ctx.code(result.code);
    ctx.travel({ branch: result.branch, version: result.version });
    return true;
  }
}

/** @param {Lnb.Json} result */
function sampleOf({ sample, outcome }) {
  if (!sample) return null;
  const shown = sample.rows.length;
  const label =
    outcome.rows > shown
      ? `the first ${count(shown)} of ${plural(outcome.rows, "row")} that fail`
      : `${plural(shown, "row")} that fail${shown === 1 ? "s" : ""}`;
  return sampleTable({ label, sign: "✗", ...sample });
}

/** The versions that a binary search looked at. @param {Lnb.Json[]} trials */
function triedList(trials) {
  const items = trials.map(({ holds, version, operation, message }) =>
    h(
      "li",
      `${holds === null ? "?" : holds ? "✓" : "✗"} version ${version} `,
      h("small", [operation && titleOfOperation(operation), message].filter(Boolean).join(" · ")),
    ),
  );
  return h(
    "details",
    h("summary", `${plural(trials.length, "version")} checked`),
    h("ul.lnb-ex-tried", items),
  );
}

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountExpectations(el, ctx) {
  return new Expectations(el, ctx);
}

export default widget(mountExpectations, "expectations");
