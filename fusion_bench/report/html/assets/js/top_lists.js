// The first ten documents of two systems side by side, with the terms of each score.

import { element, isolated } from "./dom.js";
import { formatTerm } from "./numbers.js";

/** Colors of terms; more terms than colors begin again. */
const COLORS = 8;

/** The block: the baseline's list and the chosen system's, as far as they are kept. */
export function topLists(collection, details, query, name) {
  const names = [...new Set([name, collection.baseline])];
  const lists = names.map((each) => [each, details.top(each, query)]);
  const ranks = new Map(lists.map(([each, rows]) => [each, new Map((rows ?? []).map((r) => [r.id, r.rank]))]));
  const columns = lists.map(([each, rows]) => {
    const other = names.find((candidate) => candidate !== each);
    const others = other && details.top(other, query) ? ranks.get(other) : null;
    return element("section", { class: "top-list", "data-top": each },
      element("h4", {}, isolated(each), each === collection.baseline ? " (the baseline)" : ""),
      rows === null ? missingNote(details) : topList(rows, others, other));
  });
  return element("section", { "data-block": "top" },
    element("h3", {}, "First ten documents, and why they stand there"),
    element("div", { class: "top-lists" }, columns));
}

function missingNote(details) {
  return element("p", { class: "note" },
    `Kept for ${details.detailed.join(", ")}. eval --detail NAME keeps those of another system.`);
}

function topList(rows, others, other) {
  if (!rows.length) return element("p", { class: "note" }, "No document is returned.");
  const greatest = Math.max(...rows.map(({ terms }) => span(terms)), 1e-300);
  const labels = new Map(rows.flatMap(({ terms }) => terms.map(({ label, index }) => [label, index])));
  return [
    element("p", { class: "term-legend" }, [...labels].map(([label, index]) =>
      element("span", {}, swatch(index), isolated(label)))),
    element("ol", {}, rows.map((row) => documentRow(row, greatest, others, other))),
  ];
}

function swatch(index) {
  return element("span", { class: `swatch term-${index % COLORS}`, "aria-hidden": "true" });
}

/** The length of a stacked bar: what adds and what takes away stand side by side. */
function span(terms) {
  return terms.reduce((sum, { value }) => sum + Math.abs(value), 0);
}

function documentRow(row, greatest, others, other) {
  return element("li", { "data-document": row.id, "data-grade": row.grade ?? "unjudged" },
    element("span", { class: "top-rank number-cell" }, row.rank),
    element("div", { class: "top-body" },
      element("div", { class: "top-head" },
        element("span", { class: "document-id" }, isolated(row.id)),
        element("span", { class: "top-score number-cell", "data-score": row.score }, formatTerm(row.score))),
      row.text && element("div", { class: "document-text", dir: "auto" }, row.text),
      element("div", { class: "top-facts" }, gradeOf(row.grade), moveOf(row, others, other), chunkOf(row)),
      termBar(row.terms, greatest)));
}

/** Relevant, not relevant, or unjudged: by a word, not by color alone. */
function gradeOf(grade) {
  if (grade === null) return element("span", { class: "grade grade-unjudged" }, "unjudged");
  if (grade > 0) return element("span", { class: "grade grade-relevant" }, `relevant, grade ${grade}`);
  return element("span", { class: "grade" }, "not relevant");
}

function moveOf(row, others, other) {
  if (others === null) return "";
  const rank = others.get(row.id);
  if (rank === undefined) return element("span", { class: "move" }, `${other}: not in its ten`);
  if (rank === row.rank) return "";
  return element("span", { class: "move" }, `${rank > row.rank ? "↑" : "↓"} ${other}: ${rank}`);
}

/** The chunk that stands for a document, or the document of a chunk that is kept. */
function chunkOf({ id, chunk }) {
  if (!chunk || (chunk.id === id && chunk.document === id)) return "";
  const { count } = chunk;
  const [title, name] = chunk.id === id
    ? [count === 1 ? "only chunk of" : `one of ${count} chunks of`, chunk.document]
    : [count === 1 ? "its chunk" : `best of ${count} chunks:`, chunk.id];
  return element("span", { class: "move", "data-chunk": chunk.id }, `${title} `, isolated(name));
}

function termBar(terms, greatest) {
  if (!terms.length) return "";
  const texts = terms.map(({ label, value }) => `${label} ${formatTerm(value)}`);
  const bar = element("div", { class: "term-bar", role: "img", "aria-label": texts.join(", ") },
    terms.map(({ index, label, value }) => element("span", {
      class: `term-${index % COLORS}${value < 0 ? " negative" : ""}`,
      title: `${label} ${formatTerm(value)}`, "data-term": label, "data-value": value,
      style: { width: `${(100 * Math.abs(value)) / greatest}%` },
    })));
  return [bar, element("div", { class: "term-text" }, texts.join(" + ").replaceAll("+ -", "− "))];
}
