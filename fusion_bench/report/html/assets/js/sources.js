// What the sources share, what each alone adds, and what a system loses without it.

import { ticksOf } from "./axis.js";
import { element, isolated, onWidth, shape, understanding } from "./dom.js";
import { formatCount, formatInterval, formatNumber, formatPercent, formatSigned } from "./numbers.js";

/** The block; null where there are no details of two sources. */
export function sourcesView(collection, details) {
  const { overlap, leave_one_out: left, depth_curve: depths } = details.data;
  if (overlap.sources.length < 2) return null;
  return element("section", { class: "view", "data-view": "sources" },
    element("h3", {}, "Sources"),
    overlapTable(overlap),
    understanding(collection.help.overlap),
    left.length > 0 && leftOutTable(left),
    left.length > 0 && understanding(collection.help.leave_one_out),
    depths.length > 0 && depthPicture(collection, depths),
    depths.length > 0 && understanding(collection.help.depth_curve));
}

function shaded(share) {
  const text = share === null ? "n/a" : formatPercent(share);
  const strength = share === null ? 0 : Math.round(46 * share);
  return element("td", { class: "number-cell",
    style: { background: `color-mix(in srgb, var(--accent) ${strength}%, transparent)` } }, text);
}

function overlapTable(overlap) {
  const head = (text) => element("th", { scope: "col", class: "number-cell" }, text);
  return element("div", { class: "scroll" }, element("table", { class: "overlap-table" },
    element("caption", {}, `Shared documents among the first ${overlap.depth}, and relevant documents`),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "source"),
      overlap.sources.map((name) => head(isolated(name))),
      head("relevant returned"), head("only by this source"))),
    element("tbody", {}, overlap.sources.map((name, i) => element("tr", { "data-source": name },
      element("th", { scope: "row" }, isolated(name)),
      overlap.shared[i].map((share, j) => (i === j ? element("td", { class: "number-cell" }, "·") : shaded(share))),
      countCell(overlap.returned[i], overlap.relevant),
      countCell(overlap.alone[i], overlap.relevant))))));
}

function countCell(count, total) {
  const share = total ? ` (${formatPercent(count / total)})` : "";
  return element("td", { class: "number-cell" }, `${formatCount(count)}${share}`);
}

/** One row a system and source. */
function leftOutTable(rows) {
  const ends = rows.flatMap(({ low, high, difference }) => [low, high, difference]).filter((v) => v !== null);
  const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const size = (value) => `${(100 * value) / (most - least || 1)}%`;
  const at = (value) => size(value - least);
  const bar = ({ low, high, difference }) => element("span", { class: "track", "aria-hidden": "true" },
    element("span", { class: "zero", style: { left: at(0) } }),
    low !== null && element("span", { class: "range",
      style: { left: at(low), width: size(high - low) } }),
    element("span", { class: "dot", style: { left: at(difference) } }));
  return element("div", { class: "scroll" }, element("table", { class: "left-out-table" },
    element("caption", {}, "Each system without one of its sources"),
    element("thead", {}, element("tr", {},
      ["system", "without"].map((text) => element("th", { scope: "col" }, text)),
      ["mean", "difference", "interval"].map((text) =>
        element("th", { scope: "col", class: "number-cell" }, text)))),
    element("tbody", {}, rows.map((row, i) => element("tr", {
      class: row.high !== null && row.high < 0 ? "group-worse" : row.low > 0 ? "group-better" : null },
    element("th", { scope: "row" }, rows[i - 1]?.system === row.system ? "" : isolated(row.system)),
    element("td", {}, isolated(row.source)),
    row.reason
      ? element("td", { colspan: 3, class: "note", title: row.reason },
        `not possible without ${row.source}: ${row.reason.split(" (")[0]}`)
      : [element("td", { class: "number-cell" }, formatNumber(row.mean)),
        element("td", { class: "number-cell bars" }, formatSigned(row.difference), bar(row)),
        element("td", { class: "number-cell" }, formatInterval(row.low, row.high, true))])))));
}

function depthPicture(collection, rows) {
  const curves = new Map();
  for (const row of rows.filter(({ mean }) => mean !== null)) {
    curves.set(row.system, [...(curves.get(row.system) ?? []), row]);
  }
  const holder = element("div", { class: "picture" });
  onWidth(holder, (width) => holder.replaceChildren(drawCurves(collection, curves, Math.min(width, 760))));
  return element("div", {},
    element("h4", {}, `${collection.primary} by depth of the sources`), holder);
}

function drawCurves(collection, curves, width) {
  const [left, right, top, bottom, height] = [52, Math.min(190, width * 0.34), 12, 34, 250];
  const points = [...curves.values()].flat();
  const [least, most] = [Math.min(...points.map((p) => p.mean)), Math.max(...points.map((p) => p.mean))];
  const depths = [...new Set(points.map((p) => p.depth))].sort((a, b) => a - b);
  const span = Math.log(depths.at(-1) / depths[0]) || 1;
  const pad = (most - least || 0.02) * 0.08;
  const x = (depth) => left + ((width - left - right) * Math.log(depth / depths[0])) / span;
  const y = (mean) => top + ((height - top - bottom) * (most + pad - mean)) / (most - least + 2 * pad);
  const picture = shape("svg", { class: "forest curves", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": `${collection.primary} by depth of the sources` });
  for (const { tick } of ticksOf(least - pad, most + pad, 5)) {
    picture.append(
      shape("line", { class: "grid-line", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      shape("text", { class: "axis", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, formatNumber(tick)));
  }
  for (const depth of depths) {
    picture.append(shape("text", { class: "axis", x: x(depth), y: height - 14, "text-anchor": "middle" },
      formatCount(depth)));
  }
  let lowest = -Infinity;
  [...curves]
    .sort((a, b) => b[1].at(-1).mean - a[1].at(-1).mean)
    .forEach(([system, row], i) => {
      lowest = Math.max(lowest + 14, y(row.at(-1).mean) + 4);
      const kind = system === collection.baseline ? "curve-baseline" : `curve-${i % 8}`;
      picture.append(
        shape("polyline", { class: `curve ${kind}`, points: row.map((p) => `${x(p.depth)},${y(p.mean)}`).join(" ") }),
        ...row.map((p) => shape("circle", { class: `curve-point ${kind}`, cx: x(p.depth), cy: y(p.mean), r: 3 },
          shape("title", {}, `${system}, depth ${p.depth}: ${formatNumber(p.mean)}`))),
        shape("text", { class: "curve-name", x: width - right + 8, y: lowest }, system));
    });
  return picture;
}
