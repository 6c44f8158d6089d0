// The controls: a slider with a number, or a choice, for each parameter that the server lists.

import { button, element, isolated, shape } from "./dom.js";
import { formatNumber } from "./numbers.js";

const STEPS = 1000;
const DIGITS = 4;
const NAMES = {
  tiers: "retrieval share", "blend.rest": "retrieval share below the tiers", "blend.retrieval": "retrieval term",
  dialect: "only what runs in", depth: "documents read of each list", "fusion.k": "rank constant k",
  "fusion.normalize.method": "scores are scaled by", "fusion.missing": "a document that a list lacks counts",
  "blend.depth": "documents reranked", "blend.beta": "share of the rerank score",
  "blend.missing": "without a rerank score",
};
const CHOICES = {
  dialect: { null: "any engine" },
  "fusion.missing": { skip: "not at all (skip)", zero: "0 (zero)", min: "the list's least score (min)" },
};
const TITLES = { dialect: "Engine", depth: "Sources", fusion: "Fusion", blend: "Reranker" };

/** A number as text, with the digits that a search gives it. */
export function formatValue(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(DIGITS))) : String(value);
}

/** Where a value stands on a slider. */
export function toPosition(control, value) {
  const { low, high, log } = control;
  if (value === null || high === low) return STEPS;
  const share = log
    ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))
    : (value - low) / (high - low);
  return Math.round(STEPS * share);
}

/** The value at a place of a slider. */
export function fromPosition(control, position) {
  const { low, high, log, kind } = control;
  const share = position / STEPS;
  const value = log ? low * (high / low) ** share : low + share * (high - low);
  const rounded = kind === "int" ? Math.round(value) : Number(value.toPrecision(DIGITS));
  return Math.min(Math.max(rounded, low), high);
}

/** Whole numbers of a short range have a step each. */
function isCounted(control) {
  return control.kind === "int" && !control.log && control.high - control.low <= STEPS;
}

/** What a control is called: its path below the part that its group names; tiers in words. */
function labelOf(path) {
  const [part, ...words] = path.split(".");
  const [name, tier, kind] = words;
  if (kind === "value") return `${NAMES[name] ?? name}, tier ${tier}`;
  if (kind === "ranks") return `ranks in tier ${tier}`;
  if (path in NAMES) return NAMES[path];
  if (name === "weights") return `weight of ${words.slice(1).join(" · ")}`;
  if (part === "depth") return `documents read of ${words.join(".")}`;
  return words.join(" · ") || part;
}

/** What a choice is called; behind some names stands the key of an experiment. */
function nameOf(path, value) {
  return CHOICES[path]?.[value] ?? (value === null ? "none" : String(value));
}

/**
 * The controls of a setting. `onMove(control, value, isFinal)` is called while one moves,
 * `onReset(control)` when it goes back to the system's own value.
 */
