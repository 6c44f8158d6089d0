// The checks of a gate: how far each candidate moved, and how far it may.

import { element, onWidth, shape, understanding } from "./dom.js";
import { shortened, ticksOf } from "./forest.js";
import { formatSigned } from "./numbers.js";

const ROW = 30;
const HEAD = 26;
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

function markOf(tone, x, y) {
  const attributes = { class: `mark mark-${MARKS[tone]}` };
  if (tone === "passed") return shape("circle", { ...attributes, cx: x, cy: y, r: 5 });
  if (tone === "failed") return shape("path", { ...attributes, d: `M${x - 6} ${y}l6 -6 6 6 -6 6z` });
  return shape("rect", { ...attributes, x: x - 4, y: y - 4, width: 8, height: 8 });
}

function drawChecks(checks, width) {
  const left = Math.min(300, Math.round(width * 0.38));
  const right = width < 620 ? 62 : 190;
  const ends = checks.flatMap((check) => [check.difference, check.bound ?? 0, -check.max_drop, 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const pad = (high - low || 0.1) * 0.05;
  const x = (value) => left + ((width - left - right) * (value - low + pad)) / (high - low + 2 * pad);
  const height = HEAD + ROW * checks.length + 6;
  const picture = shape("svg", { class: "forest", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": "Differences of all checks, and the drops that are allowed" });
  for (const { tick, label } of ticksOf(low - pad, high + pad, Math.max(2, (width - left - right) / 90))) {
    picture.append(
      shape("line", { class: tick === 0 ? "zero-line" : "grid-line",
        x1: x(tick), x2: x(tick), y1: HEAD - 6, y2: height }),
      shape("text", { class: "axis", x: x(tick), y: 12, "text-anchor": "middle" }, label));
  }
  checks.forEach((check, i) => {
    const y = HEAD + ROW * (i + 0.5);
    picture.append(shape("g", { "data-check": check.name },
      shape("title", {}, `${check.name}: ${formatSigned(check.difference)}, ${check.status}`),
      shape("text", { class: "name", x: left - 10, y: y + 4, "text-anchor": "end" },
        shortened(check.name, left - 14)),
      check.bound !== null && shape("line", { class: `interval mark-${MARKS[check.tone]}`,
        x1: x(check.bound), x2: x(check.difference), y1: y, y2: y }),
      shape("line", { class: "limit", x1: x(-check.max_drop), x2: x(-check.max_drop), y1: y - 10, y2: y + 10 }),
      markOf(check.tone, x(check.difference), y),
      shape("text", { class: "value", x: width - 4, y: y + 4, "text-anchor": "end" },
        width < 620 ? formatSigned(check.difference) : `${formatSigned(check.difference)} ${check.status}`)));
  });
  return picture;
}
