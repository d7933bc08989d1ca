// Forms of branches and tags: a ref is checked while it is typed, consequences are shown beside it,
// and buttons that write wait for the lock.

import { button, h, show } from "../js/dom.js";
import { suggestions } from "../js/suggestions.js";
import { consequenceList } from "../stage/consequence_card.js";

/**
 * What views that write share.
 * @typedef {Object} RefTools
 * @property {ReturnType<typeof import("../js/write_guard.js").writeGuard>} guard
 * @property {(result: Lnb.Json, how?: {travel?: boolean}) => void} done something was written
 * @property {() => void} close
 */

/**
 * @param {Lnb.Context} ctx
 * @param {{kind: string, action: "create"|"move", name?: string, seen?: Lnb.Json, at: string}} of
 * @param {RefTools & {again?: () => void}} tools `again` if there is something to look at again
 */
export function refForm(ctx, { kind, action, name = "", seen = null, at: refText }, tools) {
  const title = action === "move" ? `Move tag ${name}` : `New ${kind}`;
  const box = h("input.lnb-input", {
    "aria-label": `name of the ${kind}`,
    placeholder: `name of the ${kind}`,
    spellcheck: "false",
    autocomplete: "off",
    hidden: action === "move",
    on: { input: check },
  });
  const note = h("input.lnb-input.lnb-rf-note", {
    "aria-label": "note",
    placeholder: "note (optional)",
    hidden: action === "move",
  });
  const where = refBox(ctx, { label: "version", value: refText, changed: check });
  const advice = h("div.lnb-rf-told", { "aria-live": "polite" });
  const acts = h("p.lnb-rf-acts");
  const request = ctx.kernel.line();
  /** @type {(Lnb.Place & {label: string}) | null} */
  let place = null;

  function check() {
    request(
      "refs.check",
      { kind, action, name: action === "move" ? name : box.value.trim(), at: where.input.value },
      ({ result }) => {
        const { reason, problem, consequences, code } = result;
        place = result.place;
        box.setAttribute("aria-invalid", String(Boolean(reason)));
        where.input.setAttribute("aria-invalid", String(Boolean(problem)));
        show(
          advice,
          [reason, problem].filter(Boolean).map((words) => h("p.lnb-cq-stop", words)),
          problem ? null : consequenceList(consequences),
        );
        const stop =
          reason ||
          problem ||
          consequences.some((/** @type {{level: string}} */ choice) => choice.level === "stop") ||
          (action === "create" && !box.value.trim());
        paintActs(Boolean(stop), place?.label);
        if (code) ctx.code(code);
      },
      (error) => show(advice, ctx.problem(error)),
    );
  }

  /** @param {boolean} refused @param {string | null | undefined} label */
  function paintActs(refused, label) {
    const words = action === "move" ? `Move it to ${label ?? "…"}` : `Create it at ${label ?? "…"}`;
    show(acts, tools.guard.button(words, write, { refused }), button("Cancel", tools.close));
  }

  async function write() {
    if (!place) return;
    const target = { branch: place.branch, version: place.version };
    try {
      const { result } =
        action === "move"
          ? await ctx.kernel.ask("refs.move", { name, ...target, seen })
          : await ctx.kernel.ask("refs.create", {
              kind,
              name: box.value.trim(),
              ...target,
              note: note.value,
            });
      tools.close();
      tools.done(result);
    } catch (error) {
      show(advice, ctx.problem(error), tools.again && button("Refresh", tools.again));
    }
  }

  paintActs(true, null);
  check();
  return h(
    "section.lnb-rf",
    { "aria-label": title },
    h("h3.lnb-br-title", title),
    h("p.lnb-rf-fields", box, h("span", action === "move" ? "to" : "at"), where.element, note),
    advice,
    acts,
  );
}

/**
 * @typedef {{ref: string, label: string, kind: string, note: string}} Choice see
 *   version_refs.py
 */

/**
 * A box for a version, a tag or a branch, completed while it is typed.
 * @param {Lnb.Context} ctx
 * @param {{label: string, value?: string, branches?: boolean, changed: () => void}} of with
 *   `branches` only branches are offered
 * @returns `element` and `input`
 */
export function refBox(ctx, { label, value = "", branches = false, changed }) {
  const input = h("input.lnb-input", {
    "aria-label": label,
    placeholder: branches ? "a branch" : "12 · dev · dev:3 · tag:v1 · HEAD~2",
    spellcheck: "false",
    autocomplete: "off",
    value,
    size: branches ? "14" : "20",
    on: {
      input: () => {
        changed();
        offer();
      },
      keydown: (event) => offers.key(event) && event.stopPropagation(),
    },
  });
  const offers = suggestions(input, `choices for ${label}`, (line) => {
    input.value = line.ref;
    changed();
  });
  const request = ctx.kernel.line();

  function offer() {
    const text = input.value.trim();
    request(
      "refs",
      { text },
      ({ result }) => {
        const choices = result.choices.filter(
          (/** @type {Choice} */ choice) =>
            !branches || (choice.kind === "branch" && !choice.ref.includes(":")),
        );
        if (text === input.value.trim())
          offers.offer(
            choices.some((/** @type {Choice} */ choice) => choice.ref === text)
              ? []
              : choices.map((/** @type {Choice} */ choice) => ({
                  name: choice.label,
                  type: choice.kind,
                  ref: choice.ref,
                })),
          );
      },
      () => offers.offer([]),
    );
  }

  return { element: h("span.lnb-ref-box", input, offers.list), input };
}
