// What a staged change would do to the expectations, before it is committed: which ones it would
// break, for which rows, whether the gate refuses it, and how the gate is turned off.

import { h, plural } from "../js/dom.js";
import { sampleTable } from "../js/sample_table.js";

/** @param {Lnb.Json} outcomes see stage/card_view.py @returns {HTMLElement | null} */
export function brokenExpectations(outcomes) {
  const { checking, count, problem, broken, more, closed, off } = outcomes;
  const all = plural(count, "expectation");
  if (checking)
    return count ? h("p.lnb-sg-checking.lnb-faint", { role: "status" }, `… Checking ${all}`) : null;
  if (problem) return h("p.lnb-sg-checking", `? Expectations could not be checked: ${problem}`);
  if (!broken.length) return h("p.lnb-sg-calm", `✓ Breaks none of ${all}`);
  const number = broken.length + more;
  return h(
    "section",
    { class: `lnb-sg-broken${closed ? " lnb-sg-refused" : ""}`, "aria-label": "expectations" },
    h(
      "p",
      h("b", `✗ Would break ${plural(number, "expectation")}`),
      closed
        ? ": the gate is closed, so a commit is refused. Change what is staged, or open the gate: "
        : ". The gate is open, so a commit is possible.",
      closed ? h("code", off.python) : null,
    ),
    h(
      "ul",
      broken.map((/** @type {Lnb.Json} */ outcome) =>
        h(
          "li",
          h("b", outcome.name),
          " ",
          h("code", outcome.statement),
          h("small", ` ${outcome.detail}`),
          outcome.sample
            ? sampleTable({ label: "rows that fail", sign: "✗", ...outcome.sample })
            : null,
        ),
      ),
    ),
    more ? h("p.lnb-faint", `and ${more} more`) : null,
    closed
      ? h(
          "p.lnb-faint",
          "The gate binds this tab and ds.stage(). Other writers, such as pylance and Spark, are " +
            "not bound by it.",
        )
      : null,
  );
}
