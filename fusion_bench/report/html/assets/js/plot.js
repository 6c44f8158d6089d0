// A plot in a frame: scales, grid lines, labels, marks, lines.

import { ticksOf } from "./axis.js";
import { shape } from "./dom.js";

const MARGIN = { left: 58, right: 14, top: 10, bottom: 38 };

/** Round numbers between two ends, with their labels. */
function roundTicks([low, high], pixels, apart) {
  return ticksOf(low, high, Math.max(2, pixels / apart)).map(({ tick, label }) =>
    [tick, label.replace("+", "")]);
}

/**
 * A frame into which points are drawn.
 *
 * Options: width, height, left (offset), x and y as [low, high], xTicks and yTicks as
 * [[value, label], …] (none = round numbers), xLabel, yLabel, scale (of x).
 */
export function frame(options) {
  const { width, height, left = 0, scale = (value) => value, yTicks, xTicks } = options;
  const [inner, outer] = [left + MARGIN.left, left + width - MARGIN.right];
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const [from, to] = options.x.map(scale);
  const [low, high] = options.y;
  const x = (value) => inner + ((scale(value) - from) / (to - from || 1)) * (outer - inner);
  const y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
  const columns = xTicks ?? roundTicks(options.x, outer - inner, 80);
  const rows = yTicks ?? roundTicks(options.y, bottom - top, 45);
  const group = shape("g", {},
    rows.map(([value, label]) => [
      shape("line", { class: "grid-line", x1: inner, x2: outer, y1: y(value), y2: y(value) }),
      shape("text", { class: "axis", x: inner - 6, y: y(value) + 4, "text-anchor": "end" }, label),
    ]),
    columns.map(([value, label]) => shape("text", {
      class: "axis", x: x(value), y: bottom + 15,
      "text-anchor": x(value) < inner + 8 ? "start" : x(value) > outer - 8 ? "end" : "middle",
    }, label)),
    shape("line", { class: "axis-line", x1: inner, x2: outer, y1: bottom, y2: bottom }),
    options.xLabel && shape("text",
      { class: "axis", x: (inner + outer) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel),
    options.yLabel && shape("text", {
      class: "axis", "text-anchor": "middle",
      transform: `translate(${left + 11} ${(top + bottom) / 2}) rotate(-90)`,
    }, options.yLabel));
  const clip = ([px, py]) => px >= inner - 1 && px <= outer + 1 && py >= top - 1 && py <= bottom + 1;
  const place = ([a, b]) => [x(a), y(b)];
  return {
    group, x, y, ends: { inner, outer, top, bottom },
    /** A mark, unless it lies outside. */
    mark(kind, point, title, attributes = {}) {
      const at = place(point);
      if (clip(at)) group.append(markShape(kind, at, title, attributes));
    },
    /** A line through points; as steps that hold each value up to the next. */
    line(kind, points, steps = false) {
      const path = points.map(place).map(([px, py], i) =>
        i === 0 ? `M${px} ${py}` : steps ? `H${px}V${py}` : `L${px} ${py}`);
      group.append(shape("path", { class: `plot-line ${kind}`, d: path.join("") }));
    },
  };
}

const OUTLINES = {
  default: "M-4.5 -4.5h9v9h-9z",
  seed: "M0 -5.5l5.5 5.5 -5.5 5.5 -5.5 -5.5z",
  chosen: "M0 -8l2.2 5.2 5.6 .5 -4.3 3.7 1.3 5.6 -4.8 -3 -4.8 3 1.3 -5.6 -4.3 -3.7 5.6 -.5z",
  held: "M0 -4.5l4.5 8h-9z",
};

/** A mark at a point of the drawing. */
export function markShape(kind, [x, y], title, attributes = {}) {
  const [name] = kind.split(" ");
  const common = { class: `plot-mark ${kind}`, ...attributes };
  const outline = OUTLINES[name];
  const text = title && shape("title", {}, title);
  return outline
    ? shape("path", { ...common, transform: `translate(${x} ${y})`, d: outline }, text)
    : shape("circle", { ...common, cx: x, cy: y, r: 3 }, text);
}

/** A drawing of frames. */
export function drawing(label, width, height, ...groups) {
  return shape("svg", {
    class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
  }, groups);
}
