// Buttons for the light, system and dark theme.

import { make } from "../components/dom.js";
import { icon } from "../components/icons.js";

const STORED_THEME = "seqloom-theme";
const THEMES = [["light", "Light"], ["system", "System"], ["dark", "Dark"]];

function setTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(STORED_THEME, name);
  } catch {
    // Storage is disabled: the theme lasts until the page is closed.
  }
  document.dispatchEvent(new Event("seqloom-theme"));
}

export function themeButtons() {
  const current = document.documentElement.dataset.theme ?? "system";
  const buttons = THEMES.map(([name, label]) =>
    make("button", {
      type: "button", title: label, "aria-label": label, "aria-pressed": String(name === current),
      on: {
        click: () => {
          setTheme(name);
          buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(THEMES[index][0] === name)));
        },
      },
    }, icon(name, 16)));
  return buttons;
}
