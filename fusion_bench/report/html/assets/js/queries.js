// The list of queries: only the rows that are seen are in the document.

import { button, choice, element, isolated, onResize, understanding } from "./dom.js";
import { formatNumber, formatSigned, pluralize } from "./numbers.js";
import { queryOrder } from "./order.js";

const ROW = 34;
/** So many rows are seen at most. */
const MOST_ROWS = 12;
/** Rows above and below what is seen. */
const MARGIN = 8;

/** What both the heat map and the list show: system, measure, slice, filter. */
export function queryControls(collection, store) {
  const systems = collection.competitors.map(({ name }) => [name, name]);
  const measures = collection.measure_titles.map((title, i) => [String(i), title]);
  const fields = Object.keys(collection.slices);
  const slices = [["[]", "all"], ...fields.flatMap((field) => sliceOptions(collection, field))];
  const filter = element("input", {
    type: "search", placeholder: "id or text", "data-filter": collection.index, title: "Filter (key /)",
    oninput: () => store.set({ filter: filter.value }),
  });
  const system = choice("System", systems, store.state.system, (name) => store.set({ system: name }),
    { "data-choice": "system" });
  store.subscribe((state) => {
    system.querySelector("select").value = state.system;
  });
  return element("div", { class: "controls query-controls" },
    system,
    measures.length > 1 && choice("Measure", measures, 0, (i) => store.set({ measure: Number(i) }),
      { "data-choice": "measure" }),
    fields.length > 0 && choice("Slice", slices, "[]", (text) => store.set({ slice: JSON.parse(text) }),
      { "data-choice": "slice" }),
    element("label", { class: "choice" }, element("span", {}, "Filter"), filter));
}

function sliceOptions(collection, field) {
  const counts = new Map();
  for (const value of collection.slices[field]) counts.set(value, (counts.get(value) ?? 0) + 1);
  const values = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 200);
  const options = values.map(([value, count]) => [
    JSON.stringify([field, value]), `${value ?? "none"} (${pluralize(count, "query")})`,
  ]);
  return [[field, [[JSON.stringify([field]), `${field}: side by side`], ...options]]];
}

/** The block and its moves: by rows, and to the next query that is lost or won. */
export function queriesView(collection, store, openQuery) {
  const list = new QueryList(collection, store, openQuery);
  const block = element("section", { class: "view", "data-view": "queries" },
    element("h3", {}, "Queries ", list.count),
    element("div", { class: "controls" }, list.ends),
    element("div", { class: "query-table" }, list.head, list.scroller),
    understanding(collection.help.queries));
  return {
    block,
    move: (step) => list.moveTo(list.current === null ? 0 : list.current + step),
    moveToChange: (sign, step) => list.moveToChange(sign, step),
    open: () => list.open(),
  };
}

