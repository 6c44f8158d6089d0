// The columns of the table of systems: what a cell shows, and what it is sorted by.

import { element } from "./dom.js";
import {
  formatCount, formatInterval, formatNumber, formatPercent, formatSigned,
} from "./numbers.js";

/** The groups of systems, in their order. */
export const GROUPS = [
  "better", "baseline", "open", "worse", "floor", "ceiling", "same", "new", "gone",
];
const MARKS = {
  better: "▲", worse: "▼", open: "●", baseline: "■", floor: "▁", ceiling: "▔",
  same: "=", new: "+", gone: "−",
};

/** The least and greatest ends of the systems' intervals; bounds stand outside. */
function scaleOf(systems, ...ends) {
  const numbers = systems.flatMap((system) => ends.map((end) => end(system))).filter(known);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const span = most - least || 1;
  return (value) => Math.max(0, Math.min(100, (100 * (value - least)) / span));
}

function known(value) {
  return value !== null && value !== undefined;
}

function bar(scale, low, value, high, attributes = {}) {
  if (!known(value)) return null;
  const [from, to] = [scale(low ?? value), scale(high ?? value)];
  return element(
    "span",
    { class: "track", "aria-hidden": "true" },
    attributes.zero !== undefined &&
      element("span", { class: "zero", style: { left: `${attributes.zero}%` } }),
    element("span", { class: "range", style: { left: `${from}%`, width: `${to - from}%` } }),
    known(attributes.then) && element("span", { class: "then", style: { left: `${scale(attributes.then)}%` } }),
    element("span", { class: "dot", style: { left: `${scale(value)}%` } }),
  );
}

/** The columns: key for sorting by letter, heading, value to sort by, cell. */
export function columnsOf(collection) {
  const name = { key: "s", heading: "system", text: true, name: true, value: (s) => s.name.toLowerCase() };
  const [primary, second, ...others] = collection.measures.map((measure, i) => measureColumn(collection, measure, i));
  const isCompared = collection.competitors.some((s) => s.difference);
  return [
    name,
    ...(collection.isChange ? [thenColumn()] : []),
    primary,
    ...(second ? [second] : []),
    ...(isCompared ? differenceColumns(collection) : []),
    ...(collection.competitors.some((s) => s.second) ? [secondColumn(collection)] : []),
    ...boundColumns(collection),
    ...(collection.isChange ? [answersColumn(collection)] : []),
    ...others,
  ];
}

/** The mean in the old report. */
function thenColumn() {
  return { key: "t", heading: "then", value: (s) => s.then[0], cell: (s) => formatNumber(s.then[0]) };
}

/** What each report says against its baseline. */
function answersColumn(collection) {
  const textOf = ({ name, answers: [then, now] }) =>
    name === collection.baseline ? "baseline" : then === now ? now : `${then || "–"} → ${now || "–"}`;
  return {
    key: "o", heading: `against ${collection.baseline}`, text: true, minor: true, extra: true, value: textOf,
    cell: textOf,
  };
}

function measureColumn(collection, measure, i) {
  const low = (s) => s.low[i] ?? s.means[i];
  const high = (s) => s.high[i] ?? s.means[i];
  const then = (s) => s.then?.[i];
  const systems = collection.isChange ? collection.systems : collection.competitors;
  const scale = scaleOf(systems, low, high, then);
  const title = collection.measure_titles[i];
  return {
    key: String(i + 1),
    heading: collection.isChange ? `${title} now` : title,
    value: (s) => s.means[i],
    title: (s) => `${measure} ${formatNumber(s.means[i])} ${formatInterval(s.low[i], s.high[i])}` +
      describeBounds(s.bounds?.[i]),
    cell: (s) => [formatNumber(s.means[i]), bar(scale, s.low[i], s.means[i], s.high[i], { then: then(s) })],
    bars: true,
    minor: i > 1,
    extra: i > 1,
    wide: i === 1,
  };
}

