// The pictures of a tuning run, drawn from its record.

import { element, onWidth, shape } from "./dom.js";
import { formatInterval, formatNumber, formatSigned, formatTerm } from "./numbers.js";
import { drawing, frame, markShape } from "./plot.js";

const PICTURES = {
  "held-out": drawHeldOut, history: drawHistory, slices: drawSlices, folds: drawFolds,
  calibration: drawCalibration, front: drawFront,
};
const LEGENDS = {
  history: "■ default · ◆ preset · ● sampler · ★ tuned · line: best so far",
  slices: "■ default · ★ tuned · darker: later",
  folds: "● without one fold (×: so many folds) · ■ default · ★ tuned",
  front: "line and ●: the front, tuning queries · ▲ the same, held out · ■ default · ★ tuned",
  calibration: "dotted: a score is a probability · dashed: default thresholds · solid: tuned",
};
/** Panels in a drawing of slices, the most important first. */
const MOST_PANELS = 9;
const EFFORTS = {
  candidates: "candidates reranked per query", cost: "cost of 1,000 queries", seconds: "seconds per query",
};

/** Draw each picture into its place. */
export function mountTuning({ report }) {
  for (const place of document.querySelectorAll("figure[data-picture]")) {
    const name = place.dataset.picture.replace(/\.\w+$/, "");
    const draw = PICTURES[name];
    if (!draw) continue;
    const holder = element("div", { class: "picture" });
    place.querySelector("h3").after(holder);
    if (LEGENDS[name]) holder.after(element("p", { class: "legend" }, LEGENDS[name]));
    place.hidden = false;
    const title = place.querySelector("h3").textContent;
    onWidth(holder, (width) => width && holder.replaceChildren(draw(report, width, title)));
  }
}

const completed = (report) => report.trials.filter(({ value }) => value !== null);
const defaultTrial = (report) => report.trials.find(({ origin }) => origin === "default");
const chosenTrial = (report) => report.trials.find(({ number }) => number === report.choice.trial);
const titleOf = (trial) => `trial ${trial.number}: ${formatNumber(trial.value)}`;
const scoreLabel = (report) => `${report.measure}, tuning`;

/** The better three quarters and the default: bad trials would flatten the rest. */
function valueRange(report) {
  const values = completed(report).map(({ value }) => value).sort((a, b) => a - b);
  const low = Math.min(values[Math.floor(values.length / 4)], defaultTrial(report).value ?? Infinity);
  const height = Math.max(values.at(-1) - low, 1e-6);
  return [low - 0.08 * height, values.at(-1) + 0.08 * height];
}

function drawHistory(report, width, title) {
  const trials = completed(report);
  const plot = frame({
    width, height: 280, x: [0, Math.max(1, report.trials.length - 1)], y: valueRange(report),
    xLabel: "trial", yLabel: scoreLabel(report),
  });
  let best = -Infinity;
  plot.line("best", trials.map(({ number, value }) => [number, (best = Math.max(best, value))]), true);
  for (const trial of trials) plot.mark(trial.origin, [trial.number, trial.value], titleOf(trial));
  const chosen = chosenTrial(report);
  plot.mark("chosen", [chosen.number, chosen.value], titleOf(chosen));
  return drawing(title, width, 280, plot.group);
}

/** Where a value stands in a parameter's range, 0 … 1; null = it takes no part. */
function positionOf(parameter, value) {
  if (value === undefined) return null;
  if (parameter.kind === "choice") {
    const index = parameter.choices.indexOf(value);
    return index < 0 ? null : index / Math.max(1, parameter.choices.length - 1);
  }
  const [low, high, at] = [parameter.low, parameter.high, value].map(parameter.log ? Math.log : Number);
  return high > low ? (at - low) / (high - low) : 0;
}

function rangeTicks(parameter) {
  if (parameter.kind !== "choice") return [[0, formatTerm(parameter.low)], [1, formatTerm(parameter.high)]];
  return [[0, String(parameter.choices[0])], [1, String(parameter.choices.at(-1))]];
}

function byImportance(report) {
  const share = new Map(report.importances.map(({ path, share: part }) => [path, part]));
  return [...report.parameters].sort((a, b) => (share.get(b.path) ?? 0) - (share.get(a.path) ?? 0));
}

