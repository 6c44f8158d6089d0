// The dialogs: a look at the held-out queries, and the setting as an experiment.

import { ServerError, request } from "./api.js";
import { button, element, isolated } from "./dom.js";
import { formatCount } from "./numbers.js";

function makeDialog(name, title) {
  const body = element("div");
  const dialog = element("dialog", {
    class: "console-dialog", "data-dialog": name, "aria-labelledby": `${name}-title`,
  }, element("h2", { id: `${name}-title` }, title), body);
  document.body.append(dialog);
  return { dialog, body, close: button("Close", () => dialog.close(), { "data-action": "close-dialog" }) };
}

/** Copies a text; where a browser does not allow that, it is selected. */
async function copyText(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return false;
  }
}

/** Asks the held-out queries, after a confirmation. */
export class VerdictDialog {
  constructor(setup) {
    this.setup = setup;
    this.parts = makeDialog("verdict", "Ask the held-out queries");
  }

  open(setting) {
    const { dialog, body, close } = this.parts;
    const { held_out: count, baseline } = this.setup;
    const confirm = button("Spend a look", () => this.ask(setting, confirm), { class: "main-action", "data-confirm": true });
    body.replaceChildren(
      element("p", {}, `Tests this setting against the baseline `, isolated(baseline),
        ` on the ${formatCount(count)} held-out queries, as fusion-bench tune does.`),
      element("p", {}, element("strong", {}, "This spends a look."), " The ledger counts it, and each further",
        " look is tested at a smaller level. Ask when you would ship the setting, not to choose among settings."),
      element("div", { class: "dialog-buttons" }, confirm, close));
    dialog.showModal();
  }

  async ask(setting, confirm) {
    const { body, close } = this.parts;
    confirm.disabled = true;
    confirm.textContent = "Asking …";
    let lines;
    try {
      const answer = await request("/api/verdict", { setting, confirm: true });
      lines = [
        element("p", { class: "headline", "data-result": answer.verdict }, isolated(answer.text)),
        element("p", {}, answer.look),
        answer.unjudged ? element("p", { class: "note" }, isolated(answer.unjudged)) : null,
      ];
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      lines = [element("p", { class: "warnings", role: "alert", "data-result": "error" }, error.message)];
    }
    body.replaceChildren(...lines.filter(Boolean), element("div", { class: "dialog-buttons" }, close));
    close.focus();
  }
}

/** Writes the setting as an experiment, and shows the commands that go on from it. */
export class SaveDialog {
  constructor() {
    this.parts = makeDialog("save", "Save as experiment");
    this.name = element("input", {
      id: "save-name", required: true, maxlength: 64, pattern: "[A-Za-z0-9][A-Za-z0-9_\\-]*",
      autocomplete: "off", value: "console",
    });
    this.result = element("div", { role: "status" });
  }

  open(setting, title = "Save as experiment") {
    const { dialog, body, close } = this.parts;
    dialog.querySelector("h2").textContent = title;
    const save = button("Save", () => this.send(setting, { write: true }), { class: "main-action", "data-action": "save-file" });
    this.replace = button("Replace the file", () => this.send(setting, { write: true, overwrite: true }),
      { hidden: true, "data-action": "replace-file" });
    this.result.replaceChildren();
    body.replaceChildren(
      element("div", { class: "dialog-field" },
        element("label", { for: "save-name" }, "Name of the file, without .yaml"), this.name),
      this.result, element("div", { class: "dialog-buttons" }, save, this.replace, close));
    this.name.oninput = () => { this.replace.hidden = true; };
    this.name.onchange = () => this.send(setting, { write: false });
    dialog.showModal();
    this.send(setting, { write: false });
  }

  async send(setting, options) {
    if (!this.name.reportValidity()) return;
    try {
      const answer = await request("/api/save", { setting, name: this.name.value, ...options });
      this.replace.hidden = true;
      this.show(answer);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      this.replace.hidden = error.status !== 409;
      this.result.replaceChildren(element("p", { class: "warnings", role: "alert", "data-result": "error" }, error.message));
    }
  }

  show(answer) {
    const prefix = answer.is_written ? "Written: " : "Will be written: ";
    this.result.replaceChildren(
      element("p", { "data-result": answer.is_written ? "written" : "preview" }, prefix, element("code", {}, answer.file)),
      element("h3", {}, answer.is_written ? "Go on from here" : "After saving, go on from here"),
      element("div", {}, Object.values(answer.commands).map((text) => this.makeCommand(text))),
      element("details", {}, element("summary", {}, "The file"), element("pre", { tabindex: "0" }, answer.yaml)));
  }

  makeCommand(text) {
    const code = element("code", { "data-command": true }, text);
    return element("div", { class: "command" }, code,
      button("Copy", async (event) => {
        if (await copyText(text, code)) event.target.textContent = "Copied";
      }));
  }
}

/** Copies the address of the page. */
export async function shareAddress(say) {
  const shown = element("span", {}, location.href);
  say((await copyText(location.href, shown)) ? "The address is copied." : "Copy the address of this page.");
}
