// The heat map: systems × queries, colored by the difference from the baseline.

import { button, element, isolated, onResize, understanding } from "./dom.js";
import { differenceColors } from "./heat_colors.js";
import { paintCells } from "./heat_paint.js";
import { formatNumber, formatSigned, pluralize } from "./numbers.js";
import { describeOrder, queryOrder, sliceRuns } from "./order.js";

const ROW = 16;
const SCALES = [
  ["fit", "Whole collection"],
  ["6", "Enlarged"],
  ["16", "Single queries"],
];

/** The block; its cursor and the store's query are one. */
export function heatmapView(collection, store, openQuery) {
  const systems = collection.competitors;
  const canvas = element("canvas", { "aria-hidden": "true" });
  const cursor = element("div", { class: "heat-cursor", hidden: true });
  const runs = element("div", { class: "heat-runs" });
  const spacer = element("div", { class: "heat-spacer" }, canvas, cursor);
  const scroller = element(
    "div",
    { class: "heat-scroller", tabindex: "0", role: "application",
      "aria-label": "Heat map. Arrow keys move over systems and queries, Enter opens a query.",
      "aria-describedby": `heat-status-${collection.index}` },
    runs,
    spacer,
  );
  const status = element("p", { class: "heat-status", id: `heat-status-${collection.index}`,
    "aria-live": "polite" });
  const labels = element("div", { class: "heat-labels" });
  const view = { order: [], rows: [], scale: "fit", row: 0, column: null, size: 1 };

  function cellSize() {
    const room = scroller.clientWidth || 1;
    return view.scale === "fit" ? room / Math.max(1, view.order.length) : Number(view.scale);
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    view.size = cellSize();
    const room = scroller.clientWidth;
    if (!room || !view.order.length) return;
    spacer.style.width = `${Math.max(room, view.size * view.order.length)}px`;
    spacer.style.height = `${ROW * systems.length}px`;
    const left = scroller.scrollLeft;
    paintCells(canvas, {
      rows: view.rows, order: view.order, first: left / view.size, size: view.size * ratio,
      width: Math.round(room * ratio), rowHeight: Math.round(ROW * ratio), colorOf: differenceColors(),
    });
    Object.assign(canvas.style, { width: `${room}px`, height: `${ROW * systems.length}px`,
      transform: `translateX(${left}px)` });
    placeCursor();
  }

  function placeCursor() {
    const isShown = view.column !== null && view.column < view.order.length;
    cursor.hidden = !isShown;
    if (!isShown) {
      status.textContent = `${pluralize(view.order.length, "query")}, ${describeOrder(collection, store.state)}.`;
      return;
    }
    Object.assign(cursor.style, {
      left: `${view.column * view.size}px`, top: `${view.row * ROW}px`,
      width: `${Math.max(3, view.size)}px`, height: `${ROW}px`,
    });
    describe(view.order[view.column], systems[view.row].name);
  }

  function describe(query, name) {
    const { measure } = store.state;
    const [value, base] = [collection.row(name, measure)[query], collection.base(name, measure)[query]];
    status.replaceChildren(
      element("b", {}, isolated(collection.title(query))), " · ", isolated(name), " ",
      formatNumber(value), `, ${collection.baseWord} `, formatNumber(base), ": ",
      element("b", {}, formatSigned(value - base)),
    );
  }

  function moveTo(row, column) {
    view.row = Math.max(0, Math.min(systems.length - 1, row));
    view.column = Math.max(0, Math.min(view.order.length - 1, column));
    const x = view.column * view.size;
    if (x < scroller.scrollLeft) scroller.scrollLeft = x;
    const end = x + view.size - scroller.clientWidth;
    if (end > scroller.scrollLeft) scroller.scrollLeft = end;
    placeCursor();
  }

  function cellAt(event) {
    const place = canvas.getBoundingClientRect();
    const x = event.clientX - place.left + scroller.scrollLeft;
    return [Math.floor((event.clientY - place.top) / ROW), Math.floor(x / view.size)];
  }

  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  scroller.addEventListener("keydown", (event) => {
    if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const step = event.shiftKey ? 10 : 1;
      moveTo(view.row + down, (view.column ?? -right) + right * step);
      event.preventDefault();
    } else if (event.key === "Enter" && view.column !== null) {
      openQuery(view.order[view.column], systems[view.row].name);
      event.preventDefault();
    }
  });
  scroller.addEventListener("scroll", () => requestAnimationFrame(paint));
  spacer.addEventListener("pointermove", (event) => moveCursor(event));
  spacer.addEventListener("click", (event) => {
    moveCursor(event);
    openQuery(view.order[view.column], systems[view.row].name);
  });
  function moveCursor(event) {
    const [row, column] = cellAt(event);
    view.row = Math.max(0, Math.min(systems.length - 1, row));
    view.column = Math.max(0, Math.min(view.order.length - 1, column));
    placeCursor();
  }

  function drawRuns(order, state) {
    runs.replaceChildren(
      ...sliceRuns(collection, state, order).map(([first, end, value]) =>
        element("span", { class: "heat-run", title: `${value ?? "none"}: ${pluralize(end - first, "query")}`,
          style: { left: `${first * view.size}px`, width: `${(end - first) * view.size}px` } },
          value ?? "none"),
      ),
    );
  }

  function drawLabels(state) {
    labels.replaceChildren(
      ...systems.map(({ name }) =>
        button(isolated(name), () => store.set({ system: name, sort: "gain" }), {
          class: name === state.system ? "chosen" : null,
          title: `Order the queries by the gain of ${name}`,
          "aria-pressed": String(name === state.system),
        }),
      ),
    );
  }

  function update(state, changed) {
    if (changed.has("query") && changed.size === 1) {
      const column = view.order.indexOf(state.query);
      if (column >= 0) moveTo(view.row, column);
      return;
    }
    view.order = queryOrder(collection, state);
    view.rows = systems.map(({ name }) => collection.gains(name, state.measure));
    if (view.column >= view.order.length) view.column = null;
    drawLabels(state);
    runs.hidden = state.slice.length !== 1;
    paint();
    drawRuns(view.order, state);
  }

  onResize(scroller, () => {
    paint();
    drawRuns(view.order, store.state);
  });
  window.addEventListener("themechange", paint);
  const scales = element("div", { class: "segments", role: "group", "aria-label": "Size" },
    SCALES.map(([scale, label]) => button(label, (event) => {
      view.scale = scale;
      for (const each of event.target.parentNode.children) {
        each.setAttribute("aria-pressed", String(each === event.target));
      }
      paint();
      drawRuns(view.order, store.state);
    }, { "aria-pressed": String(scale === view.scale) })));
  store.subscribe(update);
  return element(
    "section",
    { class: "view", "data-view": "heat", id: `heat-${collection.index}` },
    element("h3", {}, collection.isChange ? "Every changed system on every query" : "Every system on every query"),
    element("div", { class: "controls" }, scales, legend()),
    element("div", { class: "heat" }, labels, scroller),
    status,
    understanding(collection.help.heat),
  );
}

function legend() {
  return element("span", { class: "heat-legend" }, "−1 worse",
    element("span", { class: "heat-scale", "aria-hidden": "true" }), "+1 better");
}
