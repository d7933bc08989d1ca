// One column in the detail pane: its histogram, exact counts on demand, filters and orders from it.

import { conditionOf, selectBars } from "./bar_selection.js";
import { profilePicture, profileWords } from "./column_profiles.js";
import { count, h, show } from "./dom.js";

/**
 * @param {Lnb.Context} ctx
 * @typedef {{column: string, ascending: boolean}} Order
 * @param {{at: number, column: Lnb.Column, profile: Lnb.Profile|null,
 *   comes: (notify: (profile: Lnb.Profile | null) => void) => boolean, args: () => Lnb.Args,
 *   order: Order|null, sort: (order: Order|null) => void, brush: (where: string|null) => void,
 *   learned: (profile: Lnb.Profile) => void}} what
 */
export function columnPane(
  ctx,
  { at, column, profile: known, comes, args, order, sort, brush, learned },
) {
  let profile = known;
  /** @type {Lnb.Asked | null} */
  let running = null;
  let onItsWay = comes((arrived) => {
    onItsWay = false;
    profile ??= arrived;
    paint();
  });
  const drawn = h("div", { class: "lnb-column-drawn" });
  const words = h("p", { class: "lnb-soft" });
  const values = h("div", { class: "lnb-column-values" });
  const said = h("p", { class: "lnb-soft", "aria-live": "polite" });
  const exact = h("button", {
    class: "lnb-button",
    type: "button",
    on: { click: () => (running ? running.cancel() : measure()) },
  });
  /** @param {number} from @param {number} to */
  const chosen = async (from, to) => {
    if (!profile) return;
    try {
      const where = await conditionOf(ctx, args(), profile, from, to);
      if (where) brush(where);
      else say("This value is too long to be a condition.");
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  };
  selectBars(drawn, () => profile, chosen);

  /** @param {string} text */
  const say = (text) => {
    said.textContent = text;
  };

  async function measure() {
    exact.textContent = "Cancel";
    say("Counting every row…");
    running = ctx.kernel.ask(
      "rows.exact",
      { ...args(), column: at },
      {
        progress: (done, total) => say(`Counting every row… ${Math.floor((100 * done) / total)} %`),
      },
    );
    try {
      const { result } = await running;
      profile = result.profile;
      learned(result.profile);
      say("");
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
    running = null;
    paint();
  }

  function paint() {
    exact.textContent = profile?.exact ? "Count again" : "Count every row";
    exact.hidden = !profile;
    show(drawn, profile?.bars.length ? profilePicture(profile) : null);
    drawn.hidden = !profile?.bars.length;
    words.textContent = profile
      ? profileWords(profile)
      : onItsWay
        ? "Computing column statistics…"
        : "There is no profile for values of this type.";
    const { labels = [], wheres = [], counts = [] } = profile ?? {};
    const lines = labels.map((label, index) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            class: "lnb-link",
            type: "button",
            disabled: !wheres[index],
            title: "only rows with this value",
            on: { click: () => chosen(index, index) },
          },
          label || "empty text",
        ),
        h("small", {}, count(counts[index])),
      ),
    );
    const nulls = profile?.nulls
      ? [
          h(
            "li",
            {},
            h(
              "button",
              {
                class: "lnb-link lnb-look-null",
                type: "button",
                on: { click: () => ask({ null: true }) },
              },
              "null",
            ),
            h("small", {}, `${(100 * profile.nulls).toFixed(1)} %`),
          ),
        ]
      : [];
    show(
      values,
      profile?.edges ? range() : null,
      lines.length || nulls.length ? h("ul", {}, lines, nulls) : null,
    );
  }

  /** Bounds to write: the same as a brush over the histogram. */
  function range() {
    const time = profile?.kind === "time";
    const ends = ["from", "to"].map((name) =>
      h("input", {
        class: "lnb-input",
        type: time ? "date" : "number",
        step: time ? null : "any",
        "aria-label": name,
        on: { keydown: (event) => event.stopPropagation() },
      }),
    );
    /** @param {HTMLInputElement} input */
    const bound = ({ value }) => (value === "" ? null : time ? Date.parse(value) : Number(value));
    const go = () => ask({ low: bound(ends[0]), high: bound(ends[1]), closed: true, ms: time });
    return h(
      "p",
      { class: "lnb-column-range" },
      ends[0],
      " to ",
      ends[1],
      " ",
      h("button", { class: "lnb-button", type: "button", on: { click: go } }, "Filter"),
    );
  }

  /** @param {Lnb.Args} wanted */
  async function ask(wanted) {
    try {
      const { result } = await ctx.kernel.ask("rows.range", { ...args(), column: at, ...wanted });
      brush(result.where);
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  }

  const orders = [true, false].map((ascending) =>
    h(
      "button",
      {
        class: "lnb-choice",
        type: "button",
        on: {
          click: () => {
            const off = order?.column === column.raw && order.ascending === ascending;
            order = off ? null : { column: column.raw, ascending };
            sort(order);
            paintOrder();
          },
        },
      },
      ascending ? "ascending" : "descending",
    ),
  );
  function paintOrder() {
    orders.forEach((button, place) =>
      button.setAttribute(
        "aria-pressed",
        String(order?.column === column.raw && order.ascending === !place),
      ),
    );
  }
  paintOrder();
  paint();
  const content = h(
    "div",
    { class: "lnb-column-pane" },
    h("p", {}, h("code", {}, column.type)),
    drawn,
    words,
    values,
    h(
      "p",
      {},
      exact,
      " ",
      h(
        "button",
        { class: "lnb-button", type: "button", on: { click: () => brush(null) } },
        "Clear filter",
      ),
    ),
    said,
    h(
      "p",
      {},
      "sort ",
      h(
        "span",
        { class: "lnb-choices", role: "group", "aria-label": "sort by this column" },
        orders,
      ),
    ),
  );
  ctx.detail.show({ title: column.name, content, focus: true });
}
