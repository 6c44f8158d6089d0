// Keys: what they do, and the page that lists them.

import { button, element } from "./dom.js";

const HELP = [
  ["/", "filter the queries"],
  ["j k", "next and previous query"],
  ["n p", "next query that the system loses, that it wins; with Shift the one before"],
  ["Enter", "open the query"],
  ["Escape", "close"],
  ["s 1 2 … d w v", "sort the systems by the heading of that key"],
  ["?", "these keys"],
];

/** The dialog of keys, and the button that opens it. */
export function createHelp() {
  const dialog = element("dialog", { id: "keys", "aria-label": "Keys" },
    element("h2", {}, "Keys"),
    element("dl", {}, HELP.map(([keys, text]) => [
      element("dt", {}, keys.split(" ").map((key) => (key === "…" ? " … " : element("kbd", {}, key)))),
      element("dd", {}, text),
    ])),
    button("Close", () => dialog.close()));
  document.body.append(dialog);
  const open = () => (dialog.open ? dialog.close() : dialog.showModal());
  return { dialog, open, toggle: button("Keys ?", open, { id: "help" }) };
}

/** Call the action of a key, unless someone types into a field. */
export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches?.("input[type=search], select, textarea");
    if (isTyping && event.key === "Escape") event.target.blur();
    if (isTyping) return;
    const action = actions(event.key);
    if (action) {
      action();
      event.preventDefault();
    }
  });
}