class QueryList {
  constructor(collection, store, openQuery) {
    Object.assign(this, { collection, store, openQuery });
    this.order = [];
    this.current = null; // a position in the order
    this.gains = null;
    this.rows = element("div", { class: "rows" });
    this.scroller = element("div", {
      class: "query-scroller", tabindex: "0", role: "listbox", "aria-label": "Queries",
      "data-queries": collection.index,
    }, this.rows);
    this.count = element("span", { class: "note" });
    this.head = element("div", { class: "query-row query-head" });
    /** The two ends of the list, each by one click. */
    this.ends = element("div", { class: "segments", role: "group", "aria-label": "Order" },
      [["Won most", -1], ["Lost most", 1]].map(([label, direction]) =>
        button(label, () => store.set({ sort: "gain", direction }), { "data-end": direction })));
    store.subscribe((state, changed) => this.update(state, changed));
    this.scroller.addEventListener("scroll", () => requestAnimationFrame(() => this.drawSeenRows()));
    onResize(this.scroller, () => this.drawSeenRows());
    this.scroller.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.current !== null) this.openAt(this.current);
    });
  }

  update(state, changed) {
    const isMove = changed.size === 1 && changed.has("query");
    if (!isMove) {
      this.order = queryOrder(this.collection, state);
      this.gains = this.collection.gains(state.system, state.measure);
      const shown = Math.max(1, Math.min(MOST_ROWS, this.order.length));
      this.scroller.style.height = `${ROW * shown}px`;
      this.count.textContent = pluralize(this.order.length, "query");
      this.drawHead(state);
    }
    const position = this.order.indexOf(state.query);
    this.current = position < 0 ? null : position;
    this.drawRows();
  }

  drawHead(state) {
    for (const each of this.ends.children) {
      const isPressed = state.sort === "gain" && state.direction === Number(each.dataset.end);
      each.setAttribute("aria-pressed", String(isPressed));
    }
    const heading = (sort, label, kind = null, title = null) => {
      const order = state.sort === sort ? (state.direction > 0 ? "ascending" : "descending") : null;
      return button(label, () => this.sortBy(sort),
        { "data-sort": sort, title, class: [kind, order].filter(Boolean).join(" ") || null });
    };
    this.head.replaceChildren(
      heading("id", "query"),
      element("span", { class: "minor" }, this.collection.slices.type ? "type" : ""),
      heading("baseline", this.collection.baseTitle),
      heading("value", this.collection.isChange ? "now" : state.system),
      heading("gain", "difference"),
      element("span", { class: "minor" }, ""),
      this.collection.details === null
        ? ""
        : heading("unjudged", "unjudged", "minor", `Unjudged documents among the first ten of ${state.system}`),
    );
  }

  sortBy(sort) {
    const { state } = this.store;
    const isSame = state.sort === sort;
    this.store.set({ sort, direction: isSame ? -state.direction : sort === "id" ? 1 : -1 });
  }

  drawRows() {
    const { scroller, order, current } = this;
    this.rows.replaceChildren();
    this.rows.style.height = `${ROW * order.length}px`;
    this.drawSeenRows();
    scroller.setAttribute("aria-activedescendant",
      current === null ? "" : `query-${this.collection.index}-${current}`);
  }

  /** Rows that are drawn already stay: a click that began on one of them ends on it. */
  drawSeenRows() {
    const { scroller, order, rows } = this;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MARGIN);
    const end = Math.min(order.length, first + Math.ceil(scroller.clientHeight / ROW) + 2 * MARGIN);
    const kept = new Set();
    for (const row of [...rows.children]) {
      const position = Number(row.getAttribute("aria-posinset")) - 1;
      if (position < first || position >= end) row.remove();
      else kept.add(position);
    }
    const next = rows.firstChild;
    const lowest = Math.min(...kept);
    for (let i = first; i < end; i += 1) {
      if (!kept.has(i)) rows.insertBefore(this.rowOf(i), i < lowest ? next : null);
    }
  }

  rowOf(i) {
    const { collection } = this;
    const query = this.order[i];
    const isCurrent = i === this.current;
    const unjudged = collection.unjudged(this.store.state.system)?.[query];
    return element("div", {
      class: `query-row${isCurrent ? " current" : ""}`, role: "option",
      id: `query-${collection.index}-${i}`, "aria-selected": String(isCurrent),
      "aria-setsize": this.order.length, "aria-posinset": i + 1, "data-query": collection.queries[query],
      style: { transform: `translateY(${i * ROW}px)` }, onclick: () => this.openAt(i),
    },
    element("span", { class: "query-title", title: collection.queries[query] },
      isolated(collection.title(query))),
    element("span", { class: "minor" }, collection.slices.type?.[query] ?? ""),
    this.valueCells(query),
    element("span", { class: "minor number-cell", "data-unjudged": unjudged }, unjudged ?? ""));
  }

  /** What the value is compared with, the value, and their difference as number and bar. */
  valueCells(query) {
    const { system, measure } = this.store.state;
    const base = this.collection.base(system, measure)[query];
    const value = this.collection.row(system, measure)[query];
    const gain = this.gains[query];
    const size = `${50 * Math.min(1, Math.abs(gain) || 0)}%`;
    const side = gain < 0 ? { right: "50%", width: size } : { left: "50%", width: size };
    return [
      element("span", { class: "number-cell" }, formatNumber(base)),
      element("span", { class: "number-cell" }, formatNumber(value)),
      element("span", { class: `number-cell ${gain < 0 ? "loss" : gain > 0 ? "gain" : "tie"}` },
        formatSigned(gain)),
      element("span", { class: "minor diverging", "aria-hidden": "true" },
        element("span", { class: gain < 0 ? "loss" : "gain", style: side })),
    ];
  }

  /** Open the current query, if there is one. */
  open() {
    if (this.current !== null) this.openQuery(this.order[this.current], this.store.state.system);
  }

  openAt(i) {
    this.moveTo(i);
    this.open();
  }

  moveTo(i) {
    if (!this.order.length) return;
    const { scroller } = this;
    this.current = Math.max(0, Math.min(this.order.length - 1, i));
    const top = this.current * ROW;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    const end = top + ROW - scroller.clientHeight;
    if (end > scroller.scrollTop) scroller.scrollTop = end;
    this.store.set({ query: this.order[this.current] });
    this.drawRows();
  }

  /** To the next query that the system loses (sign -1) or wins (1); step -1 = the one before. */
  moveToChange(sign, step) {
    const { length } = this.order;
    const start = this.current ?? (step > 0 ? -1 : length);
    for (let i = start + step; i >= 0 && i < length; i += step) {
      if (Math.sign(this.gains[this.order[i]]) === sign) {
        this.moveTo(i);
        return;
      }
    }
  }
}
