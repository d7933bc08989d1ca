// Words that rows are searched for: the box, and how rows are searched. The words are marked in the
// cells.

import { button, choice, field, h } from "./dom.js";

/**
 * The words of a search set off from the rest of a text.
 * @param {string} text @param {number[]} places starts and stops, one after the other
 * @returns {(string | HTMLElement)[]}
 */
export function markedText(text, places) {
  const parts = [];
  let done = 0;
  for (let index = 0; index < places.length; index += 2) {
    parts.push(
      text.slice(done, places[index]),
      h("mark", {}, text.slice(places[index], places[index + 1])),
    );
    done = places[index + 1];
  }
  return [...parts, text.slice(done)];
}

/**
 * @param {{criteria: Lnb.Look, changed: (change: Partial<Lnb.Look>) => void}} rows
 */
export function searchBox({ criteria, changed }) {
  const input = field("search texts for words", {
    class: "lnb-input lnb-search",
    placeholder: 'search: river "old stone"',
    title: "words, and phrases in quotation marks (f)",
    dir: "auto",
    maxlength: "500",
    size: "18",
  });
  const clear = button("×", () => write(""), {
    class: "lnb-close",
    "aria-label": "clear the search",
    hidden: true,
  });

  /** @param {string} text */
  function write(text) {
    input.value = text;
    search({});
  }

  /** @param {Partial<Lnb.Search>} change */
  function search(change) {
    const text = input.value.trim();
    clear.hidden = !text;
    const before = criteria.search ?? { columns: null, any: false };
    changed({ search: text ? { ...before, text, ...change } : null });
  }

  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") search({});
    if (event.key !== "Escape" || !input.value) return;
    event.preventDefault();
    write("");
  });

  return {
    element: h("span", { class: "lnb-search-box" }, input, clear),
    focus: () => input.focus(),
    /** Search for other words. @param {string} text */
    write,
    /** Show what is searched for now, also where it was asked from elsewhere. */
    follow() {
      if (document.activeElement !== input || !criteria.search)
        input.value = criteria.search?.text ?? "";
      clear.hidden = !input.value;
    },
    /**
     * How rows are searched; `known` are the columns of texts.
     * @param {{raw: string, name: string}[]} searched
     */
    tools(searched) {
      const { columns = null, any = false } = criteria.search ?? {};
      const places = columns?.length ? searched.findIndex(({ raw }) => raw === columns[0]) : -1;
      return h(
        "span",
        { class: "lnb-near" },
        choice(
          "which words",
          any ? "any" : "all",
          [
            ["all", "all words"],
            ["any", "any word"],
          ],
          (value) => search({ any: value === "any" }),
        ),
        choice(
          "columns to search",
          columns ? (columns.length ? String(places) : "all") : "",
          [
            ["", "columns with an index, else all"],
            ["all", "all columns of texts"],
            ...searched.map(
              ({ name }, index) => /** @type {[string, string]} */ ([String(index), `in ${name}`]),
            ),
          ],
          (value) => {
            const chosen = value && value !== "all" ? [searched[Number(value)].raw] : [];
            search({ columns: value ? chosen : null });
          },
        ),
      );
    },
  };
}
