// Paired differences from the baseline with their intervals.

import { element, onWidth, shape, understanding } from "./dom.js";
import { formatInterval, formatSigned } from "./numbers.js";

const ROW = 22;
const HEAD = 26;
/** Of the names, in pixels, as the style sheet has it. */
const NAME_SIZE = 12.5;

/** Round steps for an axis. */
export function ticksOf(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i += 1) ticks.push(i * step);
  return ticks.map((tick) => ({ tick, label: tick === 0 ? "0" : trimmed(tick, step) }));
}

function trimmed(tick, step) {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return `${tick > 0 ? "+" : "−"}${Math.abs(tick).toFixed(decimals)}`;
}

/** A mark whose form tells the verdict as well as its color. */
function markOf(group, x, y) {
  const attributes = { class: `mark mark-${group}` };
  if (group === "better") return shape("circle", { ...attributes, cx: x, cy: y, r: 5 });
  if (group === "worse") {
    return shape("path", { ...attributes, d: `M${x - 6} ${y}l6 -6 6 6 -6 6z` });
  }
  return shape("rect", { ...attributes, x: x - 4, y: y - 4, width: 8, height: 8 });
}

/** A name with its middle left out where it is wider than the room. */
export function shortened(name, room) {
  const letters = [...name];
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `600 ${NAME_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  let text = name;
  for (let most = letters.length; ruler.measureText(text).width > room && most > 6; most -= 1) {
    const half = Math.floor(most / 2);
    text = [...letters.slice(0, half), "…", ...letters.slice(half + 1 - most)].join("");
  }
  return text;
}

function titleOf(collection) {
  return collection.isChange
    ? `Changes in ${collection.primary}: now − then`
    : `Differences in ${collection.primary} from ${collection.baseline}`;
}

/** The block; null where nothing is compared. */
export function forestView(collection, store) {
  const systems = collection.competitors.filter((system) => system.difference);
  if (!systems.length) return null;
  const holder = element("div", { class: "picture" });
  const draw = (width) => width && holder.replaceChildren(drawForest(collection, systems, width, store));
  onWidth(holder, draw);
  store.subscribe((state, changed) => changed.has("system") && draw(holder.clientWidth));
  return element(
    "section",
    { class: "view", "data-view": "forest" },
    element("h3", {}, titleOf(collection)),
    holder,
    element("p", { class: "legend" },
      element("span", { class: "verdict verdict-better" }, "● better"), " ",
      element("span", { class: "verdict verdict-open" }, "■ not decided"), " ",
      element("span", { class: "verdict verdict-worse" }, "◆ worse"), " ",
      element("span", {}, element("span", { class: "swatch-detectable" }),
        " too small to be detected")),
    understanding(collection.help.forest),
  );
}

function drawForest(collection, systems, width, store) {
  const left = Math.min(220, Math.round(width * 0.32));
  const right = width < 620 ? 62 : 190;
  const ends = systems.flatMap(({ difference: d }) => [d.low ?? d.value, d.high ?? d.value, 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const pad = (high - low || 0.1) * 0.04;
  const room = width - left - right;
  const x = (value) => left + (room * (value - low + pad)) / (high - low + 2 * pad);
  const height = HEAD + ROW * systems.length + 8;
  const picture = shape("svg", {
    class: "forest", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${titleOf(collection)}, with intervals`,
  });
  for (const { tick, label } of ticksOf(low - pad, high + pad, Math.max(2, room / 90))) {
    picture.append(
      shape("line", { class: tick === 0 ? "zero-line" : "grid-line",
        x1: x(tick), x2: x(tick), y1: HEAD - 6, y2: height }),
      shape("text", { class: "axis", x: x(tick), y: 12, "text-anchor": "middle" }, label),
    );
  }
  systems.forEach((system, i) => picture.append(rowOf(system, HEAD + ROW * (i + 0.5), x)));
  return picture;

  function rowOf(system, y) {
    const d = system.difference;
    const title = `${system.name}: ${formatSigned(d.value)} ` +
      `${formatInterval(d.low, d.high, true)}, adjusted p ${d.p}: ${d.verdict}`;
    const detectable = Math.min(d.detectable ?? 0, Math.max(-low, high) + pad);
    const from = Math.max(left, x(-detectable));
    const to = Math.min(width - right, x(detectable));
    const text = width < 620 ? formatSigned(d.value)
      : `${formatSigned(d.value)} ${formatInterval(d.low, d.high, true)}`;
    return shape(
      "g",
      { class: `forest-row${system.name === store.state.system ? " chosen" : ""}`,
        onclick: () => store.set({ system: system.name }) },
      shape("title", {}, title),
      shape("rect", { class: "hit", x: 0, y: y - ROW / 2, width, height: ROW }),
      to > from && shape("rect", { class: "detectable", x: from, y: y - 7, width: to - from, height: 14 }),
      shape("text", { class: "name", x: left - 10, y: y + 4, "text-anchor": "end" },
        shortened(system.name, left - 14)),
      d.low !== null && shape("line", { class: `interval mark-${system.group}`,
        x1: x(d.low), x2: x(d.high), y1: y, y2: y }),
      markOf(system.group, x(d.value), y),
      shape("text", { class: "value", x: width - 4, y: y + 4, "text-anchor": "end" }, text),
    );
  }
}
