// One column in the detail pane: its histogram, exact counts on demand, filters and orders from it.

import { button, count, field, h, show } from "../js/dom.js";
import { conditionOf, conditionOfOdd, selectBars } from "./bar_selection.js";
import { profilePicture, profileWords } from "./column_profiles.js";

/** @type {Record<string, string>} */
const ODD_WORDS = {
  below: "less than the histogram shows",
  above: "more than the histogram shows",
};

class ColumnPane {
  /** @type {Lnb.Asked | null} */
  running = null;
  drawn = h("div", { class: "lnb-column-drawn" });
  words = h("p", { class: "lnb-soft" });
  values = h("div", { class: "lnb-column-values" });
  note = h("p", { class: "lnb-soft", "aria-live": "polite" });

  /**
   * @param {Lnb.Context} ctx
   * @param {{at: number, column: Lnb.Column, profile: Lnb.Profile|null,
   *   comes: (notify: (profile: Lnb.Profile | null) => void) => boolean, args: () => Lnb.Args,
   *   order: Lnb.SortKey[], sort: (order: Lnb.SortKey[]) => void,
   *   brush: (where: string|null, bars?: [number, number]) => void,
   *   learned: (profile: Lnb.Profile) => void}} what
   */
  constructor(ctx, { at, column, profile: known, comes, args, order, sort, brush, learned }) {
    this.ctx = ctx;
    this.at = at;
    this.column = column;
    this.args = args;
    this.order = order;
    this.brush = brush;
    this.learned = learned;
    this.profile = known;
    this.onItsWay = comes((arrived) => {
      this.onItsWay = false;
      this.profile = arrived;
      this.paint();
    });
    this.exact = button(null, () => (this.running ? this.running.cancel() : this.measure()));
    selectBars(
      this.drawn,
      () => this.profile,
      (from, to) => this.chosen(from, to),
      (odd) => this.chosenOdd(odd),
    );
    this.orders = [true, false].map((ascending) =>
      button(
        ascending ? "ascending" : "descending",
        () => {
          const off = this.isSorted(ascending);
          this.order = off ? [] : [{ column: column.raw, ascending }];
          sort(this.order);
          this.paintOrder();
        },
        { class: "lnb-choice" },
      ),
    );
    this.paintOrder();
    this.paint();
    const choices = {
      class: "lnb-choices",
      role: "group",
      "aria-label": "sort by this column",
    };
    this.element = h(
      "div",
      { class: "lnb-column-pane" },
      h("p", {}, h("code", {}, column.type)),
      this.drawn,
      this.words,
      this.values,
      h("p", {}, [this.exact, " ", button("Clear filter", () => brush(null))]),
      this.note,
      h("p", {}, "sort ", h("span", choices, this.orders)),
    );
  }

  /** Do `work`, and say in the pane what went wrong. @param {() => Promise<void>} work */
  async attempt(work) {
    try {
      await work();
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
  }

  /** Filter by bars of the histogram. @param {number} from @param {number} to */
  chosen(from, to) {
    return this.attempt(async () => {
      if (!this.profile) return;
      const where = await conditionOf(this.ctx, this.args(), this.profile, from, to);
      if (where) this.brush(where, [from, to]);
      else this.say("This value is too long to be a condition.");
    });
  }

  /** @param {Lnb.OddValues} odd */
  chosenOdd(odd) {
    return this.attempt(async () => {
      if (this.profile) this.brush(await conditionOfOdd(this.ctx, this.args(), this.profile, odd));
    });
  }

  /** @param {string} text */
  say(text) {
    this.note.textContent = text;
  }

  async measure() {
    this.exact.textContent = "Cancel";
    this.say("Counting every row…");
    const args = { ...this.args(), column: this.at };
    this.running = this.ctx.kernel.ask("rows.exact", args, {
      progress: (done, total) =>
        this.say(`Counting every row… ${Math.floor((100 * done) / total)} %`),
    });
    const { running } = this;
    await this.attempt(async () => {
      const { result } = await running;
      this.profile = result.profile;
      this.learned(result.profile);
      this.say("");
    });
    this.running = null;
    this.paint();
  }

  paint() {
    this.exact.textContent = this.profile?.exact ? "Count again" : "Count every row";
    this.exact.hidden = !this.profile;
    const isDrawn = Boolean(this.profile?.bars.length || this.profile?.odd.length);
    show(this.drawn, this.profile && isDrawn ? profilePicture(this.profile) : null);
    this.drawn.hidden = !isDrawn;
    this.words.textContent = this.profile
      ? profileWords(this.profile)
      : this.onItsWay
        ? "Computing column statistics…"
        : "There is no profile for values of this type.";
    const { labels = [], wheres = [], counts = [] } = this.profile ?? {};
    const lines = labels.map((label, index) =>
      h(
        "li",
        {},
        button(label || "empty text", () => this.chosen(index, index), {
          class: "lnb-link",
          disabled: !wheres[index],
          title: "only rows with this value",
        }),
        h("small", {}, count(counts[index])),
      ),
    );
    const odd = (this.profile?.odd ?? []).map((oddity) =>
      h(
        "li",
        {},
        button(ODD_WORDS[oddity.kind] ?? oddity.label, () => this.chosenOdd(oddity), {
          class: oddity.kind === "null" ? "lnb-link lnb-look-null" : "lnb-link",
          title: "only these rows",
        }),
        h("small", {}, `${count(oddity.count)} · ${this.share(oddity.count)}`),
      ),
    );
    const statistics = (this.profile?.statistics ?? []).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)),
    );
    show(
      this.values,
      statistics.length ? h("dl", { class: "lnb-column-statistics" }, statistics) : null,
      this.profile?.edges ? this.range() : null,
      lines.length || odd.length ? h("ul", {}, lines, odd) : null,
    );
  }

  /** @param {number} some */
  share = (some) => `${((100 * some) / Math.max(1, this.profile?.sampled ?? 1)).toFixed(1)} %`;

  /** Bounds to write: the same as a brush over the histogram. */
  range() {
    const time = this.profile?.kind === "time";
    const ends = ["from", "to"].map((name) =>
      field(name, { type: time ? "date" : "number", step: time ? null : "any" }),
    );
    /** @param {HTMLInputElement} input */
    const bound = ({ value }) => (value === "" ? null : time ? Date.parse(value) : Number(value));
    const go = () =>
      this.ask({ low: bound(ends[0]), high: bound(ends[1]), closed: true, ms: time });
    const [from, to] = ends;
    return h("p", { class: "lnb-column-range" }, from, " to ", to, " ", button("Filter", go));
  }

  /** @param {Lnb.Args} question */
  ask(question) {
    return this.attempt(async () => {
      const args = { ...this.args(), column: this.at, ...question };
      const { result } = await this.ctx.kernel.ask("rows.range", args);
      this.brush(result.where);
    });
  }

  /** @param {boolean} ascending */
  isSorted(ascending) {
    return this.order.some(
      (sort) => sort.column === this.column.raw && sort.ascending === ascending,
    );
  }

  paintOrder() {
    this.orders.forEach((button, place) =>
      button.setAttribute("aria-pressed", String(this.isSorted(!place))),
    );
  }
}

/**
 * Show a column in the detail pane.
 * @param {Lnb.Context} ctx @param {ConstructorParameters<typeof ColumnPane>[1]} of
 */
export function columnPane(ctx, of) {
  const { element } = new ColumnPane(ctx, of);
  ctx.detail.show({ title: of.column.name, content: element, focus: true });
}
