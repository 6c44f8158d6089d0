// The columns of the table of systems: what a cell shows, and what it is sorted by.

import { element } from "./dom.js";
import { formatCount, formatInterval, formatNumber, formatSigned } from "./numbers.js";

/** The groups of systems, in their order. */
export const GROUPS = ["better", "baseline", "open", "worse", "floor", "ceiling"];
const MARKS = { better: "▲", worse: "▼", open: "●", baseline: "■", floor: "▁", ceiling: "▔" };

/** The least and greatest ends of the systems' intervals; bounds stand outside. */
function scaleOf(systems, low, high) {
  const ends = systems.flatMap((system) => [low(system), high(system)]);
  const known = ends.filter((value) => value !== null && value !== undefined);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const span = most - least || 1;
  return (value) => Math.max(0, Math.min(100, (100 * (value - least)) / span));
}

function bar(scale, low, value, high, attributes = {}) {
  if (value === null || value === undefined) return null;
  const [from, to] = [scale(low ?? value), scale(high ?? value)];
  return element(
    "span",
    { class: "track", "aria-hidden": "true" },
    attributes.zero !== undefined &&
      element("span", { class: "zero", style: { left: `${attributes.zero}%` } }),
    element("span", { class: "range", style: { left: `${from}%`, width: `${to - from}%` } }),
    element("span", { class: "dot", style: { left: `${scale(value)}%` } }),
  );
}

/** The columns: key for sorting by letter, heading, value to sort by, cell. */
export function columnsOf(collection) {
  const name = { key: "s", heading: "system", text: true, name: true, value: (s) => s.name.toLowerCase() };
  const [primary, ...others] = collection.measures.map((measure, i) => measureColumn(collection, measure, i));
  const isCompared = collection.competitors.some((s) => s.difference);
  return [name, primary, ...(isCompared ? differenceColumns(collection) : []), ...others];
}

function measureColumn(collection, measure, i) {
  const low = (s) => s.low[i] ?? s.means[i];
  const high = (s) => s.high[i] ?? s.means[i];
  const scale = scaleOf(collection.competitors, low, high);
  return {
    key: String(i + 1),
    heading: collection.measure_titles[i],
    value: (s) => s.means[i],
    title: (s) => `${measure} ${formatNumber(s.means[i])} ${formatInterval(s.low[i], s.high[i])}`,
    cell: (s) => [formatNumber(s.means[i]), bar(scale, s.low[i], s.means[i], s.high[i])],
    bars: true,
    minor: i > 0,
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
    column("i", "interval", of("low"), (d) =>
      formatInterval(d.low, d.high, true) + (d.few_changes ? "‡" : "")),
    column("a", "adj. p", (s) => s.difference && readP(s.difference.p), (d) => d.p, { ascending: true }),
    column("w", "won/lost", of("wins"), (d) => `${formatCount(d.wins)} / ${formatCount(d.losses)}`),
    { key: "v", heading: "verdict", text: true, value: (s) => GROUPS.indexOf(s.group), cell: verdictOf },
  ];
}

/** What a p such as "≤.0001" or ".275†" is sorted by; null for none. */
function readP(text) {
  const digits = text.replace(/[^\d.]/g, "");
  return digits ? Number(digits) : null;
}

/** A mark and a word: color alone tells nothing. */
function verdictOf(system) {
  const word = system.difference?.verdict || system.group;
  const mark = element("span", { "aria-hidden": "true" }, MARKS[system.group]);
  return element("span", { class: `verdict verdict-${system.group}` }, mark, ` ${word}`);
}

/** The classes of a column's cells. */
export function cellClass(column) {
  const kinds = [column.text ? "" : "number-cell", column.minor ? "minor" : "", column.bars ? "bars" : ""];
  return kinds.filter(Boolean).join(" ") || null;
}
