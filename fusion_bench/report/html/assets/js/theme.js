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
  apply(theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(theme));
  window.addEventListener("beforeprint", () => apply("light"));
  window.addEventListener("afterprint", () => apply(theme));
  const toggle = button(LABELS[theme], () => {
    theme = NEXT[theme];
    toggle.textContent = LABELS[theme];
    apply(theme);
    try {
      localStorage.setItem("fusion-bench-theme", theme);
    } catch {
      // it lasts as long as the page
    }
  }, { id: "theme" });
  return toggle;
}
