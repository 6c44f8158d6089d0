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
/** Key → rows down and columns to the right. */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The block; its cursor and the store's query are one. */
export function heatmapView(collection, store, openQuery) {
  const map = new HeatMap(collection, store, openQuery);
  return element("section", { class: "view", "data-view": "heat", id: `heat-${collection.index}` },
    element("h3", {}, collection.isChange ? "Every changed system on every query" : "Every system on every query"),
    element("div", { class: "controls" }, scaleButtons(map), legend()),
    element("div", { class: "heat" }, map.labels, map.scroller),
    map.status,
    understanding(collection.help.heat));
}

function scaleButtons(map) {
  return element("div", { class: "segments", role: "group", "aria-label": "Size" },
    SCALES.map(([scale, label]) => button(label, (event) => {
      for (const each of event.target.parentNode.children) {
        each.setAttribute("aria-pressed", String(each === event.target));
      }
      map.setScale(scale);
    }, { "aria-pressed": String(scale === map.scale) })));
}

function legend() {
  return element("span", { class: "heat-legend" }, "−1 worse",
    element("span", { class: "heat-scale", "aria-hidden": "true" }), "+1 better");
}

class HeatMap {
  constructor(collection, store, openQuery) {
    Object.assign(this, { collection, store, openQuery });
    this.systems = collection.competitors;
    this.order = [];
    this.values = [];
    this.scale = "fit";
    this.size = 1; // pixels of a column
    this.row = 0;
    this.column = null; // no cell has the cursor yet
    this.makeNodes();
    this.listen();
    store.subscribe((state, changed) => this.update(state, changed));
  }

  makeNodes() {
    const status = `heat-status-${this.collection.index}`;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.cursor = element("div", { class: "heat-cursor", hidden: true });
    this.runs = element("div", { class: "heat-runs" });
    this.spacer = element("div", { class: "heat-spacer" }, this.canvas, this.cursor);
    this.scroller = element("div",
      { class: "heat-scroller", tabindex: "0", role: "application",
        "aria-label": "Heat map. Arrow keys move over systems and queries, Enter opens a query.",
        "aria-describedby": status },
      this.runs, this.spacer);
    this.status = element("p", { class: "heat-status", id: status, "aria-live": "polite" });
    this.labels = element("div", { class: "heat-labels" });
  }

  listen() {
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    this.scroller.addEventListener("scroll", () => requestAnimationFrame(() => this.paint()));
    this.spacer.addEventListener("pointermove", (event) => this.pointAt(event));
    this.spacer.addEventListener("click", (event) => {
      this.pointAt(event);
      this.openCell();
    });
    onResize(this.scroller, () => this.draw());
    window.addEventListener("themechange", () => this.paint());
  }

  onKey(event) {
    if (MOVES[event.key]) {
      const [down, right] = MOVES[event.key];
      const step = event.shiftKey ? 10 : 1;
      this.moveTo(this.row + down, (this.column ?? -right) + right * step);
    } else if (event.key === "Enter" && this.column !== null) this.openCell();
    else return;
    event.preventDefault();
  }

  openCell() {
    this.openQuery(this.order[this.column], this.systems[this.row].name);
  }

  /** Put the cursor below the pointer. */
  pointAt(event) {
    const place = this.canvas.getBoundingClientRect();
    const x = event.clientX - place.left + this.scroller.scrollLeft;
    this.setCell(Math.floor((event.clientY - place.top) / ROW), Math.floor(x / this.size));
    this.placeCursor();
  }

  /** Put the cursor on a cell, and scroll to it. */
  moveTo(row, column) {
    this.setCell(row, column);
    const { scroller } = this;
    const x = this.column * this.size;
    if (x < scroller.scrollLeft) scroller.scrollLeft = x;
    const end = x + this.size - scroller.clientWidth;
    if (end > scroller.scrollLeft) scroller.scrollLeft = end;
    this.placeCursor();
  }

  /** The cell, or the nearest one that there is. */
  setCell(row, column) {
    this.row = Math.max(0, Math.min(this.systems.length - 1, row));
    this.column = Math.max(0, Math.min(this.order.length - 1, column));
  }

  setScale(scale) {
    this.scale = scale;
    this.draw();
  }

  update(state, changed) {
    if (changed.has("query") && changed.size === 1) {
      const column = this.order.indexOf(state.query);
      if (column >= 0) this.moveTo(this.row, column);
      return;
    }
    this.order = queryOrder(this.collection, state);
    this.values = this.systems.map(({ name }) => this.collection.gains(name, state.measure));
    if (this.column >= this.order.length) this.column = null;
    this.drawLabels(state);
    this.runs.hidden = state.slice.length !== 1;
    this.draw();
  }

  draw() {
    this.paint();
    this.drawRuns();
  }

  paint() {
    const { canvas, order, scroller, spacer } = this;
    const ratio = window.devicePixelRatio || 1;
    const room = scroller.clientWidth;
    this.size = this.scale === "fit" ? (room || 1) / Math.max(1, order.length) : Number(this.scale);
    if (!room || !order.length) return;
    const height = `${ROW * this.systems.length}px`;
    const left = scroller.scrollLeft;
    Object.assign(spacer.style, { width: `${Math.max(room, this.size * order.length)}px`, height });
    paintCells(canvas, {
      rows: this.values, order, first: left / this.size, size: this.size * ratio,
      width: Math.round(room * ratio), rowHeight: Math.round(ROW * ratio), colorOf: differenceColors(),
    });
    Object.assign(canvas.style, { width: `${room}px`, height, transform: `translateX(${left}px)` });
    this.placeCursor();
  }

  placeCursor() {
    const isShown = this.column !== null && this.column < this.order.length;
    this.cursor.hidden = !isShown;
    if (!isShown) {
      this.status.textContent = `${pluralize(this.order.length, "query")}, ` +
        `${describeOrder(this.collection, this.store.state)}.`;
      return;
    }
    Object.assign(this.cursor.style, {
      left: `${this.column * this.size}px`, top: `${this.row * ROW}px`,
      width: `${Math.max(3, this.size)}px`, height: `${ROW}px`,
    });
    this.describe(this.order[this.column], this.systems[this.row].name);
  }

  describe(query, name) {
    const { collection } = this;
    const { measure } = this.store.state;
    const [value, base] = [collection.row(name, measure)[query], collection.base(name, measure)[query]];
    this.status.replaceChildren(
      element("b", {}, isolated(collection.title(query))), " · ", isolated(name), " ",
      formatNumber(value), `, ${collection.baseWord} `, formatNumber(base), ": ",
      element("b", {}, formatSigned(value - base)),
    );
  }

  drawRuns() {
    this.runs.replaceChildren(
      ...sliceRuns(this.collection, this.store.state, this.order).map(([first, end, value]) =>
        element("span", { class: "heat-run", title: `${value ?? "none"}: ${pluralize(end - first, "query")}`,
          style: { left: `${first * this.size}px`, width: `${(end - first) * this.size}px` } },
        value ?? "none")),
    );
  }

  drawLabels(state) {
    this.labels.replaceChildren(
      ...this.systems.map(({ name }) =>
        button(isolated(name), () => this.store.set({ system: name, sort: "gain" }), {
          class: name === state.system ? "chosen" : null,
          title: `Order the queries by the gain of ${name}`,
          "aria-pressed": String(name === state.system),
        })),
    );
  }
}
