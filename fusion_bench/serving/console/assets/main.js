// The console: the setting is here, and the server answers what it is asked about it.

import { NewestRequest, ServerError, request } from "./api.js";
import { ChangeLists } from "./changes.js";
import { ControlPanel } from "./controls.js";
import { SaveDialog, VerdictDialog, shareAddress } from "./dialogs.js";
import { button, choice, element, isolated } from "./dom.js";
import { QueryDrawer } from "./drawer.js";
import { showFindings, showMeasures } from "./measures.js";
import { formatCount, formatPercent, pluralize } from "./numbers.js";
import { History, addressOf, isSame, makeSetting, readAddress, replaceValue, resetValue } from "./setting.js";
import { themeButton } from "./theme.js";

const at = (id) => document.getElementById(id);

class Console {
  constructor(setup) {
    this.setup = setup;
    this.setting = this.readKnown(location.hash) ?? makeSetting(setup.system);
    this.history = new History(this.setting);
    this.answerable = new Set();
    this.changes = new ChangeLists(at("changes"), (query, against) => this.openQuery(query, against));
    this.drawer = new QueryDrawer((query, against) => this.fetchDetails(query, against));
    this.panel = new ControlPanel(
      at("controls"),
      (control, value, isFinal) => {
        this.moved = control.kind === "choice" ? null : control.path;
        this.set(replaceValue(this.setting, control, value), isFinal);
      },
      (control) => this.set(resetValue(this.setting, control), true),
    );
    this.answers = new NewestRequest(
      (each) => request("/api/answer", { setting: each.setting, previous: each.previous }),
      (answer, each, isNewest) => this.show(answer, each, isNewest),
      (error) => this.showProblem(error),
    );
    this.moved = null; // the path of the slider that moved last
    this.explorations = new NewestRequest(
      (each) => request("/api/explore", each),
      (answer, each) => isSame(each.setting, this.setting) && this.showExploration(answer, each.path),
      (error) => this.showProblem(error),
    );
    this.mountTools();
    this.describe();
    addEventListener("hashchange", () => this.readHash());
    addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Another setting; final = the movement is over, and undo comes back to what was before it. */
  set(setting, isFinal) {
    this.setting = setting;
    if (isFinal) this.history.commit(setting);
    history.replaceState(null, "", location.pathname + addressOf(setting));
    this.ask();
  }

  /** What the setting is compared with beside the baseline; null = nothing was answered before. */
  get previous() {
    return this.history.before(this.setting, (each) => this.answerable.has(addressOf(each)));
  }

  ask() {
    at("main").dataset.state = "busy";
    at("status").textContent = "Computing …";
    this.answers.ask({ setting: this.setting, previous: this.previous });
    this.showTools();
  }

  show(answer, { setting }, isNewest) {
    this.answerable.add(addressOf(setting));
    at("problem").hidden = true;
    const isCurrent = isNewest && isSame(setting, this.setting);
    if (isCurrent) this.panel.show(answer.controls, setting); // else the hand is ahead of the answer
    showMeasures(at("measures"), answer, this.setup);
    showFindings(at("findings"), answer.findings);
    this.changes.show(answer);
    if (!isCurrent) return;
    at("main").dataset.state = "settled";
    at("status").textContent = this.describeSetting();
    document.documentElement.dataset.ready = "true";
    this.drawer.refresh();
    const isThere = answer.controls.some(({ path }) => path === this.moved);
    this.explorations.ask({ setting, path: isThere ? this.moved : null });
  }

  showExploration({ unjudged, curve }, path) {
    at("unjudged").textContent = `Unjudged among the first 10 documents: ${formatPercent(unjudged.setting)} ` +
      `(baseline ${formatPercent(unjudged.baseline)})`;
    this.panel.showCurve(path, curve, this.setup.primary);
  }

  showProblem(error) {
    at("main").dataset.state = "error";
    at("status").textContent = "The numbers below are those of the setting before.";
    at("problem").hidden = false;
    at("problem").replaceChildren(isolated(error.message));
    document.documentElement.dataset.ready = "true";
  }

  describeSetting() {
    const count = Object.keys(this.setting.parameters).length;
    return `${this.setting.system}${count ? ` with ${pluralize(count, "changed value")}` : " as it is written"}`;
  }

  describe() {
    const { dataset, experiment, queries, held_out: heldOut, split } = this.setup;
    document.title = `Mixing console: ${experiment}`;
    at("scope").append("Experiment ", isolated(experiment), ", dataset ", isolated(dataset),
      `: ${pluralize(queries, "tuning query")}; ${formatCount(heldOut)} are held out (`, isolated(split), ").");
    const notes = this.setup.notes.map((text) => element("p", { class: "warnings" }, isolated(text)));
    at("scope").after(...notes);
    at("glossary").append(...this.setup.terms.flatMap(({ name, meaning }) =>
      [element("dt", {}, name), element("dd", {}, meaning)]));
  }

  mountTools() {
    this.system = choice("System", this.setup.systems.map((name) => [name, name]), this.setting.system,
      (name) => this.set(makeSetting(name), true), { "data-system": true });
    const verdict = new VerdictDialog(this.setup);
    const save = new SaveDialog();
    const act = (name, label, action, attributes = {}) => button(label, action, { "data-action": name, ...attributes });
    this.undo = act("undo", "Undo", () => this.go(this.history.undo()), { title: "Ctrl Z" });
    this.redo = act("redo", "Redo", () => this.go(this.history.redo()), { title: "Ctrl Shift Z" });
    at("tools").append(
      this.system, this.undo, this.redo,
      act("reset", "Reset", () => this.set(makeSetting(this.setting.system), true)),
      act("share", "Copy address", () => shareAddress((text) => { at("status").textContent = text; })),
      act("save", "Save as experiment", () => save.open(this.setting)),
      act("tune", "Tune from here", () => save.open(this.setting, "Tune from here")),
      act("verdict", "Ask the held-out queries", () => verdict.open(this.setting), { class: "main-action" }),
    );
    at("look").append(themeButton());
    at("skip").addEventListener("click", (event) => {
      event.preventDefault();
      at("measures").focus();
    });
  }

  showTools() {
    this.undo.disabled = this.history.past.length === 0;
    this.redo.disabled = this.history.future.length === 0;
    this.system.querySelector("select").value = this.setting.system;
  }

  /** To a setting that undo or redo gave; null = there is none. */
  go(setting) {
    if (setting) this.set(setting, false);
  }

  /** The setting of an address, if it is one of this experiment; else null. */
  readKnown(hash) {
    const setting = readAddress(hash);
    return setting !== null && this.setup.systems.includes(setting.system) ? setting : null;
  }

  readHash() {
    const setting = this.readKnown(location.hash);
    if (setting && !isSame(setting, this.setting)) this.set(setting, true);
  }

  onKey(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) this.go(this.history.undo());
    else if ((key === "z" && event.shiftKey) || key === "y") this.go(this.history.redo());
    else return;
    event.preventDefault();
  }

  openQuery(query, against) {
    this.drawer.open(query, against);
  }

  /** The details of a query; null where the server refuses them. */
  async fetchDetails(query, against) {
    const other = against === "previous" ? this.previous : null;
    try {
      return await request("/api/query", { query, setting: this.setting, against: other });
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      this.showProblem(error);
      return null;
    }
  }
}

async function start() {
  try {
    const console = new Console(await request("/api/console"));
    history.replaceState(null, "", location.pathname + addressOf(console.setting));
    console.ask();
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    at("status").textContent = "";
    at("problem").hidden = false;
    at("problem").replaceChildren(element("span", {}, error.message));
  }
}

start();
