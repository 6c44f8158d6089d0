// One query: its text, the value of every system, its documents.

import { button, element, isolated } from "./dom.js";
import { formatNumber, formatSigned } from "./numbers.js";
import { relevantTable } from "./relevant_table.js";
import { topLists } from "./top_lists.js";

/** The panel beside the page; one for all collections. */
export function createPanel(onclose) {
  const body = element("div", { class: "panel-body" });
  const panel = element("aside", {
    id: "query-panel", class: "panel", hidden: true, tabindex: "-1", "aria-label": "Query",
  }, body);
  let opener = null;
  document.body.append(panel);
  function close() {
    if (panel.hidden) return false;
    panel.hidden = true;
    opener?.focus?.();
    onclose();
    return true;
  }
  return {
    close,
    isOpen: () => !panel.hidden,
    open(collection, query, name, moves) {
      if (panel.hidden) opener = document.activeElement;
      body.replaceChildren(...contentOf(collection, query, name, { ...moves, close }));
      panel.dataset.query = collection.queries[query];
      if (panel.hidden) {
        panel.hidden = false;
        panel.focus({ preventScroll: true });
      }
      panel.scrollTop = 0;
    },
  };
}

function contentOf(collection, query, name, moves) {
  const id = collection.queries[query];
  const text = collection.texts?.[query];
  const slices = Object.entries(collection.slices)
    .filter(([, values]) => values[query] !== null)
    .map(([field, values]) => element("span", { class: "chip" }, `${field}: `, isolated(values[query])));
  return [
    element("div", { class: "panel-tools" },
      button("‹ Previous", moves.previous, { title: "Previous query (k)" }),
      button("Next ›", moves.next, { title: "Next query (j)" }),
      button("Close", moves.close, { class: "close", title: "Close (Escape)" })),
    element("h2", { dir: "auto" }, text || id),
    element("p", { class: "chips" }, text && element("span", { class: "chip" }, isolated(id)), slices),
    ...documentsOf(collection, query, name),
    element("h3", {}, "Values of all systems"),
    ...collection.measures.map((measure, i) => valuesOf(collection, query, name, i)),
  ];
}

function documentsOf(collection, query, name) {
  const { details } = collection;
  if (details === null) return [];
  const unjudged = unjudgedOf(collection, query, name);
  if (!details.isKept(query)) {
    return [unjudged, element("p", { class: "note" },
      `This page keeps the documents of the ${details.keptCount} queries on which the systems differ most.`)];
  }
  return [unjudged, relevantTable(collection, details, query, name),
    topLists(collection, details, query, name)];
}

/** How many of the first ten documents nobody judged. */
function unjudgedOf(collection, query, name) {
  const names = [...new Set([name, collection.baseline])].filter((each) => collection.unjudged(each));
  return element("p", { class: "note", "data-block": "unjudged" },
    "Unjudged among the first ten, and counted as not relevant: ",
    names.map((each, i) => [i ? ", " : "", isolated(each), ` ${collection.unjudged(each)[query]}`]), ".");
}

/** The systems by their value on this query; the chosen one and the baseline are marked. */
function valuesOf(collection, query, name, measure) {
  const baseOf = (each) => collection.base(each, measure)[query];
  const isBaseline = (each) => !collection.isChange && each === collection.baseline;
  const rows = collection.systems
    .map((system) => ({
      system, value: collection.row(system.name, measure)[query], base: baseOf(system.name),
    }))
    .sort((a, b) => (Number.isNaN(a.value) - Number.isNaN(b.value)) || b.value - a.value);
  const list = element("ol", { class: "value-list" }, rows.map(({ system, value, base }) => {
    const kinds = [system.name === name && "chosen", isBaseline(system.name) && "baseline",
      system.kind !== "system" && "bound"].filter(Boolean);
    return element("li", { class: kinds.join(" ") || null, "data-system": system.name },
      element("span", { class: "value-name" }, isolated(system.name)),
      element("span", { class: "value-track", "aria-hidden": "true" },
        element("span", { style: { width: `${100 * Math.max(0, Math.min(1, value || 0))}%` } })),
      element("span", { class: "number-cell" }, formatNumber(value)),
      element("span", { class: `number-cell ${value < base ? "loss" : value > base ? "gain" : "tie"}` },
        isBaseline(system.name) ? "" : formatSigned(value - base)));
  }));
  const chosen = collection.row(name, measure)[query];
  return element("details", { open: measure === 0, class: "values" },
    element("summary", {}, `${collection.measure_titles[measure]}: `, isolated(name),
      ` ${formatNumber(chosen)}, ${collection.baseWord} ${formatNumber(baseOf(name))}`),
    list);
}
