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
  const view = { order: [], current: null, gains: null };
  const rows = element("div", { class: "rows" });
  const scroller = element("div", {
    class: "query-scroller", tabindex: "0", role: "listbox", "aria-label": "Queries",
    "data-queries": collection.index,
  }, rows);
  const count = element("span", { class: "note" });
  const head = element("div", { class: "query-row query-head" });

  /** The two ends of the list, each by one click. */
  const ends = element("div", { class: "segments", role: "group", "aria-label": "Order" },
    [["Won most", -1], ["Lost most", 1]].map(([label, direction]) =>
      button(label, () => store.set({ sort: "gain", direction }), { "data-end": direction })));

  function drawHead(state) {
    for (const each of ends.children) {
      const isPressed = state.sort === "gain" && state.direction === Number(each.dataset.end);
      each.setAttribute("aria-pressed", String(isPressed));
    }
    const heading = (sort, label, kind = null, title = null) => {
      const order = state.sort === sort ? (state.direction > 0 ? "ascending" : "descending") : null;
      return button(label, () => {
        const isSame = store.state.sort === sort;
        store.set({ sort, direction: isSame ? -store.state.direction : sort === "id" ? 1 : -1 });
      }, { "data-sort": sort, title, class: [kind, order].filter(Boolean).join(" ") || null });
    };
    head.replaceChildren(
      heading("id", "query"),
      element("span", { class: "minor" }, collection.slices.type ? "type" : ""),
      heading("baseline", collection.baseTitle),
      heading("value", collection.isChange ? "now" : state.system),
      heading("gain", "difference"),
      element("span", { class: "minor" }, ""),
      collection.details === null
        ? ""
        : heading("unjudged", "unjudged", "minor", `Unjudged documents among the first ten of ${state.system}`),
    );
  }

  function drawRows() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MARGIN);
    const end = Math.min(view.order.length, first + Math.ceil(scroller.clientHeight / ROW) + 2 * MARGIN);
    rows.style.height = `${ROW * view.order.length}px`;
    const drawn = [];
    for (let i = first; i < end; i += 1) drawn.push(rowOf(i));
    rows.replaceChildren(...drawn);
    scroller.setAttribute("aria-activedescendant",
      view.current === null ? "" : `query-${collection.index}-${view.current}`);
  }

  function rowOf(i) {
    const { state } = store;
    const query = view.order[i];
    const [value, base, gain] = [
      collection.row(state.system, state.measure)[query],
      collection.base(state.system, state.measure)[query],
      view.gains[query],
    ];
    const size = `${50 * Math.min(1, Math.abs(gain) || 0)}%`;
    const side = gain < 0 ? { right: "50%", width: size } : { left: "50%", width: size };
    const title = collection.title(query);
    const unjudged = collection.unjudged(state.system)?.[query];
    return element("div", {
      class: `query-row${i === view.current ? " current" : ""}`, role: "option",
      id: `query-${collection.index}-${i}`, "aria-selected": String(i === view.current),
      "aria-setsize": view.order.length, "aria-posinset": i + 1, "data-query": collection.queries[query],
      style: { transform: `translateY(${i * ROW}px)` }, onclick: () => openAt(i),
    },
    element("span", { class: "query-title", title: collection.queries[query] }, isolated(title)),
    element("span", { class: "minor" }, collection.slices.type?.[query] ?? ""),
    element("span", { class: "number-cell" }, formatNumber(base)),
    element("span", { class: "number-cell" }, formatNumber(value)),
    element("span", { class: `number-cell ${gain < 0 ? "loss" : gain > 0 ? "gain" : "tie"}` },
      formatSigned(gain)),
    element("span", { class: "minor diverging", "aria-hidden": "true" },
      element("span", { class: gain < 0 ? "loss" : "gain", style: side })),
    element("span", { class: "minor number-cell", "data-unjudged": unjudged }, unjudged ?? ""));
  }

  function openAt(i) {
    moveTo(i);
    openQuery(view.order[i], store.state.system);
  }

  function moveTo(i) {
    if (!view.order.length) return;
    view.current = Math.max(0, Math.min(view.order.length - 1, i));
    const top = view.current * ROW;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    const end = top + ROW - scroller.clientHeight;
    if (end > scroller.scrollTop) scroller.scrollTop = end;
    store.set({ query: view.order[view.current] });
    drawRows();
  }

  /** To the next query that the system loses (sign -1) or wins (1); step -1 = the one before. */
  function moveToChange(sign, step) {
    const count = view.order.length;
    const start = view.current ?? (step > 0 ? -1 : count);
    for (let i = start + step; i >= 0 && i < count; i += step) {
      if (Math.sign(view.gains[view.order[i]]) === sign) return moveTo(i);
    }
    return undefined;
  }

  store.subscribe((state, changed) => {
    if (changed.size === 1 && changed.has("query")) {
      view.current = view.order.indexOf(state.query);
      if (view.current < 0) view.current = null;
      drawRows();
      return;
    }
    view.order = queryOrder(collection, state);
    view.gains = collection.gains(state.system, state.measure);
    const current = state.query === null ? -1 : view.order.indexOf(state.query);
    view.current = current < 0 ? null : current;
    scroller.style.height = `${ROW * Math.max(1, Math.min(MOST_ROWS, view.order.length))}px`;
    count.textContent = pluralize(view.order.length, "query");
    drawHead(state);
    drawRows();
  });
  scroller.addEventListener("scroll", () => requestAnimationFrame(drawRows));
  onResize(scroller, drawRows);
  scroller.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && view.current !== null) openAt(view.current);
  });
  const block = element(
    "section",
    { class: "view", "data-view": "queries" },
    element("h3", {}, "Queries ", count),
    element("div", { class: "controls" }, ends),
    element("div", { class: "query-table" }, head, scroller),
    understanding(collection.help.queries),
  );
  const open = () => view.current !== null && openQuery(view.order[view.current], store.state.system);
  return {
    block,
    move: (step) => moveTo(view.current === null ? 0 : view.current + step),
    moveToChange,
    open,
  };
}
