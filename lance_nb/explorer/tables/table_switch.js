// A widget that shows the tables of a database, or the explorer of one that is open. Each is
// mounted anew when the kernel says that the other is shown; what a person looked for among the
// tables stays.

import { h } from "../js/dom.js";
import { widget } from "../js/view.js";
import { mountTables, tablesMemory } from "./tables.js";

/**
 * @param {Lnb.Mount} mountExplorer @param {string} label of the explorer
 * @returns {Lnb.Widget}
 */
export function switchingWidget(mountExplorer, label) {
  const alone = widget((el, ctx) => mountExplorer(el, ctx), label);
  return {
    ...alone,
    render({ model, el }) {
      if (!model.get("screen").tables) return alone.render({ model, el });
      const memory = tablesMemory();
      const cards = widget((place, ctx) => mountTables(place, ctx, memory), "Lance database");
      const table = widget((place, ctx) => {
        place.append(wayBack(ctx));
        mountExplorer(place, ctx);
        if (memory.focus) place.querySelector("button")?.focus({ preventScroll: true });
      }, label);
      /** @type {number | null | undefined} */
      let shown;
      /** @type {unknown} */
      let stop;

      function follow() {
        const { tables } = model.get("screen");
        const open = tables?.open?.table ?? null;
        if (open === shown) return;
        memory.focus = el.contains(document.activeElement);
        if (typeof stop === "function") stop();
        if (typeof shown === "number" && open === null) {
          memory.active = shown;
          memory.cards.delete(shown); // it may have been changed while it was open
        }
        shown = open;
        stop = (open === null ? cards : table).render({ model, el });
      }

      model.on("change:screen", follow); // before what it stops, which then paints nothing
      follow();
      return () => {
        model.off("change:screen", follow);
        if (typeof stop === "function") stop();
      };
    },
  };
}

/** The line above the explorer of a table. @param {Lnb.Context} ctx */
function wayBack(ctx) {
  const { tables } = ctx.screen();
  const problem = h("span", { role: "alert" });
  const back = h(
    "button.lnb-button",
    {
      type: "button",
      on: {
        async click() {
          problem.textContent = "";
          try {
            await ctx.kernel.ask("tables.close", {});
          } catch (error) {
            problem.textContent = /** @type {Error} */ (error).message;
          }
        },
      },
    },
    "‹ All tables",
  );
  return h(
    "nav.lnb-back",
    { "aria-label": "database" },
    back,
    h("span", { title: tables.uri }, tables.name),
    h("span", { "aria-hidden": "true" }, "›"),
    h("strong", tables.open.label),
    problem,
  );
}
