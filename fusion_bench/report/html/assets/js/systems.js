// Systems × measures: means with intervals as bars, grouped by verdict, the middle folded.

import { button, element, isolated, understanding } from "./dom.js";
import { formatCount, pluralize } from "./numbers.js";
import { cellClass, columnsOf, GROUPS } from "./system_columns.js";
import { columnSwitch, compareKeys, markSorted } from "./tables.js";

/** Of a longer group the first rows and the last one are shown. */
const SHOWN = { better: 5, open: 3, worse: 2, same: 2 };

function groupTitle(collection, group, count) {
  const noun = pluralize(count, "system");
  if (collection.isChange) {
    return {
      better: `Better than before: ${noun}`,
      open: `Not shown: ${noun}`,
      worse: `Worse than before: ${noun}`,
      same: `No value changed: ${noun}`,
      new: `Only in the new report: ${noun}`,
      gone: `Only in the old report: ${noun}`,
    }[group];
  }
  return {
    better: `Better than ${collection.baseline}: ${noun}`,
    baseline: "Baseline",
    open: `Not shown: ${noun}`,
    worse: `Worse than ${collection.baseline}: ${noun}`,
    floor: "Floor: for the scale",
    ceiling: "Ceiling: for the scale",
  }[group];
}

/** The block: heading, table, how to read it; and the action of each column's key. */
export function systemsView(collection, store) {
  const table = new SystemsTable(collection, store);
  const grouped = element("input", { type: "checkbox", checked: true,
    onchange: () => table.group(grouped.checked) });
  const block = element("section", { class: "view", "data-view": "systems" },
    element("h3", {}, "Systems"),
    element("div", { class: "controls" }, element("label", {}, grouped, " Group by verdict"),
      table.columns.some(({ extra }) => extra) && columnSwitch(table.node)),
    element("div", { class: "scroll" }, table.node),
    understanding(collection.help.systems));
  const keys = table.columns.map((column) => [column.key, () => table.sortBy(column)]);
  return { block, keys: Object.fromEntries(keys) };
}

/** The table; a click on a name chooses the system and shows its configuration. */
class SystemsTable {
  constructor(collection, store) {
    this.collection = collection;
    this.store = store;
    this.columns = columnsOf(collection);
    this.column = null; // by which the rows are sorted; null = as the report has them
    this.direction = -1;
    this.isGrouped = true;
    this.unfolded = new Set();
    this.opened = null;
    this.headings = this.columns.map((column) =>
      element("th", { scope: "col", class: cellClass(column), "data-sort": column.key },
        button(column.heading, () => this.sortBy(column), { title: `Sort (key ${column.key})` })));
    this.node = element("table", { class: "systems-table", id: `systems-${collection.index}` },
      element("thead", {}, element("tr", {}, this.headings)));
    store.subscribe((state, changed) => changed.has("system") && this.draw());
  }

  /** Sort by a column; a second time the other way round. */
  sortBy(column) {
    const isSame = this.column === column;
    this.direction = isSame ? -this.direction : column.text || column.ascending ? 1 : -1;
    this.column = column;
    markSorted(this.headings, this.headings[this.columns.indexOf(column)], this.direction);
    this.draw();
  }

  group(isGrouped) {
    this.isGrouped = isGrouped;
    this.draw();
  }

  choose(system) {
    this.opened = this.opened === system.name ? null : system.name;
    this.store.set({ system: system.name });
    this.draw();
    this.node.querySelector(`[data-system="${CSS.escape(system.name)}"] button`)?.focus();
  }

  draw() {
    for (const body of [...this.node.tBodies]) body.remove();
    const { systems } = this.collection;
    if (!this.isGrouped) {
      this.node.append(element("tbody", {}, this.sorted(systems).flatMap((each) => this.rowsOf(each))));
      return;
    }
    for (const group of GROUPS) {
      const members = this.sorted(systems.filter((system) => system.group === group));
      if (members.length) this.node.append(this.groupBody(group, members));
    }
  }

  sorted(systems) {
    if (this.column === null) return systems;
    const keys = new Map(systems.map((system) => [system, this.column.value(system)]));
    return [...systems].sort((a, b) => compareKeys(keys.get(a), keys.get(b), this.direction));
  }

  groupBody(group, systems) {
    const body = element("tbody", { "data-group": group });
    body.append(element("tr", { class: "group-title" },
      element("th", { scope: "rowgroup", colspan: this.columns.length },
        groupTitle(this.collection, group, systems.length))));
    body.append(...this.groupRows(group, systems));
    return body;
  }

  groupRows(group, systems) {
    const limit = SHOWN[group] ?? Infinity;
    const isFolded = !this.unfolded.has(group) && systems.length > limit + 2;
    const isShown = (system, i) =>
      !isFolded || i < limit || i === systems.length - 1 || system.name === this.opened;
    const rows = [];
    let hidden = 0;
    systems.forEach((system, i) => {
      if (isShown(system, i)) {
        if (hidden) rows.push(this.moreRow(group, hidden));
        hidden = 0;
        rows.push(...this.rowsOf(system));
      } else hidden += 1;
    });
    return rows;
  }

  moreRow(group, count) {
    const open = () => {
      this.unfolded.add(group);
      this.draw();
    };
    const cell = element("td", { colspan: this.columns.length },
      button(`Show ${formatCount(count)} more`, open, { class: "more" }));
    return element("tr", { class: "more-row" }, cell);
  }

  /** The row of a system, and its configuration where it is opened. */
  rowsOf(system) {
    const isChosen = system.name === this.store.state.system;
    const row = element("tr",
      { class: `group-${system.group}${isChosen ? " chosen" : ""}`, "data-system": system.name },
      this.columns.map((column) => this.cellOf(column, system, isChosen)));
    if (system.name !== this.opened || !system.config) return [row];
    const cell = element("td", { colspan: this.columns.length },
      element("pre", { class: "config" }, isolated(system.config)));
    return [row, element("tr", { class: "config-row" }, cell)];
  }

  cellOf(column, system, isChosen) {
    if (!column.name) {
      return element("td", { class: cellClass(column), title: column.title?.(system) },
        column.cell(system) ?? "");
    }
    if (system.kind !== "system") {
      return element("th", { scope: "row", title: system.note }, isolated(system.name));
    }
    const choose = button(isolated(system.name), () => this.choose(system), {
      class: "name",
      "aria-pressed": String(isChosen),
      title: this.collection.isChange
        ? "Show what changed in its configuration, and its queries below"
        : "Show its configuration, and its queries below",
    });
    return element("th", { scope: "row" }, choose);
  }
}
