// The log: what was done from here, by whom, the same as code, and a button that undoes it.

import { ageOf, button, h, show } from "../js/dom.js";
import { lockButton } from "../js/lock_button.js";
import { longAction } from "../js/long_action.js";
import { widget } from "../js/view.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountOperationsLog(el, ctx) {
  const list = h("ol.lnb-ol-list", { reversed: true });
  const out = h("div.lnb-ol-out", { role: "status" });
  el.append(
    h(
      "div.lnb-ol",
      { tabindex: "0", role: "region", "aria-label": "log" },
      ctx.writes ? null : h("p.lnb-ol-alone", lockButton(ctx)),
      out,
      list,
    ),
  );
  /** @type {Lnb.Json} */
  let log = { entries: [], hidden: 0 };
  const locked = () => ctx.screen().locked !== false;

  async function load() {
    if (ctx.kernel.state === "static") return;
    try {
      const { result } = await ctx.kernel.ask("log.list", {}, { quiet: true });
      log = result;
      paint();
    } catch (error) {
      show(out, ctx.problem(error, load));
    }
  }

  function paint() {
    show(
      list,
      log.entries.length
        ? log.entries.map(line)
        : h(
            "li.lnb-ol-none",
            "Nothing was done from here yet. Commits, tags, branches and clean-ups of this " +
              "kernel are listed here, and can be undone where that is possible.",
          ),
      log.hidden ? h("li.lnb-faint", `and ${log.hidden} more`) : null,
    );
  }

  /** @param {Lnb.Json} entry */
  function line(entry) {
    const { undo } = entry;
    return h(
      "li",
      {
        class: `lnb-ol-entry${entry.state === "undone" ? " lnb-ol-undone" : ""}`,
        "data-entry": String(entry.id),
        on: { focusin: () => ctx.code(entry.code), click: () => ctx.code(entry.code) },
      },
      h(
        "div.lnb-ol-head",
        h("strong", entry.what),
        entry.version === null
          ? null
          : button(
              entry.label,
              () => ctx.travel({ branch: entry.branch, version: entry.version }),
              { class: "lnb-link" },
            ),
        h("small", entry.who, " · ", ageOf(entry.time_ms)),
      ),
      h("code.lnb-ol-code", entry.code.python),
      undo.reason
        ? h(
            "p.lnb-ol-reason",
            entry.state === "undone" ? "↶ Undone" : `Cannot be undone: ${undo.reason}.`,
          )
        : h(
            "p",
            button(`↶ Undo: ${undo.label}`, () => act(entry.id), {
              class: "lnb-button lnb-ol-undo",
              disabled: locked(),
              title: locked() ? "Open the lock first" : null,
            }),
          ),
    );
  }

  /** @param {number} id */
  async function act(id) {
    const result = await longAction(ctx, out, {
      type: "log.undo",
      args: { id },
      words: "Undoing…",
      again: load,
    });
    if (!result) return;
    log = result;
    paint();
    show(out, h("p.lnb-ol-done", `✓ ${result.words}`));
    ctx.announce(result.words);
    ctx.refresh(result.parts);
    const { branch, version } = ctx.screen();
    const { place } = result;
    if (place.branch !== branch || place.version !== version)
      ctx.travel({ branch: place.branch, version: place.version });
  }

  ctx.onScreen((_screen, patched) => (patched ? paint() : load()), ["card", "locked", "news"]);
  return { shown: load };
}

export default widget(mountOperationsLog, "log of operations");
