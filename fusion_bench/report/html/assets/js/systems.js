// Systems × measures: means with intervals as bars, grouped by verdict, the middle folded.

import { button, element, isolated, understanding } from "./dom.js";
import { formatCount, pluralize } from "./numbers.js";
import { cellClass, columnsOf, GROUPS } from "./system_columns.js";
import { compareKeys, markSorted } from "./tables.js";

/** Of a longer group the first rows and the last one are shown. */
const SHOWN = { better: 5, open: 3, worse: 2, same: 2 };

function groupTitle(collection, group, count) {
  const noun = pluralize(count, "system");
  if (collection.isChange) {
    return {
      better: `Better than before: ${noun}`,
      open: `Changed, not decided: ${noun}`,
      worse: `Worse than before: ${noun}`,
      same: `No value changed: ${noun}`,
      new: `Only in the new report: ${noun}`,
      gone: `Only in the old report: ${noun}`,
    }[group];
  }
  return {
    better: `Better than ${collection.baseline}: ${noun}`,
    baseline: "Baseline",
    open: `Not decided: ${noun}`,
    worse: `Worse than ${collection.baseline}: ${noun}`,
    floor: "Floor: for the scale",
    ceiling: "Ceiling: for the scale",
  }[group];
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
    view.direction = isSame ? -view.direction : column.text || column.ascending ? 1 : -1;
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
      title: collection.isChange
        ? "Show what changed in its configuration, and its queries below"
        : "Show its configuration, and its queries below",
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
