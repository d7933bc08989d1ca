// One column in the detail pane: its histogram, exact counts on demand, filters and orders from it.

import { count, h, show } from "../js/dom.js";
import { conditionOf, conditionOfOdd, selectBars } from "./bar_selection.js";
import { profilePicture, profileWords } from "./column_profiles.js";

/** @type {Record<string, string>} */
const ODD_WORDS = {
  below: "less than the histogram shows",
  above: "more than the histogram shows",
};

/**
 * @param {Lnb.Context} ctx
 * @param {{at: number, column: Lnb.Column, profile: Lnb.Profile|null,
 *   comes: (notify: (profile: Lnb.Profile | null) => void) => boolean, args: () => Lnb.Args,
 *   order: Lnb.SortKey[], sort: (order: Lnb.SortKey[]) => void,
 *   brush: (where: string|null, bars?: [number, number]) => void,
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
    profile = arrived;
    paint();
  });
  const drawn = h("div", { class: "lnb-column-drawn" });
  const words = h("p", { class: "lnb-soft" });
  const values = h("div", { class: "lnb-column-values" });
  const note = h("p", { class: "lnb-soft", "aria-live": "polite" });
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
      if (where) brush(where, [from, to]);
      else say("This value is too long to be a condition.");
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  };
  /** @param {Lnb.OddValues} odd */
  const chosenOdd = async (odd) => {
    if (!profile) return;
    try {
      brush(await conditionOfOdd(ctx, args(), profile, odd));
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  };
  selectBars(drawn, () => profile, chosen, chosenOdd);

  /** @param {string} text */
  const say = (text) => {
    note.textContent = text;
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
    const isDrawn = Boolean(profile?.bars.length || profile?.odd.length);
    show(drawn, profile && isDrawn ? profilePicture(profile) : null);
    drawn.hidden = !isDrawn;
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
    const odd = (profile?.odd ?? []).map((oddity) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            class: oddity.kind === "null" ? "lnb-link lnb-look-null" : "lnb-link",
            type: "button",
            title: "only these rows",
            on: { click: () => chosenOdd(oddity) },
          },
          ODD_WORDS[oddity.kind] ?? oddity.label,
        ),
        h("small", {}, `${count(oddity.count)} · ${share(oddity.count)}`),
      ),
    );
    const statistics = (profile?.statistics ?? []).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)),
    );
    show(
      values,
      statistics.length ? h("dl", { class: "lnb-column-statistics" }, statistics) : null,
      profile?.edges ? range() : null,
      lines.length || odd.length ? h("ul", {}, lines, odd) : null,
    );
  }

  /** @param {number} some */
  const share = (some) => `${((100 * some) / Math.max(1, profile?.sampled ?? 1)).toFixed(1)} %`;

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

  /** @param {Lnb.Args} question */
  async function ask(question) {
    try {
      const { result } = await ctx.kernel.ask("rows.range", { ...args(), column: at, ...question });
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
            const off = isSorted(ascending);
            order = off ? [] : [{ column: column.raw, ascending }];
            sort(order);
            paintOrder();
          },
        },
      },
      ascending ? "ascending" : "descending",
    ),
  );
  /** @param {boolean} ascending */
  function isSorted(ascending) {
    return order.some((sort) => sort.column === column.raw && sort.ascending === ascending);
  }
  function paintOrder() {
    orders.forEach((button, place) =>
      button.setAttribute("aria-pressed", String(isSorted(!place))),
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
    note,
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
