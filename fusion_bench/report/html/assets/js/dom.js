// Elements from data: texts become text nodes, never markup; styles are set through the DOM,
// as the Content-Security-Policy allows no style attribute.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") Object.assign(node.style, value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child || child === 0 || child === ""));
  return node;
}

/** An element of HTML; children are nodes or texts. */
export function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function shape(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A name or text from outside: its direction of writing does not reach its neighbors. */
export function isolated(text) {
  return element("bdi", {}, text);
}

/** A button. */
export function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, label);
}

/** A labeled choice; options are [value, label], or [group, [[value, label], …]]. */
export function choice(label, options, value, onchange, attributes = {}) {
  const option = ([key, text]) =>
    Array.isArray(text)
      ? element("optgroup", { label: key }, text.map(option))
      : element("option", { value: key }, text);
  const select = element("select", { ...attributes, onchange: () => onchange(select.value) });
  select.append(...options.map(option));
  select.value = String(value);
  return element("label", { class: "choice" }, element("span", {}, label), select);
}

/** How to read a picture, folded. */
export function understanding(paragraphs) {
  if (!paragraphs) return null;
  return element(
    "details",
    { class: "understanding" },
    element("summary", {}, "Understanding this picture"),
    paragraphs.map((text) => element("p", {}, text)),
  );
}

/** The width of a sheet of A4 between its margins, in CSS pixels. */
const PAPER = 700;

/** Call a function now, and whenever the width of an element changes; paper has its own. */
export function onWidth(node, draw) {
  window.addEventListener("beforeprint", () => draw(PAPER));
  window.addEventListener("afterprint", () => node.clientWidth && draw(node.clientWidth));
  let width = 0;
  onResize(node, () => {
    if (node.clientWidth && node.clientWidth !== width) {
      width = node.clientWidth;
      draw(width);
    }
  });
}

/** What draws pictures whose elements have no size yet. */
const waiting = [];

/** Call a function once by drawPictures, and in the next frame after each change of an element's size. */
export function onResize(node, call) {
  waiting.push(call);
  new ResizeObserver(() => requestAnimationFrame(call)).observe(node);
}

/** Draw every picture that is in the page now: a screenshot waits for no frame. */
export function drawPictures() {
  for (const call of waiting.splice(0)) call();
}

/** The value of a color of the style sheet, such as "--better". */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
