// One version of the timeline in words, and the height of its bar.

import { count, plural } from "./dom.js";

/** @param {Lnb.VersionBar | undefined} facts @param {number} tall @param {number} most */
export function barHeight(facts, tall, most) {
  if (!facts) return 5;
  const rows = (facts.added ?? 0) + (facts.removed ?? 0);
  return rows ? 8 + (tall - 26) * (Math.log1p(rows) / Math.log1p(Math.max(most, 1))) : 5;
}

/** @param {Lnb.VersionBar} facts */
export function rowWords(facts) {
  if (facts.operation === "Damaged") return "";
  if (facts.added === null)
    return facts.rows === null ? "row count not recorded" : plural(facts.rows, "row");
  const parts = [
    facts.added && `+${plural(facts.added, "row")}`,
    facts.removed && `−${plural(facts.removed, "row")}`,
  ];
  return parts.filter(Boolean).join(" ") || "no rows changed";
}

/** @param {Lnb.Lane} lane @param {number} version @param {Lnb.VersionBar | undefined} facts */
export function sentence(lane, version, facts) {
  const tags = lane.tags.find((tag) => tag.version === version);
  const words = [`${lane.label} version ${version}`, tags && `tagged ${tags.names.join(", ")}`];
  if (facts) words.push(facts.operation, rowWords(facts));
  return words.filter(Boolean).join(", ");
}

/**
 * What versions changed together; walking `back`, what was added goes away again.
 * @param {Lnb.Sums} sums @param {boolean} back
 */
export function rangeWords({ versions, added, removed, unknown }, back) {
  const [more, less] = back ? [removed, added] : [added, removed];
  const rows = more || less || unknown ? `+${count(more)} −${count(less)} rows` : "no rows changed";
  const rest = unknown ? ` and ${count(unknown)} not looked at yet` : "";
  return `${plural(versions, "version")}${back ? " back" : ""} · ${rows}${rest}`;
}
