// Marks of the expectations on the timeline: which versions pass, which fail and which nobody
// checked. They are asked for in the background, those in sight first, in small steps that can be
// cancelled.

import { button, count, h, plural, show } from "../js/dom.js";

const STEP = 16; // versions of one request
const START_MS = 400; // the first screen is painted before

/**
 * The marks of one branch, and what they belong to.
 * @typedef {{key: string, newest: number, total: number, isWatched: boolean,
 *   marks: Map<number, [status: string, label: string]>}} BranchMarks
 */

/** @param {BranchMarks} branch @param {string} status */
const versionsWith = ({ marks }, status) =>
  [...marks].filter(([, mark]) => mark[0] === status).map(([version]) => version);

export class CheckMarks {
  element = h("span.lnb-tl-checks", { role: "status", hidden: true });
  /** @type {Map<string | null, BranchMarks>} */
  branches = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** @type {Lnb.Asked | null} */
  running = null;
  isBusy = false;
  isStopped = false; // somebody cancelled
  checksAll = false; // somebody asked for all versions
  /** @type {number[]} */
  inSight = [];

  /**
   * @param {Lnb.Context} ctx @param {() => Lnb.LaneMap | null} map
   * @param {() => void} repaint paints the bars anew
   */
  constructor(ctx, map, repaint) {
    this.ctx = ctx;
    this.map = map;
    this.repaint = repaint;
    ctx.onClose(ctx.kernel.onState(() => this.start()));
    ctx.onClose(() => {
      clearTimeout(this.timer);
      this.running?.cancel();
    });
  }

  /** The bars of the branch in view that are in sight. @param {number[]} numbers */
  seen(numbers) {
    this.inSight = numbers;
    const lane = this.lane();
    const branch = this.current();
    const isOld = branch?.newest !== (lane?.numbers.at(-1) ?? 0);
    if (isOld || (lane && branch?.total && this.missing(lane, branch).length)) this.start();
    if (!this.isBusy) this.paint();
  }

  /** @param {string | null} branch @param {number} version */
  status(branch, version) {
    const marks = this.branches.get(branch);
    return marks?.total ? (marks.marks.get(version)?.[0] ?? "unchecked") : "";
  }

  /** @param {string | null} branch @param {number} version */
  words(branch, version) {
    return this.branches.get(branch)?.marks.get(version)?.[1] ?? "";
  }

  /** A bar was clicked: the first one that fails is explained. @param {string | null} branch
   * @param {number} version */
  clicked(branch, version) {
    if (branch === this.lane()?.branch && version === this.firstFailure()) this.explain();
  }

  lane() {
    const map = this.map();
    return map?.lanes[map.here.lane ?? 0];
  }

  current() {
    return this.branches.get(this.lane()?.branch ?? null);
  }

  start() {
    if (this.ctx.kernel.state !== "live" || !this.ctx.has?.("checks")) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.work(), START_MS);
  }

  async work() {
    if (this.isBusy || !this.lane()) return;
    this.isBusy = true;
    try {
      while (this.ctx.kernel.state === "live" && (await this.step()));
    } catch {
      this.isStopped = true; // such as a store that does not answer: what is known stays
    }
    this.running = null;
    this.isBusy = false;
    this.paint();
  }

  /** Ask for what is missing most; whether there may be more to ask for. */
  async step() {
    const lane = this.lane();
    if (!lane) return false;
    const { branch } = lane;
    const newest = lane.numbers.at(-1) ?? 0;
    let marks = this.branches.get(branch);
    if (marks?.newest !== newest) marks = await this.load(branch, newest);
    if (!marks.total || this.isStopped) return false;
    const numbers = this.missing(lane, marks);
    if (!numbers.length) return false;
    this.paint(true);
    this.running = this.ctx.kernel.ask(
      "checks.marks",
      { branch, numbers, read: this.checksAll },
      { quiet: true, progress: () => {} },
    );
    const { result } = await this.running;
    if (result.key === marks.key)
      for (const [version, status, label] of result.marks)
        marks.marks.set(version, [status, label]);
    else marks.newest = 0; // the expectations are others now
    this.repaint();
    return true;
  }

  /**
   * Ask for the expectations of a branch; marks of the same ones stay.
   * @param {string | null} branch @param {number} newest
   */
  async load(branch, newest) {
    const before = this.branches.get(branch);
    const { result } = await this.ctx.kernel.ask("checks.state", { branch }, { quiet: true });
    /** @type {BranchMarks} */
    const marks = {
      key: result.key,
      newest,
      total: result.expectations.length + result.problems.length,
      isWatched: Boolean(result.is_watched),
      marks: before && before.key === result.key ? before.marks : new Map(),
    };
    this.branches.set(branch, marks);
    this.repaint();
    return marks;
  }

  /** The versions to ask for next. @param {Lnb.Lane} lane @param {BranchMarks} branch */
  missing({ numbers }, { marks, isWatched }) {
    const isMissing = (/** @type {number} */ version) =>
      !marks.has(version) || (this.checksAll && marks.get(version)?.[0] === "unchecked");
    let missing = this.inSight.filter(isMissing);
    if (!missing.length && (isWatched || this.checksAll)) missing = numbers.filter(isMissing);
    return missing.slice(-STEP).reverse();
  }

  paint(isChecking = false) {
    const branch = this.current();
    this.element.hidden = !branch?.total;
    if (!branch?.total) return;
    const total = this.lane()?.numbers.length ?? 0;
    const failed = versionsWith(branch, "fail").length;
    const passed = versionsWith(branch, "pass").length;
    const left = total - branch.marks.size + versionsWith(branch, "unchecked").length;
    const failures = button(`✗ ${plural(failed, "version")} failed`, () => this.explain(), {
      class: "lnb-button lnb-tl-failed",
      title: "Find the first version that fails, and its rows",
    });
    const successes = h("span.lnb-tl-passed", `✓ ${plural(passed, "version")}`);
    const checkAll = button(`Check ${plural(left, "version")}`, () => this.checkAll(), {
      title: "Evaluate the expectations at the versions that nobody checked yet",
    });
    show(
      this.element,
      failed > 0 ? failures : passed > 0 && !left && successes,
      isChecking && h("span", `checking ${count(total - left)} of ${count(total)}`),
      isChecking
        ? button("Cancel", () => this.cancel(), { title: "Stop checking versions" })
        : left > 0 && checkAll,
    );
  }

  cancel() {
    this.isStopped = true;
    this.running?.cancel();
    this.paint();
  }

  checkAll() {
    this.isStopped = false;
    this.checksAll = true;
    this.work();
  }

  firstFailure() {
    const branch = this.current();
    return branch ? Math.min(...versionsWith(branch, "fail")) : Infinity;
  }

  explain() {
    this.ctx.go("checks", { bisect: this.firstFailure() });
  }
}