function drawSlices(report, width, title) {
  const parameters = byImportance(report).slice(0, MOST_PANELS);
  const columns = Math.min(parameters.length, width < 620 ? 1 : 3);
  const [room, height] = [width / columns, 190];
  const trials = completed(report);
  const panels = parameters.map((parameter, i) => {
    const plot = frame({
      width: room, height, x: [-0.03, 1.03], y: valueRange(report), xTicks: rangeTicks(parameter),
      xLabel: parameter.path,
    });
    const put = (kind, trial, attributes) => {
      const at = positionOf(parameter, trial.params[parameter.path]);
      const value = trial.params[parameter.path];
      if (at !== null && trial.value !== null) {
        plot.mark(kind, [at, trial.value], `${titleOf(trial)}, ${parameter.path} ${value}`, attributes);
      }
    };
    trials.forEach((trial, n) => put("later", trial, { opacity: 0.25 + (0.65 * n) / trials.length }));
    put("default", defaultTrial(report));
    put("chosen", chosenTrial(report));
    plot.group.setAttribute("transform",
      `translate(${(i % columns) * room} ${Math.floor(i / columns) * height})`);
    return plot.group;
  });
  return drawing(title, width, height * Math.ceil(panels.length / columns), panels);
}

function drawFolds(report, width, title) {
  const row = 34;
  const left = Math.min(200, width * 0.38);
  const [start, end] = [left + 8, width - 14];
  const x = (position) => start + position * (end - start);
  const rows = report.parameters.map((parameter, i) => {
    const y = 20 + row * i;
    const at = (kind, position, label) => position !== null && position >= 0 && position <= 1 &&
      markShape(kind, [x(position), y], `${parameter.path} ${label}`);
    const counts = new Map();
    for (const { params } of report.folds) {
      const value = params[parameter.path];
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const [low, high] = rangeTicks(parameter).map(([, label]) => label);
    return shape("g", {},
      shape("line", { class: "grid-line", x1: start, x2: end, y1: y, y2: y }),
      shape("text", { class: "name", x: left, y: y, "text-anchor": "end" }, parameter.path),
      shape("text", { class: "axis", x: left, y: y + 13, "text-anchor": "end" }, `${low} … ${high}`),
      [...counts].map(([value, count]) => [
        at("later", positionOf(parameter, value), `${value}: ${count} of ${report.folds.length} folds`),
        count > 1 && shape("text", { class: "axis", y: y - 6, "text-anchor": "middle",
          x: x(positionOf(parameter, value) ?? 0) }, `×${count}`),
      ]),
      at("default", positionOf(parameter, parameter.default ?? undefined), `${parameter.default}: default`),
      at("chosen", positionOf(parameter, report.choice.params[parameter.path]),
        `${report.choice.params[parameter.path]}: tuned`));
  });
  return drawing(title, width, 20 + row * rows.length, rows);
}

function drawHeldOut(report, width, title) {
  const differences = report.held_out_values.map(([before, now]) => now - before).sort((a, b) => b - a);
  const isNarrow = width < 620;
  const [height, room] = [260, isNarrow ? width : width * 0.7];
  const bars = frame({
    width: room, height, x: [0, differences.length], y: [Math.min(0, differences.at(-1)), Math.max(0, differences[0])],
    xLabel: "held-out queries, by their difference", yLabel: `tuned − default, ${report.measure}`,
  });
  for (const [kind, sign] of [["gain", 1], ["loss", -1]]) {
    const kept = differences.map((value, i) => [i, value]).filter(([, value]) => value * sign > 0);
    if (!kept.length) continue;
    const steps = kept.map(([i, value]) => `L${bars.x(i)} ${bars.y(value)}H${bars.x(i + 1)}`).join("");
    const [first, last] = [kept[0][0], kept.at(-1)[0] + 1];
    bars.group.append(shape("path", { class: `plot-area ${kind}`,
      d: `M${bars.x(first)} ${bars.y(0)}${steps}L${bars.x(last)} ${bars.y(0)}z` }));
  }
  const gains = gainsFrame(report, isNarrow ? width : width - room, height);
  gains.setAttribute("transform", isNarrow ? `translate(0 ${height})` : `translate(${room} 0)`);
  return drawing(title, width, isNarrow ? 2 * height : height, bars.group, gains);
}

/** Both gains with their intervals, against 0 and against the least gain. */
function gainsFrame(report, width, height) {
  const sides = [["tuning", report.tune], ["held out", report.held_out]];
  const ends = sides.flatMap(([, gain]) => [gain.low ?? gain.difference, gain.high ?? gain.difference]);
  const all = [...ends, 0, report.settings.min_gain];
  const pad = (Math.max(...all) - Math.min(...all)) * 0.08;
  const plot = frame({
    width, height, x: [-0.5, 1.5], y: [Math.min(...all) - pad, Math.max(...all) + pad],
    xTicks: [[0, "tuning"], [1, "held out"]], xLabel: "mean gain and its interval",
  });
  plot.line("zero", [[-0.5, 0], [1.5, 0]]);
  plot.line("least", [[-0.5, report.settings.min_gain], [1.5, report.settings.min_gain]]);
  sides.forEach(([name, gain], i) => {
    const kind = i ? "held-gain" : "tuning-gain";
    if (gain.low !== null && gain.high !== null) plot.line(kind, [[i, gain.low], [i, gain.high]]);
    plot.mark(kind, [i, gain.difference],
      `${name}: ${formatSigned(gain.difference)} ${formatInterval(gain.low, gain.high, true)}`, { r: 5 });
  });
  return plot.group;
}

function drawCalibration(report, width, title) {
  const [thresholds] = report.thresholds;
  const plot = frame({
    width, height: 280, x: [0, 1], y: [-0.03, 1.03], xLabel: `best rerank score in the top ${thresholds.top}`,
    yLabel: "share with a relevant document",
  });
  plot.line("dotted", [[0, 0], [1, 1]]);
  for (const [kind, rule] of [["dashed", thresholds.default], ["solid", thresholds.tuned]]) {
    for (const at of [rule.upper, rule.lower]) plot.line(kind, [[at, -0.03], [at, 1.03]]);
  }
  plot.line("best", thresholds.calibration.map(({ score, share }) => [score, share]));
  for (const { score, share, queries } of thresholds.calibration) {
    plot.mark("later", [score, share], `${formatTerm(score)}: ${formatTerm(share)} of ${queries} queries`);
  }
  return drawing(title, width, 280, plot.group);
}

function drawFront(report, width, title) {
  const { points } = report.front;
  const axes = Object.keys(EFFORTS).filter((key) => points.every((point) => point[key] !== null));
  const columns = width < 620 ? 1 : axes.length;
  const [room, height] = [width / columns, 300];
  const values = points.flatMap(({ value, held_out: held }) => [value, held]);
  const pad = (Math.max(...values) - Math.min(...values) || 0.01) * 0.06;
  const panels = axes.map((key, i) => {
    const group = effortFrame(report, key, room, height, [Math.min(...values) - pad, Math.max(...values) + pad]);
    group.setAttribute("transform", `translate(${(i % columns) * room} ${Math.floor(i / columns) * height})`);
    return group;
  });
  return drawing(title, width, height * Math.ceil(panels.length / columns), panels);
}

function effortFrame(report, key, width, height, y) {
  const points = [...report.front.points].sort((a, b) => a[key] - b[key] || a.value - b.value);
  const positive = points.map((point) => point[key]).filter((effort) => effort > 0);
  const [least, most] = [Math.min(...positive), Math.max(...positive, 0)];
  const isWide = positive.length > 0 && most > 4 * least;
  const scale = isWide ? (effort) => Math.log1p(effort / least) : undefined;
  const steps = most < 1000 * least ? [1, 2, 5] : [1];
  const powers = [...Array(12).keys()].flatMap((n) => steps.map((step) => step * 10 ** (n - 5)));
  const ticks = isWide ? [0, ...powers.filter((tick) => tick >= least && tick <= most)] : null;
  const plot = frame({
    width, height, x: [0, most || 1], y, scale, xTicks: ticks?.map((tick) => [tick, formatTerm(tick)]),
    xLabel: EFFORTS[key], yLabel: report.measure,
  });
  const rerankers = report.front.efforts.map(({ reranker }) => reranker);
  // A candidate of one reranker is not one of another: there each has a line of its own.
  const lines = key === "candidates" && rerankers.length > 1 ? rerankers : [null];
  for (const name of lines) {
    const joined = points.filter((point) =>
      point.efficient && (name === null || point.reranker === name || point.reranker === null));
    plot.line("best", joined.map((point) => [point[key], point.value]), true);
    plot.line("held", joined.map((point) => [point[key], point.held_out]));
    for (const point of joined) plot.mark("held", [point[key], point.held_out], nameOf(point, point.held_out, "held out"));
  }
  for (const point of points) {
    plot.mark(point.efficient ? "later" : "sampler", [point[key], point.value], nameOf(point, point.value, "tuning"));
    for (const role of point.roles) plot.mark(role, [point[key], point.value], `${role}, ${nameOf(point, point.value, "tuning")}`);
  }
  return plot.group;
}

function nameOf(point, value, queries) {
  const depth = point.reranker === null ? "no reranker" : `${point.reranker}, depth ${point.depth}`;
  return `${depth}: ${formatNumber(value)} (${queries})`;
}
