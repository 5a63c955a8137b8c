// Nothing there yet, on its way, or gone wrong: each has its place and its words.

import { make } from "./dom.js";
import { button } from "./controls.js";

export function heading(title, lead, ...beside) {
  return make("header", { class: "view-head" },
    make("div", {}, make("h1", { tabindex: "-1" }, title), make("p", { class: "lead" }, lead)),
    make("div", { class: "beside" }, beside));
}

export function empty(words, ...below) {
  return make("div", { class: "state" },
    make("div", { class: "threads", "aria-hidden": "true" }, make("i"), make("i"), make("i")),
    make("p", {}, words), below);
}

export function loading(words = "One moment …") {
  return make("div", { class: "state waiting", role: "status" },
    make("div", { class: "threads", "aria-hidden": "true" }, make("i"), make("i"), make("i")),
    make("p", {}, words));
}

export function failure(error, again) {
  return make("div", { class: "state wrong", role: "alert" },
    make("h2", {}, error.status === 0 ? "No answer" : "This cannot be done"),
    make("p", {}, sentence(error.message)),
    again && button("Try again", again));
}

function sentence(words) {
  const capital = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…”]$/.test(capital) ? capital : `${capital}.`;
}

/** A place whose content comes from elsewhere: dims while it waits, and says what went wrong. */
export function stage(attributes = {}) {
  const place = make("div", { class: "stage", ...attributes });
  return {
    place,
    wait(words) {
      place.setAttribute("aria-busy", "true");
      if (!place.childElementCount) place.replaceChildren(loading(words));
    },
    show(...content) {
      place.removeAttribute("aria-busy");
      place.replaceChildren(...content.filter(Boolean));
    },
    fail(error, again) {
      place.removeAttribute("aria-busy");
      place.replaceChildren(failure(error, again));
    },
  };
}
