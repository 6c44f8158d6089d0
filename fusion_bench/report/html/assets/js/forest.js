// Paired differences from the baseline with their intervals.

import { HEAD, axisOf, fittedNames, layoutOf, markOf, textsOf } from "./axis.js";
import { element, onWidth, shape, understanding } from "./dom.js";
import { formatInterval, formatSigned } from "./numbers.js";

const ROW = { wide: 22, narrow: 40 };

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
      element("span", { class: "verdict verdict-better" }, "▲ better"), " ",
      element("span", { class: "verdict verdict-open" }, "● not shown"), " ",
      element("span", { class: "verdict verdict-worse" }, "▼ worse"), " ",
      element("span", {}, element("span", { class: "swatch-detectable" }),
        " often missed: below 80 % power")),
    understanding(collection.help.forest),
  );
}

function drawForest(collection, systems, width, store) {
  const layout = layoutOf(width, 220, 0.32);
  const { isNarrow, left, right } = layout;
  const row = isNarrow ? ROW.narrow : ROW.wide;
  const names = fittedNames(systems.map(({ name }) => name), layout.nameRoom);
  const ends = systems.flatMap(({ difference: d }) => [d.low ?? d.value, d.high ?? d.value, 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const pad = (high - low || 0.1) * 0.04;
  const room = width - left - right;
  const x = (value) => left + (room * (value - low + pad)) / (high - low + 2 * pad);
  const height = HEAD + row * systems.length + 8;
  const picture = shape("svg", {
    class: "forest", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${titleOf(collection)}, with intervals`,
  });
  picture.append(...axisOf(low - pad, high + pad, x, room, height));
  systems.forEach((system, i) =>
    picture.append(rowOf(system, names[i], HEAD + row * (i + (isNarrow ? 0.7 : 0.5)))));
  return picture;

  function rowOf(system, name, y) {
    const d = system.difference;
    const title = `${system.name}: ${formatSigned(d.value)} ` +
      `${formatInterval(d.low, d.high, true)}, p ${d.p}: ${d.verdict}`;
    const detectable = Math.min(d.detectable ?? 0, Math.max(-low, high) + pad);
    const from = Math.max(left, x(-detectable));
    const to = Math.min(width - right, x(detectable));
    const text = isNarrow ? formatSigned(d.value)
      : `${formatSigned(d.value)} ${formatInterval(d.low, d.high, true)}`;
    return shape(
      "g",
      { class: `forest-row${system.name === store.state.system ? " chosen" : ""}`,
        onclick: () => store.set({ system: system.name }) },
      shape("title", {}, title),
      shape("rect", { class: "hit", x: 0, y: y - row * (isNarrow ? 0.7 : 0.5), width, height: row }),
      to > from && shape("rect", { class: "detectable", x: from, y: y - 7, width: to - from, height: 14 }),
      textsOf(name, text, y, width, layout),
      d.low !== null && shape("line", { class: `interval mark-${system.group}`,
        x1: x(d.low), x2: x(d.high), y1: y, y2: y }),
      markOf(system.group, x(d.value), y),
    );
  }
}
