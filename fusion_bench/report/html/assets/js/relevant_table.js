// The relevant documents of a query with their rank in every source and system.

import { button, element, isolated } from "./dom.js";
import { formatCount } from "./numbers.js";

/** So many documents are shown before one asks for more. */
const SHOWN = 10;

function rankCell(rank) {
  if (!rank) return element("td", { class: "number-cell rank-none", title: "not returned" }, "–");
  const kind = rank === 1 ? "rank-first" : rank <= 10 ? "rank-top" : "rank-low";
  return element("td", { class: `number-cell ${kind}` }, formatCount(rank));
}

/** A document: its id, and its text where it is known. */
function documentText(document) {
  return [
    element("span", { class: "document-id" }, isolated(document.id)),
    document.text && element("span", { class: "document-text", dir: "auto" }, document.text),
  ];
}

/** By grade, then by rank in the chosen system; those that it does not return come last. */
function inOrder(documents, system) {
  const rankOf = ({ systemRanks }) => systemRanks[system] || Infinity;
  const order = (a, b) => Math.sign(rankOf(a) - rankOf(b)) || 0; // both infinite: as they were
  return documents.sort((a, b) => b.grade - a.grade || order(a, b));
}

/** The block: ranks in the sources, the baseline and the chosen system; on demand in all. */
export function relevantTable(collection, details, query, name) {
  const documents = inOrder(details.relevant(query), details.systems.indexOf(name));
  const block = element("section", { "data-block": "relevant" });
  const positions = [...new Set([collection.baseline, name])].map((each) => details.systems.indexOf(each));
  let isWhole = false;
  const heading = (text, kind) =>
    element("th", { scope: "col", class: `number-cell ${kind}` }, isolated(text));

  function draw() {
    const shown = isWhole ? documents : documents.slice(0, SHOWN);
    block.replaceChildren(
      element("h3", {}, `Relevant documents: ${formatCount(documents.length)}`),
      element("div", { class: "scroll" }, element("table", { class: "rank-table" },
        element("thead", {}, element("tr", {},
          element("th", { scope: "col" }, "document"),
          element("th", { scope: "col", class: "number-cell" }, "grade"),
          details.sources.map((source) => heading(source, "source-column")),
          positions.map((i) => heading(details.systems[i], "system-column")))),
        element("tbody", {}, shown.map((document) =>
          element("tr", { "data-document": document.id },
            element("th", { scope: "row" }, documentText(document)),
            element("td", { class: "number-cell" }, document.grade),
            document.sourceRanks.map(rankCell),
            positions.map((i) => rankCell(document.systemRanks[i]))))))),
      shown.length < documents.length
        ? button(`Show all ${formatCount(documents.length)}`, () => {
          isWhole = true;
          draw();
        }, { class: "more" })
        : "",
      allSystems(details, shown),
    );
  }

  draw();
  return block;
}

/** Systems × documents. */
function allSystems(details, documents) {
  if (!documents.length) return element("p", { class: "note" }, "No document is judged relevant.");
  const whole = element("details", { class: "all-systems" },
    element("summary", {}, "Ranks in every system"));
  whole.addEventListener("toggle", () => {
    if (whole.open && whole.children.length === 1) whole.append(systemsTable(details, documents));
  });
  return whole;
}

function systemsTable(details, documents) {
  return element("div", { class: "scroll" }, element("table", { class: "rank-table" },
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "system"),
      documents.map(({ id }) => element("th", { scope: "col", class: "number-cell" }, isolated(id))))),
    element("tbody", {}, details.systems.map((system, i) =>
      element("tr", { "data-system": system },
        element("th", { scope: "row" }, isolated(system)),
        documents.map(({ systemRanks }) => rankCell(systemRanks[i])))))));
}
