// A list of suggestions under an input, as ARIA's combobox has it: columns while a name is typed.

import { h, show } from "./dom.js";

const LIST_INSET = 12; // from the edge of the list to its words
const canvas = document.createElement("canvas");
const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
let instances = 0;

/**
 * @param {HTMLInputElement} input @param {string} label
 * @param {(line: Lnb.Json) => void} chosen called with the suggestion that was taken
 * @param {(() => string) | null} [word] what is being typed before the caret: the list opens under
 *   it
 * @returns `list` (to put under the input), `offer(lines)` with `{name, type}` each, `key(event)`
 */
export function suggestions(input, label, chosen, word) {
  const uid = `lnb-suggest${(instances += 1)}`;
  const list = h("ul", {
    class: "lnb-choices-list",
    role: "listbox",
    id: uid,
    "aria-label": label,
    hidden: true,
  });
  /** @type {{name: string, type: string}[]} */
  let offered = [];
  let cursor = 0;
  let moved = false;
  let left = false; // by Enter or Escape: what is offered after that comes too late
  for (const [name, value] of [
    ["role", "combobox"],
    ["aria-expanded", "false"],
    ["aria-controls", uid],
    ["aria-autocomplete", "list"],
  ])
    input.setAttribute(name, value);

  /** @param {{name: string, type: string}[]} lines */
  function offer(lines) {
    offered = lines;
    cursor = 0;
    moved = false;
    show(
      list,
      lines.map((line, index) =>
        h(
          "li",
          {
            class: "lnb-choice-line",
            role: "option",
            id: `${uid}-${index}`,
            "aria-selected": String(index === 0),
            on: { mousedown: (event) => event.preventDefault(), click: () => take(index) },
          },
          h("b", {}, line.name),
          h("small", {}, line.type),
        ),
      ),
    );
    const shown =
      lines.length > 0 &&
      !left &&
      /** @type {Document | ShadowRoot} */ (input.getRootNode()).activeElement === input;
    list.hidden = !shown;
    input.setAttribute("aria-expanded", String(shown));
    if (shown && word) placeUnder(list, input, word().length);
    mark();
  }

  function mark() {
    if (list.hidden) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", list.children[cursor].id);
  }

  /** @param {number} index */
  function take(index) {
    const line = offered[index];
    offer([]);
    chosen(line);
  }

  input.addEventListener("blur", () => offer([]));
  for (const begun of ["input", "focus"])
    input.addEventListener(
      begun,
      () => {
        left = false;
      },
      { capture: true },
    );
  input.addEventListener(
    "keydown",
    ({ key: name }) => {
      left ||= name === "Enter" || name === "Escape";
    },
    { capture: true },
  );
  /** Keys of the list; true when the key was the list's. @param {KeyboardEvent} event */
  function key(event) {
    if (list.hidden) return false;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by) {
      list.children[cursor].setAttribute("aria-selected", "false");
      moved = true;
      cursor = (cursor + by + offered.length) % offered.length;
      list.children[cursor].setAttribute("aria-selected", "true");
      list.children[cursor].scrollIntoView({ block: "nearest" });
      mark();
    } else if (event.key === "Enter" || event.key === "Tab") take(cursor);
    else if (event.key === "Escape") offer([]);
    else return false;
    event.preventDefault();
    return true;
  }

  return { list, offer, key, moved: () => moved };
}

/**
 * Put a list where the last `length` characters before the caret begin, as far as the box has room
 * for it.
 * @param {HTMLElement} list @param {HTMLInputElement} input @param {number} length
 */
function placeUnder(list, input, length) {
  const style = getComputedStyle(input);
  pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const before = input.value.slice(0, Math.max(0, (input.selectionStart ?? 0) - length));
  const start = pen.measureText(before).width + parseFloat(style.paddingLeft) - input.scrollLeft;
  const room = input.offsetWidth - list.offsetWidth;
  const inset = Math.max(0, Math.min(start - LIST_INSET, room));
  list.style.insetInline = `${input.offsetLeft + inset}px auto`;
}
