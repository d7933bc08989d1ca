// Marks of the expectations on the timeline: which versions pass, which fail and which nobody
// checked. They are asked for in the background, those in sight first, in small steps that can be
// cancelled.

import { count, h, plural, show } from "./dom.js";

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
  const here = () => branches.get(lane()?.branch ?? null);
  /** @param {Known} known @param {string} status */
  const all = (known, status) =>
    [...known.marks].filter(([, mark]) => mark[0] === status).map(([version]) => version);

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
    const at = lane();
    if (!at) return false;
    const newest = at.numbers.at(-1) ?? 0;
    const before = branches.get(at.branch);
    const known = before?.newest === newest ? before : await renewed(at.branch, newest, before);
    if (!known.total || stopped) return false;
    const numbers = missing(at, known);
    if (!numbers.length) return false;
    paint(numbers.length);
    running = ctx.kernel.ask(
      "checks.marks",
      { branch: at.branch, numbers, read: wholly },
      { quiet: true, progress: () => {} },
    );
    const { result } = await running;
    if (result.key === known.key)
      for (const [version, status, words] of result.marks)
        known.marks.set(version, [status, words]);
    else known.newest = 0; // the expectations are others now
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
    const known = {
      key: result.key,
      newest,
      total: result.expectations.length + result.problems.length,
      watched: Boolean(result.is_watched),
      marks: before && before.key === result.key ? before.marks : new Map(),
    };
    branches.set(branch, known);
    repaint();
    return known;
  }

  /** @param {Lnb.Lane} at @param {Known} known */
  function missing(at, known) {
    const unknown = (/** @type {number} */ one) =>
      !known.marks.has(one) || (wholly && known.marks.get(one)?.[0] === "unchecked");
    const first = sight.filter(unknown);
    const found = first.length || !(known.watched || wholly) ? first : at.numbers.filter(unknown);
    return found.slice(-STEP).reverse();
  }

  function paint(under_way = 0) {
    const known = here();
    element.hidden = !known?.total;
    if (!known?.total) return;
    const numbers = lane()?.numbers ?? [];
    const failed = all(known, "fail");
    const passed = all(known, "pass").length;
    const left = numbers.length - known.marks.size + all(known, "unchecked").length;
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
    h("button", { class: `lnb-button${kind}`, type: "button", title, on: { click: act } }, words);

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
    const known = here();
    return known ? Math.min(...all(known, "fail")) : Infinity;
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
      const known = here();
      const newest = lane()?.numbers.at(-1) ?? 0;
      if (
        known?.newest !== newest ||
        (known.total && missing(/** @type {Lnb.Lane} */ (lane()), known).length)
      )
        soon();
      if (!busy) paint();
    },
    /** @param {string | null} branch @param {number} version */
    status(branch, version) {
      const known = branches.get(branch);
      return known?.total ? (known.marks.get(version)?.[0] ?? "unchecked") : "";
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
