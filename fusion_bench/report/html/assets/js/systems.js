// Systems × measures: means with intervals as bars, grouped by verdict, the middle folded.

import { button, element, isolated, understanding } from "./dom.js";
import { formatCount, formatInterval, formatNumber, formatSigned, pluralize } from "./numbers.js";
import { compareKeys, markSorted } from "./tables.js";

const GROUPS = ["better", "baseline", "open", "worse", "floor", "ceiling"];
const MARKS = { better: "▲", worse: "▼", open: "●", baseline: "■", floor: "▁", ceiling: "▔" };
/** Of a longer group the first rows and the last one are shown. */
const SHOWN = { better: 5, open: 3, worse: 2 };

function groupTitle(collection, group, count) {
  const noun = pluralize(count, "system");
  return {
    better: `Better than ${collection.baseline}: ${noun}`,
    baseline: "Baseline",
    open: `Not decided: ${noun}`,
    worse: `Worse than ${collection.baseline}: ${noun}`,
    floor: "Floor: for the scale",
    ceiling: "Ceiling: for the scale",
  }[group];
}

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
function columnsOf(collection) {
  const systems = collection.competitors;
  const differences = systems.map((s) => s.difference).filter(Boolean);
  const of = (name) => (system) => system.difference?.[name] ?? null;
  const spread = [{ difference: { low: 0, high: 0 } }, ...systems.filter((s) => s.difference)];
  const scale = scaleOf(spread, of("low"), of("high"));
  const columns = [
    { key: "s", heading: "system", text: true, value: (s) => s.name.toLowerCase(), name: true },
  ];
  collection.measures.forEach((measure, i) => {
    const meanScale = scaleOf(systems, (s) => s.low[i] ?? s.means[i], (s) => s.high[i] ?? s.means[i]);
    const column = {
      key: String(i + 1),
      heading: collection.measure_titles[i],
      value: (s) => s.means[i],
      title: (s) => `${measure} ${formatNumber(s.means[i])} ${formatInterval(s.low[i], s.high[i])}`,
      cell: (s) => [formatNumber(s.means[i]), bar(meanScale, s.low[i], s.means[i], s.high[i])],
      bars: true,
      minor: i > 0,
    };
    columns.push(column);
  });
  if (!differences.length) return columns;
  columns.splice(
    2,
    0,
    {
      key: "d",
      heading: "difference",
      value: of("value"),
      bars: true,
      cell: (s) =>
        s.difference && [
          formatSigned(s.difference.value),
          bar(scale, s.difference.low, s.difference.value, s.difference.high, { zero: scale(0) }),
        ],
    },
    {
      key: "i",
      heading: "interval",
      value: of("low"),
      cell: (s) =>
        s.difference && formatInterval(s.difference.low, s.difference.high, true) +
          (s.difference.few_changes ? "‡" : ""),
      minor: true,
    },
    { key: "a", heading: "adj. p", value: (s) => s.difference && parseP(s.difference.p), minor: true,
      cell: (s) => s.difference?.p },
    {
      key: "w",
      heading: "won/lost",
      value: of("wins"),
      cell: (s) =>
        s.difference && `${formatCount(s.difference.wins)} / ${formatCount(s.difference.losses)}`,
      minor: true,
    },
    { key: "v", heading: "verdict", text: true, value: (s) => GROUPS.indexOf(s.group),
      cell: (s) => verdictOf(s) },
  );
  return columns;
}

function parseP(text) {
  return Number(text.replace(/[^\d.]/g, ""));
}

/** A mark and a word: color alone tells nothing. */
export function verdictOf(system) {
  const word = system.difference?.verdict || system.group;
  const mark = element("span", { "aria-hidden": "true" }, MARKS[system.group]);
  return element("span", { class: `verdict verdict-${system.group}` }, mark, ` ${word}`);
}