function differenceColumns(collection) {
  const of = (name) => (system) => system.difference?.[name] ?? null;
  const compared = collection.competitors.filter((s) => s.difference);
  const scale = scaleOf([...compared, { difference: { low: 0, high: 0 } }], of("low"), of("high"));
  const column = (key, heading, value, cell, options = {}) => ({
    key, heading, value, cell: (s) => s.difference && cell(s.difference), minor: true, ...options,
  });
  return [
    column("d", "difference", of("value"), (d) => [
      formatSigned(d.value), bar(scale, d.low, d.value, d.high, { zero: scale(0) }),
    ], { bars: true, minor: false }),
    column("i", `${+(100 * (1 - collection.alpha)).toFixed(2)} % interval`, of("low"), (d) =>
      d.answer === "identical" ? "" : formatInterval(d.low, d.high, true)),
    column("a", "p", (s) => s.difference && readP(s.difference.p), (d) => d.p, { ascending: true, extra: true }),
    column("w", "won/lost", of("wins"), (d) => `${formatCount(d.wins)} / ${formatCount(d.losses)}`,
      { extra: true }),
    { key: "v", heading: "verdict", text: true, value: (s) => GROUPS.indexOf(s.group),
      cell: (s) => verdictOf(s, collection.first_group?.includes(s.name)) },
  ];
}

/** What the second measure says against the baseline, in a family of its own. */
function secondColumn(collection) {
  return {
    key: "y", heading: `verdict on ${collection.measure_titles[1]}`, text: true, minor: true, extra: true,
    value: (s) => s.second ?? "", cell: (s) => s.second,
  };
}

/** How much is judged, and what the rest could make of the mean; none with complete judgments. */
function boundColumns(collection) {
  const boundsOf = (s) => s.bounds?.[0] ?? null;
  const known = collection.systems.map(boundsOf).filter((each) => each !== null);
  if (!known.length) return [];
  const column = (key, heading, value, cell, extra) => ({
    key, heading, minor: true, extra,
    value: (s) => boundsOf(s) && value(boundsOf(s)),
    cell: (s) => boundsOf(s) && cell(boundsOf(s)),
  });
  return [
    column("u", `Judged@${known[0].depth}`, (b) => b.judged, (b) => formatPercent(b.judged),
      collection.isChange),
    ...(known.some((b) => b.low !== null) ? [column("b", "if judged", (b) => b.low, formatEnds, true)] : []),
  ];
}

function formatEnds(bounds) {
  return bounds.low === null ? null : `${formatNumber(bounds.low)}…${formatNumber(bounds.high)}`;
}

/** The same of any measure as a text; empty where nothing is known. */
function describeBounds(bounds) {
  if (!bounds) return "";
  const ends = formatEnds(bounds);
  return `; Judged@${bounds.depth} ${formatPercent(bounds.judged)}${ends ? `, if judged ${ends}` : ""}`;
}

/** What a p such as "≤.0001" or ".275 (unadjusted)" is sorted by; null for none. */
function readP(text) {
  const digits = text.replace(/[^\d.]/g, "");
  return digits ? Number(digits) : null;
}

/** A mark and a word: color alone tells nothing; and whether the system is of the best group. */
function verdictOf(system, isFirst) {
  const word = system.difference?.verdict || (system.group === "same" ? "same values" : system.group);
  const mark = element("span", { "aria-hidden": "true" }, MARKS[system.group]);
  return [
    element("span", { class: `verdict verdict-${system.group}` }, mark, `\u00a0${word}`),
    isFirst && element("span", { class: "best-group" }, "★ best group"),
  ];
}

/** The classes of a column's cells. */
export function cellClass(column) {
  const kinds = [
    !column.text && "number-cell", column.minor && "minor", column.extra && "extra", column.wide && "wide",
    column.bars && "bars",
  ];
  return kinds.filter(Boolean).join(" ") || null;
}
