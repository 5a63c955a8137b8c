// Light, dark, or as the system has it.

import { make } from "./dom.js";
import { icon } from "./icons.js";

const STORED = "seqloom-theme";
const CHOICES = [["light", "Light"], ["system", "As the system"], ["dark", "Dark"]];

function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(STORED, name);
  } catch {
    // It holds until the page is closed.
  }
  document.dispatchEvent(new Event("seqloom-colours"));
}

export function themeSwitch() {
  const now = document.documentElement.dataset.theme ?? "system";
  const buttons = CHOICES.map(([name, words]) =>
    make("button", {
      type: "button", title: words, "aria-label": words, "aria-pressed": String(name === now),
      on: {
        click: () => {
          choose(name);
          buttons.forEach((one, place) => one.setAttribute("aria-pressed", String(CHOICES[place][0] === name)));
        },
      },
    }, icon(name, 16)));
  return buttons;
}
