// The queries that won and lost, against the baseline or against the setting before.

import { button, element, isolated } from "./dom.js";
import { formatCount, formatNumber, pluralize } from "./numbers.js";

const TITLES = { baseline: "Against the baseline", previous: "Against the setting before" };

/** `onOpen(query, against)` opens a query; against is "baseline" or "previous". */
export class ChangeLists {
  constructor(node, onOpen) {
    this.node = node;
    this.onOpen = onOpen;
    this.against = "baseline";
    this.answer = null;
  }

  /** Show the changes of an answer. */
  show(answer) {
    this.answer = answer;
    const changes = answer[this.against];
    const focused = this.node.contains(document.activeElement)
      ? document.activeElement.dataset.query ?? document.activeElement.dataset.against : null;
    this.node.replaceChildren(
      element("h2", {}, "Queries that won and lost"),
      element("div", { class: "controls" }, this.makeTabs()),
      changes ? this.makeLists(changes)
        : element("p", { class: "note" }, "There is no setting before this one yet: move a control."),
    );
    if (focused) {
      this.node.querySelector(`[data-query="${CSS.escape(focused)}"], [data-against="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  makeTabs() {
    return element("div", { class: "segments", role: "group", "aria-label": "Compared with" },
      Object.entries(TITLES).map(([against, title]) => button(title, () => {
        this.against = against;
        this.show(this.answer);
      }, { "aria-pressed": String(against === this.against), "data-against": against })));
  }

  makeLists(changes) {
    const { better, same, worse } = changes;
    return element("div", { "data-changes": this.against },
      element("p", { class: "note" },
        `${pluralize(better, "query")} better, ${formatCount(worse)} worse, ${formatCount(same)} the same.`),
      element("div", { class: "change-columns" },
        this.makeList("won", "Won most", changes.won), this.makeList("lost", "Lost most", changes.lost)));
  }

  makeList(kind, title, queries) {
    const items = queries.map((each) => element("li", {},
      button([
        element("span", { class: "query-name" }, isolated(each.text || each.query)),
        element("span", { class: "values-text" }, `${formatNumber(each.before)} → ${formatNumber(each.after)}`),
      ], () => this.onOpen(each.query, this.against), { "data-query": each.query, title: each.query })));
    return element("div", { class: kind, [`data-${kind}`]: true },
      element("h3", {}, title),
      items.length ? element("ul", { class: "query-list" }, items) : element("p", { class: "note" }, "None."));
  }
}
