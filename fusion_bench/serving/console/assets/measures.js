// The measures as large numbers, each with its difference from the baseline as a bar.

import { element, isolated } from "./dom.js";

const SCALES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** The least round number that no end of an interval exceeds. */
function commonScale(rows) {
  const ends = rows.flatMap((row) => [row.difference, row.low ?? 0, row.high ?? 0]).map(Math.abs);
  return SCALES.find((scale) => scale >= Math.max(...ends)) ?? Math.max(...ends);
}

function toneOf(row) {
  if (row.low !== null && row.low > 0) return "better";
  return row.high !== null && row.high < 0 ? "worse" : "open";
}

/** A share of the track's width; the middle is 0. */
function place(value, scale) {
  return `${50 + (50 * value) / scale}%`;
}

function bar(row, scale) {
  const marks = [element("span", { class: "zero", style: { left: "50%" } })];
  if (row.low !== null) {
    const style = { left: place(row.low, scale), width: `${(50 * (row.high - row.low)) / scale}%` };
    marks.push(element("span", { class: "range", style }));
  }
  marks.push(element("span", { class: "dot", style: { left: place(row.difference, scale) } }));
  return element("div", { class: "track", "aria-hidden": "true" }, marks);
}

function card(row, scale, setup) {
  const { texts } = row;
  const isPrimary = row.measure === setup.primary;
  return element("article", {
    class: `measure ${toneOf(row)}${isPrimary ? " is-primary" : ""}`, "data-measure": row.measure,
  },
  element("h2", {}, isolated(row.measure)),
  element("p", { class: "mean", "data-mean": true }, texts.mean),
  element("p", { class: "change" },
    element("span", { class: "difference", "data-difference": true }, texts.difference), " ",
    element("span", { class: "interval", "data-interval": true }, texts.interval)),
  element("p", { class: "change interval" }, "baseline ", element("span", { "data-baseline": true }, texts.baseline)),
  bar(row, scale),
  element("div", { class: "scale", "aria-hidden": "true" },
    element("span", {}, `−${scale}`), element("span", {}, "0"), element("span", {}, `+${scale}`)));
}

/** Show the measures of an answer. */
export function showMeasures(node, answer, setup) {
  const scale = commonScale(answer.measures);
  const coverage = `${Number((100 * (1 - setup.alpha)).toPrecision(6))} %`;
  node.replaceChildren(
    element("p", { class: "label", "data-label": true },
      `${answer.label}: differences from `, isolated(setup.baseline),
      ` with ${coverage} intervals, each alone and not adjusted for how often you look`),
    element("div", { class: "measure-cards" }, answer.measures.map((row) => card(row, scale, setup))),
  );
}

/** Show what lint finds. */
export function showFindings(node, findings) {
  const items = findings.map((finding) =>
    element("li", { class: `severity-${finding.severity}`, "data-finding": finding.id },
      `${finding.severity}: `, isolated(finding.message)));
  node.replaceChildren(
    element("h2", {}, "Findings"),
    items.length ? element("ul", { class: "finding-list" }, items)
      : element("p", { class: "note" }, "Lint finds nothing in this setting."),
  );
}
