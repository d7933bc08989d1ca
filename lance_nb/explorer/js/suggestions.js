// A list of suggestions under an input, as ARIA's combobox has it: columns while a name is typed.

import { h, show } from "./dom.js";

let instances = 0;

/**
 * @param {HTMLInputElement} input @param {string} label
 * @param {(line: Object) => void} chosen called with the suggestion that was taken
 * @returns `list` (to put under the input), `offer(lines)` with `{name, type}` each, `key(event)`
 */
export function suggestions(input, label, chosen) {
  const uid = `lnb-suggest${(instances += 1)}`;
  const list = h("ul", { class: "lnb-choices-list", role: "listbox", id: uid, "aria-label": label, hidden: true });
  let offered = [];
  let at = 0;
  let moved = false;
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", uid], ["aria-autocomplete", "list"]]) input.setAttribute(name, value);

  function offer(lines) {
    offered = lines;
    at = 0;
    moved = false;
    show(list, lines.map((line, index) => h("li", { class: "lnb-choice-line", role: "option", id: `${uid}-${index}`, "aria-selected": String(index === 0), on: { mousedown: (event) => event.preventDefault(), click: () => take(index) } }, h("b", {}, line.name), h("small", {}, line.type))));
    const shown = lines.length > 0 && input.getRootNode().activeElement === input;
    list.hidden = !shown;
    input.setAttribute("aria-expanded", String(shown));
    mark();
  }

  function mark() {
    if (list.hidden) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", list.children[at].id);
  }

  function take(index) {
    const line = offered[index];
    offer([]);
    chosen(line);
  }

  input.addEventListener("blur", () => offer([]));
  /** Keys of the list; true when the key was the list's. */
  function key(event) {
    if (list.hidden) return false;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      list.children[at].setAttribute("aria-selected", "false");
      moved = true;
      at = (at + by + offered.length) % offered.length;
      list.children[at].setAttribute("aria-selected", "true");
      list.children[at].scrollIntoView({ block: "nearest" });
      mark();
    } else if (event.key === "Enter" || event.key === "Tab") take(at);
    else if (event.key === "Escape") offer([]);
    else return false;
    event.preventDefault();
    return true;
  }

  return { list, offer, key, moved: () => moved };
}
