// Tables that stand in the page: sorted by a click on a heading.

import { button } from "./dom.js";

const NUMBER = /^[[+≤<>≥-]*\s*(-?[\d.,]+)/;

/** What a cell is sorted by: its number, else its text; empty cells come last. */
export function sortKey(text) {
  const plain = text.trim();
  if (!plain) return null;
  const match = plain.replace(/^\+/, "").match(/^-?[\d,]*\.?\d+/) ?? plain.match(NUMBER);
  if (match) return Number(match[0].replace(/[^\d.-]/g, ""));
  return plain.toLowerCase();
}

/** Whether a comes before (< 0) or after (> 0) b; null last in either direction. */
export function compareKeys(a, b, direction) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  if (a === b) return 0;
  return (a < b ? -1 : 1) * direction;
}

/** Mark the heading by which a table is sorted. */
export function markSorted(headings, sorted, direction) {
  for (const heading of headings) {
    if (heading === sorted) {
      heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    } else heading.removeAttribute("aria-sort");
  }
}

function sortRows(table, headings, heading) {
  const column = headings.indexOf(heading);
  const isNumber = heading.classList.contains("number-cell");
  const before = heading.getAttribute("aria-sort");
  const direction = before === null ? (isNumber ? -1 : 1) : before === "ascending" ? -1 : 1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, i) => [sortKey(row.cells[column].textContent), i, row]);
  rows.sort((a, b) => compareKeys(a[0], b[0], direction) || a[1] - b[1]);
  body.append(...rows.map(([, , row]) => row));
  markSorted(headings, heading, direction);
}

/** The button that shows all columns of a table, or its main ones alone, as at first. */
export function columnSwitch(table) {
  const label = (isAll) => (isAll ? "Show fewer columns" : "Show all columns");
  const show = (isAll) => {
    table.classList.toggle("all-columns", isAll);
    table.classList.toggle("main-columns", !isAll);
  };
  const toggle = button(label(false), () => {
    const isAll = table.classList.contains("main-columns");
    show(isAll);
    toggle.textContent = label(isAll);
  }, { class: "column-switch" });
  show(false);
  return toggle;
}

/** Make every plain table sortable; one of many columns begins with its main ones. */
export function enhanceTables() {
  for (const table of document.querySelectorAll("table.plain-table")) {
    if (table.tHead.querySelector(".extra")) table.parentElement.before(columnSwitch(table));
    const headings = [...table.tHead.rows[0].cells];
    const hasGaps = [...table.tBodies[0].rows].some((row) => !row.cells[0].textContent);
    if (hasGaps) continue; // rows belong to the one above
    for (const heading of headings) {
      const label = heading.textContent || "name";
      heading.replaceChildren(button(label, () => sortRows(table, headings, heading)));
    }
  }
}
