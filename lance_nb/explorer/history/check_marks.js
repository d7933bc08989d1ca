// Marks of the expectations on the timeline: which versions pass, which fail and which nobody
// checked. They are asked for in the background, those in sight first, in small steps that can be
// cancelled.

import { count, h, button as makeButton, plural, show } from "../js/dom.js";

const STEP = 16; // versions of one request
const START_MS = 400; // the first screen is painted before

/**
 * @typedef {{key: string, newest: number, total: number, watched: boolean,
 *   marks: Map<number, [string, string]>}} Known the marks of one branch, and what they belong to
 * @param {Lnb.Context} ctx @param {() => Lnb.LaneMap | null} mapNow
 * @param {() => void} repaint paints the bars anew
 */
export function checkMarks(ctx, mapNow, repaint) {
  const element = h("span", { class: "lnb-tl-checks", role: "status", hidden: true });
  /** @type {Map<string | null, Known>} */
  const branches = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Lnb.Asked | null} */
  let running = null;
  let busy = false;
  let stopped = false; // somebody cancelled
  let wholly = false; // somebody asked for all versions
  /** @type {number[]} */
  let sight = [];

  const lane = () => mapNow()?.lanes[mapNow()?.here.lane ?? 0];
  const currentMarks = () => branches.get(lane()?.branch ?? null);
  /** @param {Known} marks @param {string} status */
  const all = (marks, status) =>
    [...marks.marks].filter(([, mark]) => mark[0] === status).map(([version]) => version);

  function soon() {
    if (ctx.kernel.state !== "live" || !ctx.has?.("checks")) return;
    clearTimeout(timer);
    timer = setTimeout(work, START_MS);
  }

  async function work() {
    if (busy || !lane()) return;
    busy = true;
    try {
      while (ctx.kernel.state === "live" && (await step()));
    } catch {
      stopped = true; // such as a store that does not answer: what is known stays
    }
    running = null;
    busy = false;
    paint();
  }

  /** Ask for what is missing most; whether there may be more to ask for. */
  async function step() {
    const current = lane();
    if (!current) return false;
    const newest = current.numbers.at(-1) ?? 0;
    const before = branches.get(current.branch);
    const marks =
      before?.newest === newest ? before : await renewed(current.branch, newest, before);
    if (!marks.total || stopped) return false;
    const numbers = missing(current, marks);
    if (!numbers.length) return false;
    paint(numbers.length);
    running = ctx.kernel.ask(
      "checks.marks",
      { branch: current.branch, numbers, read: wholly },
      { quiet: true, progress: () => {} },
    );
    const { result } = await running;
    if (result.key === marks.key)
      for (const [version, status, words] of result.marks)
        marks.marks.set(version, [status, words]);
    else marks.newest = 0; // the expectations are others now
    repaint();
    return true;
  }

  /**
   * Ask for the expectations of a branch; marks of the same ones stay.
   * @param {string | null} branch @param {number} newest @param {Known | undefined} before
   * @returns {Promise<Known>}
   */
  async function renewed(branch, newest, before) {
    const { result } = await ctx.kernel.ask("checks.state", { branch }, { quiet: true });
    const storedMarks = {
      key: result.key,
      newest,
      total: result.expectations.length + result.problems.length,
      watched: Boolean(result.is_watched),
      marks: before && before.key === result.key ? before.marks : new Map(),
    };
    branches.set(branch, storedMarks);
    repaint();
    return storedMarks;
  }

  /** @param {Lnb.Lane} current @param {Known} marks */
  function missing(current, marks) {
    const unknown = (/** @type {number} */ versionNumber) =>
      !marks.marks.has(versionNumber) ||
      (wholly && marks.marks.get(versionNumber)?.[0] === "unchecked");
    const first = sight.filter(unknown);
    const numbers =
      first.length || !(marks.watched || wholly) ? first : current.numbers.filter(unknown);
    return numbers.slice(-STEP).reverse();
  }

  function paint(under_way = 0) {
    const marks = currentMarks();
    element.hidden = !marks?.total;
    if (!marks?.total) return;
    const numbers = lane()?.numbers ?? [];
    const failed = all(marks, "fail");
    const passed = all(marks, "pass").length;
    const left = numbers.length - marks.marks.size + all(marks, "unchecked").length;
    const bad = failed.length
      ? button(`✗ ${plural(failed.length, "version")} failed`, () => bisect(), {
          kind: " lnb-tl-failed",
          title: "Find the first version that fails, and its rows",
        })
      : passed && !left && h("span", { class: "lnb-tl-passed" }, `✓ ${plural(passed, "version")}`);
    show(
      element,
      bad,
      under_way > 0 &&
        h("span", {}, `checking ${count(numbers.length - left)} of ${count(numbers.length)}`),
      under_way > 0
        ? button("Cancel", cancel, { title: "Stop checking versions" })
        : left > 0 &&
            button(`Check ${plural(left, "version")}`, checkAll, {
              title: "Evaluate the expectations at the versions that nobody checked yet",
            }),
    );
  }

  /** @param {string} words @param {() => void} act @param {{kind?: string, title?: string}} how */
  const button = (words, act, { kind = "", title }) =>
    makeButton(words, act, { class: `lnb-button${kind}`, title });

  function cancel() {
    stopped = true;
    running?.cancel();
    paint();
  }

  function checkAll() {
    stopped = false;
    wholly = true;
    work();
  }

  const first = () => {
    const marks = currentMarks();
    return marks ? Math.min(...all(marks, "fail")) : Infinity;
  };

  function bisect() {
    ctx.go("checks", { bisect: first() });
  }

  ctx.onClose(ctx.kernel.onState(soon));
  ctx.onClose(() => {
    clearTimeout(timer);
    running?.cancel();
  });
  return {
    element,
    /** The bars of the branch in view that are in sight. @param {number[]} numbers */
    seen(numbers) {
      sight = numbers;
      const marks = currentMarks();
      const newest = lane()?.numbers.at(-1) ?? 0;
      if (
        marks?.newest !== newest ||
        (marks.total && missing(/** @type {Lnb.Lane} */ (lane()), marks).length)
      )
        soon();
      if (!busy) paint();
    },
    /** @param {string | null} branch @param {number} version */
    status(branch, version) {
      const marks = branches.get(branch);
      return marks?.total ? (marks.marks.get(version)?.[0] ?? "unchecked") : "";
    },
    /** @param {string | null} branch @param {number} version */
    words: (branch, version) => branches.get(branch)?.marks.get(version)?.[1] ?? "",
    /** A bar was clicked: the first one that fails is explained. @param {string | null} branch
     * @param {number} version */
    clicked(branch, version) {
      if (branch === lane()?.branch && version === first()) bisect();
    },
  };
}