/** The block: heading, table, how to read it. */
export function systemsView(collection, store) {
  const columns = columnsOf(collection);
  const view = { column: null, direction: -1, grouped: true, unfolded: new Set() };
  const table = element("table", { class: "systems-table", id: `systems-${collection.index}` });
  const headings = columns.map((column) =>
    element(
      "th",
      { scope: "col", class: cellClass(column), "data-sort": column.key },
      button(column.heading, () => sortBy(column), { title: `Sort (key ${column.key})` }),
    ),
  );
  table.append(element("thead", {}, element("tr", {}, headings)));

  function sortBy(column) {
    const isSame = view.column === column;
    view.direction = isSame ? -view.direction : column.text || column.heading === "adj. p" ? 1 : -1;
    view.column = column;
    markSorted(headings, headings[columns.indexOf(column)], view.direction);
    draw();
  }

  function sorted(systems) {
    if (view.column === null) return systems;
    const keys = new Map(systems.map((system) => [system, view.column.value(system)]));
    return [...systems].sort((a, b) => compareKeys(keys.get(a), keys.get(b), view.direction));
  }

  function rowOf(system) {
    const isChosen = system.name === store.state.system;
    const cells = columns.map((column) => cellOf(column, system));
    const row = element(
      "tr",
      { class: `group-${system.group}${isChosen ? " chosen" : ""}`, "data-system": system.name },
      cells,
    );
    return row;
  }

  function cellOf(column, system) {
    if (!column.name) {
      return element("td", { class: cellClass(column), title: column.title?.(system) },
        column.cell(system) ?? "");
    }
    if (system.kind !== "system") {
      return element("th", { scope: "row", title: system.note }, isolated(system.name));
    }
    const choose = button(isolated(system.name), () => choose_(system), {
      class: "name",
      "aria-pressed": String(system.name === store.state.system),
      title: "Show its configuration, and its queries below",
    });
    return element("th", { scope: "row" }, choose);
  }

  function choose_(system) {
    view.opened = view.opened === system.name ? null : system.name;
    store.set({ system: system.name });
    draw();
    table.querySelector(`[data-system="${CSS.escape(system.name)}"] button`)?.focus();
  }

  function configOf(system) {
    const cell = element("td", { colspan: columns.length },
      element("pre", { class: "config" }, isolated(system.config)));
    return element("tr", { class: "config-row" }, cell);
  }

  function rowsOf(system) {
    return system.name === view.opened && system.config
      ? [rowOf(system), configOf(system)]
      : [rowOf(system)];
  }

  function groupBody(group, systems) {
    const title = element("th", { scope: "rowgroup", colspan: columns.length },
      groupTitle(collection, group, systems.length));
    const limit = SHOWN[group] ?? Infinity;
    const isFolded = !view.unfolded.has(group) && systems.length > limit + 2;
    const shown = (system, i) =>
      !isFolded || i < limit || i === systems.length - 1 || system.name === view.opened;
    const rows = [];
    let hidden = 0;
    systems.forEach((system, i) => {
      if (shown(system, i)) {
        if (hidden) rows.push(moreRow(group, hidden));
        hidden = 0;
        rows.push(...rowsOf(system));
      } else hidden += 1;
    });
    const body = element("tbody", { "data-group": group });
    if (group !== "baseline") body.append(element("tr", { class: "group-title" }, title));
    body.append(...rows);
    return body;
  }

  function moreRow(group, count) {
    const open = () => {
      view.unfolded.add(group);
      draw();
    };
    const cell = element("td", { colspan: columns.length },
      button(`Show ${formatCount(count)} more`, open, { class: "more" }));
    return element("tr", { class: "more-row" }, cell);
  }

  function draw() {
    for (const body of [...table.tBodies]) body.remove();
    if (view.grouped) {
      for (const group of GROUPS) {
        const systems = sorted(collection.systems.filter((system) => system.group === group));
        if (systems.length) table.append(groupBody(group, systems));
      }
    } else {
      table.append(element("tbody", {}, sorted(collection.systems).flatMap(rowsOf)));
    }
  }

  const grouped = element("input", { type: "checkbox", checked: true, onchange: () => {
    view.grouped = grouped.checked;
    draw();
  } });
  store.subscribe((state, changed) => changed.has("system") && draw());
  const block = element(
    "section",
    { class: "view", "data-view": "systems" },
    element("h3", {}, "Systems"),
    element("div", { class: "controls" }, element("label", {}, grouped, " Group by verdict")),
    element("div", { class: "scroll" }, table),
    understanding(collection.help.systems),
  );
  return { block, keys: Object.fromEntries(columns.map((column) => [column.key, () => sortBy(column)])) };
}

function cellClass(column) {
  const kinds = [column.text ? "" : "number-cell", column.minor ? "minor" : "", column.bars ? "bars" : ""];
  return kinds.filter(Boolean).join(" ") || null;
}
