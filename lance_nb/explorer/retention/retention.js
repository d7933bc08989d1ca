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

/**
 * @param {HTMLElement} el @param {Lnb.Context} ctx
 * @param {import("./retention_button.js").RetentionLink} [link]
 */
export function mountRetention(el, ctx, link) {
  const panel = h("section", { class: "lnb-rt", "aria-label": "clean-up simulator" });
  el.append(panel);
  const request = ctx.kernel.line();
  const files = ctx.kernel.line();
  const branch = ctx.screen().branch ?? null;
  /** @type {Lnb.Json} */
  let state = null;
  /** @type {Lnb.Json} */
  let simulated = null;
  /** @type {Set<string>} */
  const dropped = new Set();
  let keep = 1;
  let days = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let stale = false;
  let listed = 0; // versions on the timeline when the survey was taken

  const keepWords = h("output", { class: "lnb-rt-value" });
  const dayWords = h("output", { class: "lnb-rt-value" });
  const total = h("p", { class: "lnb-rt-total", "aria-live": "polite" });
  const detail = h("div", { class: "lnb-rt-files" });
  const notice = h("p", { class: "lnb-rt-notice", hidden: true });
  const problem = h("div", {});
  const stageButton = button("Stage this clean-up", stage, { class: "lnb-button lnb-write" });

  async function open() {
    const result = await longAction(ctx, panel, {
      type: "retention.open",
      args: { branch },
      words: "Reading which version needs which file…",
      noun: "manifest",
      again: open,
    });
    if (!result || !panel.isConnected) return;
    stale = false;
    listed = versionsOf(ctx.screen(), branch);
    state = result;
    keep = state.versions;
    days = 0;
    dropped.clear();
    paint();
    move();
  }

  function paint() {
    const oldest = Math.max(1, Math.ceil(state.oldest_days));
    show(
      panel,
      h(
        "div",
        { class: "lnb-rt-controls" },
        slider(
          "keep the newest",
          { min: "1", max: String(Math.max(1, state.versions)), value: String(keep) },
          keepWords,
          (value) => {
            keep = value;
          },
        ),
        slider(
          "and all younger than",
          { min: "0", max: String(oldest), value: String(days) },
          dayWords,
          (value) => {
            days = value;
          },
        ),
        tags(),
      ),
      h(
        "div",
        { class: "lnb-rt-result" },
        total,
        h(
          "p",
          { class: "lnb-rt-acts" },
          stageButton,
          button("Close", () => link?.close()),
        ),
      ),
      notice,
      problem,
      detail,
    );
  }

  /**
   * @param {string} label @param {{min: string, max: string, value: string}} range
   * @param {HTMLElement} words @param {(value: number) => void} set
   */
  function slider(label, range, words, set) {
    /** @type {HTMLInputElement} */
    const input = h("input", {
      type: "range",
      class: "lnb-rt-slider",
      "aria-label": label,
      ...range,
      on: {
        input: () => {
          set(Number(input.value));
          move();
        },
        keydown: (event) => event.stopPropagation(),
      },
    });
    return h("label", { class: "lnb-rt-control" }, h("span", {}, label), input, words);
  }

  /** Tags keep their versions; one that is switched off counts as deleted. */
  function tags() {
    if (!state.tags.length) return null;
    return h(
      "div",
      { class: "lnb-rt-tags", role: "group", "aria-label": "tags that keep their version" },
      h("span", {}, "tags kept"),
      state.tags.map((/** @type {Lnb.Json} */ tag) => {
        const chip = button(
          `⚑ ${tag.label}`,
          () => {
            if (!dropped.delete(tag.name)) dropped.add(tag.name);
            chip.setAttribute("aria-pressed", String(!dropped.has(tag.name)));
            move();
          },
          { class: "lnb-choice", "aria-pressed": "true", title: `version ${tag.version}` },
        );
        return chip;
      }),
      state.hidden_tags ? h("span", { class: "lnb-faint" }, `and ${state.hidden_tags} more`) : null,
    );
  }

  const rule = () => ({ keep, days: days || null, drop_tags: [...dropped] });

  function move() {
    setText(keepWords, `${count(keep)} of ${plural(state.versions, "version")}`);
    setText(dayWords, days ? plural(days, "day") : "any age");
    request(
      "retention.move",
      rule(),
      ({ result }) => {
        simulated = result;
        show(problem);
        paintResult();
      },
      (error) => show(problem, ctx.problem(error, open)),
    );
  }

  function paintResult() {
    const { versions, files: number, size } = simulated;
    show(
      total,
      versions || number
        ? [
            "Would remove ",
            h("b", {}, plural(versions, "version")),
            ` and free `,
            h("b", {}, size),
            ` in ${plural(number, "file")}`,
          ]
        : "Nothing would be removed",
    );
    const shut = ctx.screen().locked !== false;
    stageButton.disabled = shut || stale || !(versions || number);
    stageButton.title = shut ? "Open the lock first" : "";
    const words = [
      stale && "The dataset changed. Close and open the simulator to see it as it is now.",
      state.damaged &&
        `${plural(state.damaged, "manifest")} cannot be read: a clean-up would be refused.`,
      dropped.size &&
        `Deleting ${plural(dropped.size, "tag")} is staged as a card of its own: commit it ` +
          "first, then refresh the card of the clean-up.",
    ].filter(Boolean);
    notice.hidden = !words.length;
    setText(notice, words.join(" "));
    ctx.code(simulated.code);
    link?.put(goes, reason);
  }

  /** @param {string | null} of @param {number} version */
  const goes = (of, version) =>
    (of ?? null) === branch &&
    simulated.goes.some(
      (/** @type {number[]} */ [first, last]) => first <= version && version <= last,
    );

  /** Why a version stays. @param {string | null} of @param {number} version */
  function reason(of, version) {
    if ((of ?? null) !== branch || !simulated) return "";
    if (goes(of, version)) return "would be removed";
    const run = simulated.stays.find(
      (/** @type {[number, number, string]} */ [first, last]) =>
        first <= version && version <= last,
    );
    return run ? `stays: ${run[2]}` : "";
  }

  /** @param {string | null} of @param {number} version */
  function hovered(of, version) {
    if ((of ?? null) !== branch || !state) return;
    clearTimeout(timer);
    timer = setTimeout(
      () =>
        files(
          "retention.files",
          { ...rule(), version },
          ({ result }) => paintFiles(result),
          (error) => show(detail, ctx.problem(error)),
        ),
      HOVER_MS,
    );
  }

  /** @param {Lnb.Json} result */
  function paintFiles(result) {
    show(
      detail,
      h(
        "h4",
        {},
        `${state.label}:${result.version} `,
        h("small", {}, result.goes ? "would be removed" : `stays: ${result.reason}`),
      ),
      h(
        "ul",
        {},
        result.files.map((/** @type {Lnb.Json} */ file) =>
          h(
            "li",
            { class: file.goes ? "lnb-rt-goes" : "", title: file.kept },
            h("i", { "aria-hidden": "true" }, file.goes ? "−" : "="),
            h("code", {}, file.name),
            h("small", {}, file.size),
            h("span", {}, file.kept),
          ),
        ),
      ),
    );
  }

  async function stage() {
    stageButton.disabled = true;
    const { branch: at, version } = ctx.screen();
    const place = { branch: at, version };
    try {
      for (const name of dropped)
        await ctx.kernel.ask("stage.add", {
          ...place,
          verb: "tag",
          args: { action: "delete", name },
        });
      const args = { keep, ...(days ? { older_than: days } : {}) };
      await ctx.kernel.ask("stage.add", { ...place, verb: "cleanup", args });
      ctx.go("stage");
    } catch (error) {
      show(problem, ctx.problem(error));
    }
    if (simulated) paintResult();
  }

  if (link) link.hovered = hovered;
  ctx.onScreen(
    (screen, patched) => {
      if (!panel.isConnected || !simulated) return;
      if ((screen.branch ?? null) !== branch) {
        link?.close();
        return;
      }
      const news = patched && Boolean(screen.news?.added || screen.news?.gone);
      stale = stale || news || versionsOf(screen, branch) !== listed;
      paintResult();
    },
    ["timeline", "locked", "news"],
  );
  open();
}

export default widget(mountRetention, "clean-up simulator");
