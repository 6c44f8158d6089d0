// Light, dark, or as the system has it.

import { button } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const LABELS = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" };

function stored() {
  try {
    return localStorage.getItem("fusion-bench-theme") ?? "auto";
  } catch {
    return "auto"; // no storage for files in some browsers
  }
}

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  window.dispatchEvent(new Event("themechange"));
}

/** The button that changes it; paper is light. */
export function themeButton() {
  let theme = NEXT[stored()] ? stored() : "auto";
  let printing = false;
  const show = () => apply(printing ? "light" : theme);
  const print = (begins) => {
    printing = begins;
    show();
  };
  show();
  // The system's colours may change while a page prints: printing changes them in some browsers.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  const toggle = button(LABELS[theme], () => {
    theme = NEXT[theme];
    toggle.textContent = LABELS[theme];
    show();
    try {
      localStorage.setItem("fusion-bench-theme", theme);
    } catch {
      // it lasts as long as the page
    }
  }, { id: "theme" });
  return toggle;
}
