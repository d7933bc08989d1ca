// A box to go elsewhere: what is typed is completed from names of versions, tags, branches, dates.

import { h, show } from "../js/dom.js";

/** @typedef {import("./ref_form.js").Choice} Choice */

/** @type {Record<string, string>} */
const GLYPHS = { branch: "↳", tag: "⚑", version: "#", head: "↥", date: "◷" };
let instances = 0;

/**
 * A combobox with a list, as ARIA has it; what is chosen goes to `ctx.travel`.
 * @param {Lnb.Context} ctx @param {{hint?: string, label?: string}} [words] @returns {HTMLElement}
 */
export function refPicker(ctx, { hint = "go to…", label = "go to a version, tag or branch" } = {}) {
  const uid = `lnb-refs${(instances += 1)}`;
  const list = h("ul.lnb-choices-list", {
    role: "listbox",
    id: uid,
    "aria-label": "versions, tags and branches",
    hidden: true,
  });
  const input = h("input.lnb-input", {
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": uid,
    "aria-autocomplete": "list",
    placeholder: hint,
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off",
    size: "14",
  });
  const request = ctx.kernel.line();
  /** @type {Choice[]} */
  let choices = [];
  let cursor = -1;
  let turn = 0; // an answer that comes after the list was left is not shown

  /** @param {Choice[]} offered */
  function open(offered) {
    choices = offered;
    cursor = -1;
    show(
      list,
      choices.map((choice, index) =>
        h(
          "li.lnb-choice-line",
          {
            role: "option",
            id: `${uid}-${index}`,
            "aria-selected": "false",
            title: choice.kind,
            on: { mousedown: (event) => event.preventDefault(), click: () => go(choice.ref) },
          },
          h("i", { "aria-hidden": "true" }, GLYPHS[choice.kind] ?? "·"),
          h("b", choice.label),
          h("small", choice.note || choice.kind),
        ),
      ),
    );
    const shown = choices.length > 0 && document.activeElement === input;
    list.hidden = !shown;
    input.setAttribute("aria-expanded", String(shown));
    input.removeAttribute("aria-activedescendant");
  }

  function close() {
    turn += 1;
    open([]);
  }

  /** @param {number} by */
  function move(by) {
    if (list.hidden) return ask();
    list.children[cursor]?.setAttribute("aria-selected", "false");
    cursor = (cursor + by + choices.length) % choices.length;
    const line = list.children[cursor];
    line.setAttribute("aria-selected", "true");
    line.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", line.id);
    return undefined;
  }

  /** @param {string} ref */
  function go(ref) {
    if (!ref) return;
    close();
    input.value = "";
    ctx.travel({ ref });
  }

  function ask() {
    if (ctx.kernel.state === "static") return;
    const text = input.value.trim();
    const mine = (turn += 1);
    request("refs", { text }, ({ result }) => mine === turn && open(result.choices), close);
  }

  input.addEventListener("input", ask);
  input.addEventListener("focus", ask);
  input.addEventListener("blur", close);
  return h(
    "form.lnb-goto",
    {
      title: "12 · tag:v1 · dev · dev:3 · HEAD~2 · 2026-08-01",
      on: {
        submit: (event) => {
          event.preventDefault();
          go(choices[cursor]?.ref ?? input.value.trim());
        },
        keydown: (event) => {
          event.stopPropagation();
          const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (by) {
            event.preventDefault();
            move(by);
          } else if (event.key === "Escape") {
            if (list.hidden) input.blur();
            else close();
          }
        },
      },
    },
    input,
    list,
  );
}
