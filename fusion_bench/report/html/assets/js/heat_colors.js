// The colors of differences, from the style sheet.

import { color } from "./dom.js";

/** Weak differences stay visible: color grows with the root of the difference. */
const EXPONENT = 0.6;

function parse(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}

/** value → [red, green, blue]: from -1 (worse) through 0 to 1 (better). */
export function differenceColors() {
  const [zero, better, worse] = ["--heat-zero", "--heat-better", "--heat-worse"].map((name) =>
    parse(color(name)),
  );
  const missing = parse(color("--heat-missing"));
  return (value) => {
    if (Number.isNaN(value)) return missing;
    const end = value < 0 ? worse : better;
    const share = Math.min(1, Math.abs(value)) ** EXPONENT;
    return zero.map((from, i) => Math.round(from + (end[i] - from) * share));
  };
}
