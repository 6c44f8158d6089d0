// One query: both lists side by side, and the terms that moved documents.

import { button, element, isolated } from "./dom.js";
import { formatTerm } from "./numbers.js";

/** So many moves stand above the lists; the others are folded. */
const SHOWN_MOVES = 8;

const number = (value) => (value === null ? "–" : String(value));

/** Opens and refreshes the details of a query. `fetchDetails(query, against)` asks the server. */
export class QueryDrawer {
  constructor(fetchDetails) {
    this.fetchDetails = fetchDetails;
    this.subject = null;
    this.title = element("h2", { id: "drawer-title", tabindex: "-1" });
    this.body = element("div");
    this.node = element("aside", {
      class: "panel drawer", "data-drawer": true, role: "dialog", "aria-labelledby": "drawer-title", hidden: true,
    },
    element("div", { class: "panel-tools" }, button("Close", () => this.close(), { class: "close", "data-action": "close" })),
    this.title, this.body);
    this.node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    document.body.append(this.node);
  }

  /** Open a query; focus goes there, and back when it is closed. */
  async open(query, against) {
    this.returnTo = query;
    this.subject = { query, against };
    await this.refresh();
    if (this.node.hidden) {
      this.node.hidden = false;
      this.title.focus();
    }
  }

  /** Ask again about the opened query, after the setting has changed. */
  async refresh() {
    const subject = this.subject;
    if (!subject) return;
    const details = await this.fetchDetails(subject.query, subject.against);
    if (this.subject === subject && details) this.show(details, subject.against);
  }

  close() {
    this.subject = null;
    this.node.hidden = true;
    document.querySelector(`#changes [data-query="${CSS.escape(this.returnTo)}"]`)?.focus();
  }

  show(details, against) {
    this.node.dataset.query = details.query;
    this.title.replaceChildren(isolated(details.text || details.query));
    const before = against === "previous" ? "The setting before" : "The baseline";
    this.body.replaceChildren(
      details.text ? element("p", { class: "note" }, isolated(details.query)) : "",
      element("h3", {}, "Documents that moved"),
      ...moveBlock(details.moves),
      element("div", { class: "list-pair" },
        documentList("before", before, details.before), documentList("after", "This setting", details.after)),
    );
  }
}

function moveBlock(moves) {
  if (!moves.length) return [element("p", { class: "note" }, "None moved.")];
  const rest = moves.slice(SHOWN_MOVES);
  const folded = rest.length
    ? element("details", { class: "more-moves" }, element("summary", {}, `${rest.length} more`), moveList(rest))
    : "";
  return [moveList(moves.slice(0, SHOWN_MOVES)), folded];
}

function moveList(moves) {
  return element("ul", { class: "move-list" }, moves.map((move) =>
    element("li", { "data-move": move.document },
      gradeMark(move.grade), " ", element("strong", {}, isolated(move.title || move.document)),
      ` ${number(move.before)} → ${number(move.after)}: `, isolated(move.cause))));
}

function gradeMark(grade) {
  if (grade === null) return element("span", { class: "grade" }, "unjudged");
  return element("span", { class: grade > 0 ? "grade gain" : "grade" }, `grade ${grade}`);
}

function documentList(name, title, documents) {
  const head = ["rank", "document", "other", "score"];
  return element("section", { "data-list": name, "aria-label": title },
    element("h3", {}, title),
    element("table", { class: "document-table" },
      element("thead", {}, element("tr", {}, head.map((text, i) =>
        element("th", { scope: "col", class: i === 3 ? "number-cell" : null, title: i === 2 ? "Rank in the other list" : null }, text)))),
      element("tbody", {}, documents.map(documentRow))));
}

function documentRow(each) {
  const terms = Object.entries(each.terms).map(([label, value]) =>
    element("li", {}, isolated(label), ` ${formatTerm(value)}`));
  return element("tr", {
    class: each.grade > 0 ? "relevant" : null, "data-document": each.document,
  },
  element("td", {}, String(each.rank)),
  element("td", {},
    element("details", {}, element("summary", {}, isolated(each.document), " ", gradeMark(each.grade)),
      element("ul", { class: "terms" }, terms)),
    each.title ? element("span", { class: "title" }, isolated(each.title)) : null),
  element("td", {}, number(each.other_rank)),
  element("td", { class: "number-cell" }, formatTerm(each.score)));
}