export class ControlPanel {
  constructor(form, onMove, onReset) {
    this.form = form;
    this.onMove = onMove;
    this.onReset = onReset;
    this.rows = new Map();
    this.shape = "";
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Show the controls of an answer; `setting` says which of them are set. */
  show(controls, setting) {
    const shape = JSON.stringify(controls.map(({ value, ...rest }) => rest));
    if (shape !== this.shape) this.build(controls);
    this.shape = shape;
    for (const control of controls) {
      const row = this.rows.get(control.path);
      row.control = control;
      row.node.classList.toggle("is-set", control.path in setting.parameters);
      row.reset.disabled = !(control.path in setting.parameters);
      row.show(control.value);
    }
  }

  build(controls) {
    const focused = document.activeElement;
    const path = this.form.contains(focused) ? focused.closest("[data-control]")?.dataset.control : null;
    const kind = focused?.dataset?.part;
    this.rows = new Map(controls.map((control) => [control.path, this.makeRow(control)]));
    const groups = Map.groupBy
      ? Map.groupBy(controls, groupOf)
      : controls.reduce((all, each) => all.set(groupOf(each), [...(all.get(groupOf(each)) ?? []), each]), new Map());
    this.form.replaceChildren(...[...groups].map(([name, members]) =>
      element("fieldset", {}, element("legend", {}, TITLES[name] ?? isolated(name)),
        members.map(({ path: each }) => this.rows.get(each).node))));
    if (path) this.rows.get(path)?.node.querySelector(`[data-part="${kind}"]`)?.focus();
  }

  /** Draw pairs of a value and a mean below the slider of a path; no other slider keeps a curve. */
  showCurve(path, curve, measure) {
    for (const each of this.form.querySelectorAll("[data-curve]")) each.remove();
    const row = this.rows.get(path);
    if (row && curve.length > 1) row.node.append(curvePicture(row.control, curve, measure));
  }

  makeRow(control) {
    const id = `control ${control.path}`.replaceAll(" ", "-");
    const row = { control };
    const label = element("label", { for: id, title: control.path }, isolated(labelOf(control.path)));
    row.reset = button("↺", () => this.onReset(row.control), {
      class: "reset", "data-part": "reset", "aria-label": `Reset ${control.path}`,
      title: "The value of the system itself",
    });
    const inputs = control.kind === "choice" ? this.makeChoice(row, id) : this.makeNumber(row, id);
    row.node = element("div", { class: "control", "data-control": control.path }, label, inputs[0], row.reset, inputs[1]);
    return row;
  }

  makeChoice(row, id) {
    const choices = row.control.choices;
    const select = element("select", { id, "data-part": "choice" },
      choices.map((value, i) => element("option", { value: i }, nameOf(row.control.path, value))));
    select.addEventListener("change", () => this.onMove(row.control, choices[Number(select.value)], true));
    row.show = (value) => { select.value = String(choices.indexOf(value)); };
    return [select];
  }

  makeNumber(row, id) {
    const { low, high, kind, path } = row.control;
    const number = element("input", {
      id, type: "number", min: low, max: high, step: kind === "int" ? 1 : "any", "data-part": "number",
    });
    const range = isCounted(row.control) ? { min: low, max: high, step: 1 } : { min: 0, max: STEPS, step: 1 };
    const slider = element("input", {
      type: "range", ...range, "aria-label": `${path}, slider`, "data-part": "slider",
    });
    const read = () => (isCounted(row.control)
      ? Number(slider.value) : fromPosition(row.control, Number(slider.value)));
    const move = (isFinal) => {
      const value = read();
      number.value = formatValue(value);
      slider.setAttribute("aria-valuetext", formatValue(value));
      this.onMove(row.control, value, isFinal);
    };
    slider.addEventListener("input", () => { row.isDragged = true; move(false); });
    slider.addEventListener("change", () => { row.isDragged = false; move(true); });
    number.addEventListener("change", () => {
      if (number.value !== "" && number.checkValidity()) this.onMove(row.control, Number(number.value), true);
      else number.reportValidity();
    });
    row.show = (value) => {
      if (row.isDragged) return; // the hand is ahead of the answer
      const { low, high } = row.control;
      const shown = value === null ? high : Math.min(Math.max(value, low), high); // all of a list
      if (document.activeElement !== number || Number(number.value) !== shown) number.value = formatValue(shown);
      slider.value = String(isCounted(row.control) ? shown : toPosition(row.control, shown));
      slider.setAttribute("aria-valuetext", value === null ? `${formatValue(shown)}, all` : formatValue(shown));
    };
    return [number, slider];
  }
}

/** The measure along a slider: a line with the value of the setting, and what is highest in words. */
function curvePicture(control, curve, measure) {
  const means = curve.map(([, mean]) => mean);
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const best = curve[means.indexOf(most)][0];
  const x = (value) => (300 * toPosition(control, value)) / STEPS;
  const y = (mean) => 36 - (32 * (mean - least)) / (most - least || 1);
  const text = `${measure} ${formatNumber(least)} to ${formatNumber(most)}, highest at ${formatValue(best)}`;
  return element("div", { class: "control-curve", "data-curve": control.path },
    shape("svg", { viewBox: "-4 0 308 40", preserveAspectRatio: "none", role: "img", "aria-label": text },
      shape("line", { class: "zero-line", x1: x(control.value), x2: x(control.value), y1: 0, y2: 40 }),
      shape("polyline", { class: "curve curve-0", "vector-effect": "non-scaling-stroke",
        points: curve.map(([value, mean]) => `${x(value)},${y(mean)}`).join(" ") })),
    element("p", { class: "note" }, text));
}

/** The fieldset of a control: the part of the system that it belongs to. */
function groupOf(control) {
  const [first, second, third] = control.path.split(".");
  if (first === "fusion" || first === "blend" || first === "depth" || first === "dialect") return first;
  return [first, second, third].filter(Boolean).slice(0, -1).join(" · ") || first;
}
