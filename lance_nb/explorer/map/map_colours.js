// Colours of points: 12 categories that differ in hue and lightness on a light and on a dark page,
// a ramp for numbers, and one colour for each change between two versions.

import { themeColours } from "../js/canvas.js";

export const OTHER = 12;
export const MISSING = 255;
const CATEGORIES = [
  "#3b7dd8", "#e2842c", "#35a06a", "#d1495b", "#8a63d2", "#9a7353",
  "#d672b3", "#2aa6b5", "#b3a125", "#7f8cff", "#7fae3a", "#c77f7f",
]; // biome-ignore format: a table
const RAMP = ["#46307e", "#365c8d", "#277f8e", "#2fa96f", "#a5c83a", "#f4d13b"];
const REST = "#9aa3ad";
export const CHANGES = [
  { kind: "arrived", bit: 1, colour: "add", glyph: "+" },
  { kind: "removed", bit: 0, colour: "remove", glyph: "−" },
  { kind: "moved", bit: 2, colour: "change", glyph: "→" },
  { kind: "relabelled", bit: 4, colour: "schema", glyph: "≠" },
];

/** @param {string} colour "#rrggbb" or "rgb(…)" @returns {number[]} */
export function parts(colour) {
  if (colour.startsWith("#"))
    return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));
  return (colour.match(/[\d.]+/g) ?? ["128", "128", "128"]).slice(0, 3).map(Number);
}

/** The colour of a code as CSS. @param {string} kind @param {number} code */
export function colourOf(kind, code) {
  if (kind === "plain") return CATEGORIES[0];
  if (code === MISSING) return REST;
  if (kind === "category") return CATEGORIES[code] ?? REST;
  const place = (code / 254) * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(place));
  const [from, to] = [parts(RAMP[low]), parts(RAMP[low + 1])];
  const mixed = from.map((channel, index) =>
    Math.round(channel + (to[index] - channel) * (place - low)),
  );
  return `rgb(${mixed.join(",")})`;
}

/** The ramp of numbers as a CSS gradient. */
export const gradient = () => `linear-gradient(to right, ${RAMP.join(", ")})`;

/** 256 colours by code. @param {string} kind @param {number} opacity 0 to 1 */
export function codeColours(kind, opacity) {
  const table = new Uint8Array(1024);
  for (let code = 0; code < 256; code += 1)
    table.set([...parts(colourOf(kind, code)), Math.round(opacity * 255)], 4 * code);
  return table;
}

/**
 * 256 colours by state: points that did not change are faint.
 * @param {HTMLElement} root
 */
export function stateColours(root) {
  const theme = themeColours(root, ["add", "change", "schema", "remove", "upkeep"]);
  const table = new Uint8Array(1024);
  for (let state = 0; state < 256; state += 1) {
    const change = CHANGES.find(({ bit }) => bit & state);
    table.set([...parts(theme[change?.colour ?? "upkeep"]), change ? 255 : 46], 4 * state);
  }
  return table;
}

/** The colour of removed points and of the lines of moves. @param {HTMLElement} root */
export const changeColours = (root) => themeColours(root, ["remove", "change", "ink", "bg"]);
