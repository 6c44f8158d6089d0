// Puts the views into the page.

import { checksView } from "./checks.js";
import { Collection, createStore, readData } from "./data.js";
import { drawPictures, element } from "./dom.js";
import { forestView } from "./forest.js";
import { heatmapView } from "./heatmap.js";
import { createHelp, listenToKeys } from "./keys.js";
import { queriesView, queryControls } from "./queries.js";
import { createPanel } from "./query_panel.js";
import { sourcesView } from "./sources.js";
import { systemsView } from "./systems.js";
import { enhanceTables } from "./tables.js";
import { themeButton } from "./theme.js";
import { mountTuning } from "./tuning.js";

/** The views of one collection, in its place in the page. */
function mountCollection(data, index, panel) {
  const place = document.querySelector(`[data-views="collection ${index}"]`);
  if (place === null) return null;
  const collection = new Collection(data, index);
  const store = createStore({
    system: firstSystem(collection), measure: 0, slice: [], filter: "", sort: "gain", direction: -1,
    query: null,
  });
  const openQuery = (query, name) => {
    store.set({ query, system: name });
    showAddress(index, collection.queries[query]);
    panel.open(collection, query, name, {
      next: () => moveOpened(1),
      previous: () => moveOpened(-1),
    });
  };
  const systems = systemsView(collection, store);
  const queries = queriesView(collection, store, openQuery);
  const moveOpened = (step) => {
    queries.move(step);
    if (panel.isOpen()) queries.open();
  };
  place.append(systems.block);
  const forest = forestView(collection, store);
  if (forest) place.append(forest);
  place.append(queryControls(collection, store), heatmapView(collection, store, openQuery), queries.block);
  const sources = collection.details && sourcesView(collection, collection.details);
  if (sources) place.append(sources);
  foldTables(place);
  const openId = (id) => {
    const query = collection.queries.indexOf(id);
    if (query >= 0) openQuery(query, store.state.system);
  };
  return { collection, place, systems, queries, moveOpened, openId };
}

/** The tables say what the views show: on demand only. */
function foldTables(place) {
  const tables = place.parentElement.querySelector(":scope > details.all-tables");
  if (!tables) return;
  tables.open = false;
}

/** On paper nothing can be unfolded, so all tables and warnings are; afterwards as before. */
function unfoldForPrint() {
  let folded = [];
  window.addEventListener("beforeprint", () => {
    const parts = document.querySelectorAll("details.all-tables, .warnings details, details.lint");
    folded = [...parts].filter(({ open }) => !open);
    for (const each of folded) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
}

/** The address names the query that is open; empty = none. */
function showAddress(index, id) {
  const hash = id === undefined ? "" : `#query=${index}:${encodeURIComponent(id)}`;
  try {
    history.replaceState(null, "", hash || location.pathname + location.search);
  } catch {
    // a page inside a notebook has no address
  }
}

/** Open the query that the address names. */
function openAddress(views) {
  const match = location.hash.match(/^#query=(\d+):(.*)$/);
  if (match) views.find(({ collection }) => collection.index === Number(match[1]))?.openId(decodeURIComponent(match[2]));
}

/** The system whose queries are shown first: the best one, or of no gain the highest mean. */
function firstSystem(collection) {
  if (collection.isChange || collection.best !== collection.baseline) return collection.best;
  const other = collection.competitors.find(({ name }) => name !== collection.baseline);
  return (other ?? collection.competitors[0]).name;
}

/** The collection that keys act on: the one that is seen. */
function currentView(views) {
  const middle = window.innerHeight / 2;
  const isSeen = ({ place }) => place.getBoundingClientRect().bottom > middle;
  return views.find(isSeen) ?? views.at(-1);
}

function actionsOf(views, panel, help) {
  return (key) => {
    const view = currentView(views);
    if (key === "?") return help.open;
    if (key === "Escape") return panel.isOpen() ? panel.close : null;
    if (!view) return null;
    const { queries, systems, place } = view;
    const change = (sign, step) => () => {
      queries.moveToChange(sign, step);
      if (panel.isOpen()) queries.open();
    };
    const isFree = document.activeElement === document.body; // no button that Enter presses
    const actions = {
      ...(isFree ? { Enter: queries.open } : {}),
      "/": () => place.querySelector("[data-filter]").focus(),
      j: () => view.moveOpened(1),
      k: () => view.moveOpened(-1),
      n: change(-1, 1),
      N: change(-1, -1),
      p: change(1, 1),
      P: change(1, -1),
      ...systems.keys,
    };
    return Object.hasOwn(actions, key) ? actions[key] : null;
  };
}

async function start() {
  const tools = document.getElementById("page-tools");
  const help = createHelp();
  tools.append(help.toggle, themeButton());
  tools.hidden = false;
  enhanceTables();
  unfoldForPrint();
  const panel = createPanel(() => showAddress());
  let data = null;
  try {
    data = await readData();
  } catch (error) {
    document.getElementById("main").prepend(
      element("p", { class: "warnings" }, `The data of this page cannot be read: ${error}`),
    );
  }
  if (data?.kind === "tuning") mountTuning(data);
  const views = (data?.collections ?? [])
    .map((collection, i) => mountCollection({ ...collection, alpha: data.alpha }, i, panel))
    .filter(Boolean);
  if (data?.checks?.length) document.querySelector('[data-views="checks"]')?.append(checksView(data));
  drawPictures();
  listenToKeys(actionsOf(views, panel, help));
  openAddress(views);
  document.documentElement.dataset.ready = "true";
}

start();
