// Above the grid: a filter, a finder of columns, and the columns that no schema names.

import { h, show } from "./dom.js";

let instances = 0;

/**
 * @param {import("./view.js").Context} ctx
 * @param {{look: {filter: string|null, system: boolean}, changed: (wanted: Object) => void, found: (at: number) => void}} grid
 */
export function rowsBar(ctx, { look, changed, found }) {
  const uid = `lnb-find${(instances += 1)}`;
  const filter = h("input", { class: "lnb-input lnb-filter", placeholder: "filter: id > 10 AND name LIKE 'a%'", "aria-label": "filter of rows, SQL", spellcheck: "false", autocomplete: "off" });
  const said = h("span", { class: "lnb-filter-said", "aria-live": "polite" });
  const clear = h("button", { class: "lnb-close", type: "button", "aria-label": "clear the filter", hidden: true, on: { click: () => set("") } }, "×");
  const problem = h("div", { class: "lnb-filter-problem", role: "alert", hidden: true });
  const find = h("input", { class: "lnb-input lnb-find", role: "combobox", "aria-expanded": "false", "aria-controls": uid, "aria-autocomplete": "list", placeholder: "find a column…", "aria-label": "find a column", spellcheck: "false", autocomplete: "off", size: "14" });
  const list = h("ul", { class: "lnb-choices-list", role: "listbox", id: uid, "aria-label": "columns", hidden: true });
  const system = h("button", { class: "lnb-button", type: "button", "aria-pressed": "false", title: "show row id, row address, and the versions that created and last updated each row", on: { click: toggle } }, "row ids");
  const request = ctx.kernel.line();
  let at = 0;

  function set(text) {
    filter.value = text;
    apply();
  }

  const wanted = () => ({ filter: filter.value.trim() || null, system: system.getAttribute("aria-pressed") === "true" });

  function apply() {
    clear.hidden = !filter.value.trim();
    problem.hidden = true;
    said.textContent = filter.value.trim() ? "…" : "";
    changed(wanted());
  }

  function toggle() {
    system.setAttribute("aria-pressed", String(!look.system));
    changed(wanted());
  }

  function choose(lines) {
    at = 0;
    show(list, lines.map((line, index) => h("li", { class: "lnb-choice-line", role: "option", id: `${uid}-${index}`, "aria-selected": String(index === 0), on: { mousedown: (event) => event.preventDefault(), click: () => go(line.at) } }, h("b", {}, line.name), h("small", {}, line.type))));
    for (const [index, child] of [...list.children].entries()) child.lnb = lines[index].at;
    const shown = lines.length > 0 && document.activeElement === find;
    list.hidden = !shown;
    find.setAttribute("aria-expanded", String(shown));
  }

  function go(column) {
    choose([]);
    found(column);
  }

  function search() {
    const text = find.value.trim();
    const { branch, version } = ctx.screen();
    if (!text || ctx.kernel.state === "static") return choose([]);
    return request("rows.columns", { branch, version, text, ...look }, ({ result }) => text === find.value.trim() && choose(result.columns), () => choose([]));
  }

  filter.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") apply();
    if (event.key === "Escape" && filter.value) set("");
  });
  find.addEventListener("input", search);
  find.addEventListener("blur", () => choose([]));
  find.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && !list.hidden) {
      event.preventDefault();
      list.children[at].setAttribute("aria-selected", "false");
      at = (at + by + list.children.length) % list.children.length;
      list.children[at].setAttribute("aria-selected", "true");
      list.children[at].scrollIntoView({ block: "nearest" });
      find.setAttribute("aria-activedescendant", list.children[at].id);
    } else if (event.key === "Enter" && !list.hidden) go(list.children[at].lnb);
    else if (event.key === "Escape") choose([]);
  });

  return {
    element: h("div", { class: "lnb-rows-bar" }, h("div", { class: "lnb-rows-tools" }, h("span", { class: "lnb-filter-box" }, filter, clear), said, h("span", { class: "lnb-find-box" }, find, list), system), problem),
    filter: set,
    /** Say how many rows pass, or what is wrong with the filter. */
    say(what) {
      const wrong = what instanceof Error;
      problem.hidden = !wrong;
      said.textContent = wrong ? "" : what;
      if (wrong) show(problem, h("b", {}, what.card?.title ?? "The filter cannot be used"), h("span", {}, what.message));
    },
  };
}
