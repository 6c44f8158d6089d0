// The checks of a gate: how far each candidate moved, and how far it may.

import { HEAD, axisOf, fittedNames, layoutOf, markOf, textsOf } from "./axis.js";
import { element, onWidth, shape, understanding } from "./dom.js";
import { formatSigned } from "./numbers.js";

const ROW = { wide: 30, narrow: 48 };
/** Tone of a check → the group of systems whose mark it has. */
const MARKS = { passed: "better", failed: "worse", inconclusive: "open" };

/** The block. */
export function checksView(data) {
  const holder = element("div", { class: "picture" });
  onWidth(holder, (width) => holder.replaceChildren(drawChecks(data.checks, width)));
  return element("section", { class: "view", "data-view": "checks" },
    element("h3", {}, "Checks"),
    holder,
    element("p", { class: "legend" },
      element("span", { class: "verdict verdict-better" }, "● passed"),
      element("span", { class: "verdict verdict-open" }, "■ inconclusive"),
      element("span", { class: "verdict verdict-worse" }, "◆ failed"),
      element("span", { class: "verdict verdict-worse" }, "┃ largest drop allowed")),
    understanding(data.help));
}

function drawChecks(checks, width) {
  const layout = layoutOf(width, 300, 0.38);
  const { isNarrow, left, right } = layout;
  const row = isNarrow ? ROW.narrow : ROW.wide;
  const names = fittedNames(checks.map(({ name }) => name), layout.nameRoom);
  const ends = checks.flatMap((check) => [check.difference, check.bound ?? 0, -check.max_drop, 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const pad = (high - low || 0.1) * 0.05;
  const room = width - left - right;
  const x = (value) => left + (room * (value - low + pad)) / (high - low + 2 * pad);
  const height = HEAD + row * checks.length + 6;
  const picture = shape("svg", { class: "forest", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": "Differences of all checks, and the drops that are allowed" });
  picture.append(...axisOf(low - pad, high + pad, x, room, height));
  checks.forEach((check, i) => {
    const y = HEAD + row * (i + (isNarrow ? 0.7 : 0.5));
    const value = formatSigned(check.difference);
    picture.append(shape("g", { "data-check": check.name },
      shape("title", {}, `${check.name}: ${formatSigned(check.difference)}, ${check.status}`),
      textsOf(names[i], isNarrow ? value : `${value} ${check.status}`, y, width, layout),
      check.bound !== null && shape("line", { class: `interval mark-${MARKS[check.tone]}`,
        x1: x(check.bound), x2: x(check.difference), y1: y, y2: y }),
      shape("line", { class: "limit", x1: x(-check.max_drop), x2: x(-check.max_drop), y1: y - 10, y2: y + 10 }),
      markOf(MARKS[check.tone], x(check.difference), y)));
  });
  return picture;
}
