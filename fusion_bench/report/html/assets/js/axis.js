// What pictures of differences share: the axis above the rows, marks, names that fit.

import { shape } from "./dom.js";

/** Height of the axis. */
export const HEAD = 26;
/** Of the names, in pixels, as the style sheet has it. */
const NAME_SIZE = 12.5;

/** Round steps for an axis. */
export function ticksOf(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i += 1) ticks.push(i * step);
  return ticks.map((tick) => ({ tick, label: tick === 0 ? "0" : trimmed(tick, step) }));
}

function trimmed(tick, step) {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return `${tick > 0 ? "+" : "−"}${Math.abs(tick).toFixed(decimals)}`;
}

/** The lines and labels of an axis; x gives the place of a value, room the pixels between its ends. */
export function axisOf(low, high, x, room, height) {
  return ticksOf(low, high, Math.max(2, room / 90)).flatMap(({ tick, label }) => [
    shape("line", { class: tick === 0 ? "zero-line" : "grid-line",
      x1: x(tick), x2: x(tick), y1: HEAD - 6, y2: height }),
    shape("text", { class: "axis", x: x(tick), y: 12, "text-anchor": "middle" }, label),
  ]);
}

/** A mark whose form tells the verdict as well as its color. */
export function markOf(group, x, y) {
  const attributes = { class: `mark mark-${group}` };
  if (group === "better") return shape("path", { ...attributes, d: `M${x - 6} ${y + 5}l6 -10 6 10z` });
  if (group === "worse") return shape("path", { ...attributes, d: `M${x - 6} ${y - 5}l6 10 6 -10z` });
  if (group === "baseline") {
    return shape("rect", { ...attributes, x: x - 4, y: y - 4, width: 8, height: 8 });
  }
  return shape("circle", { ...attributes, cx: x, cy: y, r: 5 });
}

/** A picture narrower than this has each name on a line of its own, above its mark. */
const NARROW = 620;

/** Where the parts of a row stand: pixels of names and values, and whether names have own lines. */
export function layoutOf(width, most, share) {
  const isNarrow = width < NARROW;
  return isNarrow ? { isNarrow, left: 8, right: 8, nameRoom: width - 90 }
    : { isNarrow, left: Math.min(most, Math.round(width * share)), right: 190,
      nameRoom: Math.min(most, Math.round(width * share)) - 14 };
}

/** The name and the value of a row; its mark stands at the same y, or below both. */
export function textsOf(name, value, y, width, layout) {
  const line = layout.isNarrow ? y - 11 : y + 4;
  const place = layout.isNarrow ? { x: 2 } : { x: layout.left - 10, "text-anchor": "end" };
  return [
    shape("text", { class: "name", y: line, ...place }, name),
    shape("text", { class: "value", x: width - 4, y: line, "text-anchor": "end" }, value),
  ];
}

/** Names that fit into the room, no two alike: where shortening makes them so, with a number. */
export function fittedNames(names, room) {
  const texts = names.map((name) => shortened(name, room));
  return texts.map((text, i) =>
    texts.indexOf(text) === texts.lastIndexOf(text) ? text : `${shortened(names[i], room - 30)} (${i + 1})`);
}

/** A name with its middle left out where it is wider than the room. */
function shortened(name, room) {
  const letters = [...name];
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `600 ${NAME_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  let text = name;
  for (let most = letters.length; ruler.measureText(text).width > room && most > 6; most -= 1) {
    const half = Math.floor(most / 2);
    text = [...letters.slice(0, half), "…", ...letters.slice(half + 1 - most)].join("");
  }
  return text;
}
