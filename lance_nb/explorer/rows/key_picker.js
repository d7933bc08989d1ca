// Chooses the Columns that identify rows: a button, and under it the columns to toggle.

import { button, field, h, show } from "../js/dom.js";

/**
 * @param {Lnb.Context} ctx
 * @param {{choose: (key: string[] | null) => void, of: () => Lnb.Place}} tools `of`: the version
 *   whose columns there are
 */
export function keyPicker(ctx, { choose, of }) {
  const toggle = button("Change", () => open(Boolean(element.hidden)), {
    class: "lnb-link",
    "aria-expanded": "false",
  });
  const find = field("find a key column", { placeholder: "find a column…", size: "14" });
  const list = h("span", {
    class: "lnb-key-columns",
    role: "group",
    "aria-label": "columns of the key",
  });
  const use = button("Use as key", () => apply([...chosen.keys()]), { disabled: true });
  const usual = button("Use default", () => apply(null), { class: "lnb-link" });
  const element = h(
    "div",
    { class: "lnb-key", hidden: true },
    h("span", {}, "Columns that identify rows:"),
    find,
    list,
    use,
    usual,
  );
  const request = ctx.kernel.line();
  /** @typedef {{name: string, label: string, type: string}} KeyColumn */
  /** @type {Map<string, KeyColumn>} */
  const chosen = new Map();

  /** @param {boolean} shown */
  function open(shown) {
    element.hidden = !shown;
    toggle.setAttribute("aria-expanded", String(shown));
    if (shown) ask();
  }

  function ask() {
    request(
      "biography.keys",
      { ...of(), text: find.value.trim() },
      ({ result }) => paint(result.columns),
      (error) => show(list, ctx.problem(error)),
    );
  }

  /** @param {KeyColumn[]} columns */
  function paint(columns) {
    const others_ = [...chosen.values()].filter(
      (chosenColumn) => !columns.some((other) => other.name === chosenColumn.name),
    );
    show(
      list,
      [...others_, ...columns].map((column) =>
        button(
          column.label,
          (event) => {
            if (!chosen.delete(column.name)) chosen.set(column.name, column);
            event.currentTarget.setAttribute("aria-pressed", String(chosen.has(column.name)));
            use.disabled = !chosen.size;
          },
          { title: column.type, "aria-pressed": String(chosen.has(column.name)) },
        ),
      ),
    );
  }

  /** @param {string[] | null} key */
  function apply(key) {
    if (!key) {
      chosen.clear();
      use.disabled = true;
    }
    open(false);
    choose(key);
  }

  find.addEventListener("input", ask);
  element.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    open(false);
    toggle.focus();
  });
  return { toggle, element };
}
