// The header of a view, and its result area: empty, loading, with content, or with an error.

import { make } from "../components/dom.js";
import { button } from "../components/controls.js";

/** Title and description of a view, with controls on the right. */
export function viewHeader(title, description, ...controls) {
  return make("header", { class: "view-header" },
    make("div", {}, make("h1", { tabindex: "-1" }, title), make("p", { class: "lead" }, description)),
    make("div", { class: "view-controls" }, controls));
}

const placeholderLines = () => make("div", { class: "placeholder-lines", "aria-hidden": "true" }, make("i"), make("i"), make("i"));

export function emptyMessage(text, ...below) {
  return make("div", { class: "message" }, placeholderLines(), make("p", {}, text), below);
}

export function loadingMessage(text = "Loading …") {
  return make("div", { class: "message loading", role: "status" }, placeholderLines(), make("p", {}, text));
}

/** retry(): offered if the same request can succeed later */
export function errorMessage(error, retry, note) {
  return make("div", { class: "message error", role: "alert" },
    make("h2", {}, error.status === 0 ? "No response" : "Error"),
    make("p", {}, asSentence(error.message)),
    note && make("p", {}, note),
    retry && error.isTemporary && button("Try again", retry));
}

function asSentence(text) {
  const capitalised = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…”]$/.test(capitalised) ? capitalised : `${capitalised}.`;
}

/** The warnings of a response, or null if there are none. */
export function warningList(warnings) {
  if (!warnings?.length) return null;
  return make("div", { class: "warning", role: "status" }, warnings.map((text) => make("p", {}, asSentence(text))));
}

/** An area for the result of a request. While it loads, the previous content stays and is dimmed. */
export function resultArea(attributes = {}) {
  const element = make("div", { class: "result", ...attributes });
  return {
    element,
    showLoading(text) {
      element.setAttribute("aria-busy", "true");
      if (!element.childElementCount) element.replaceChildren(loadingMessage(text));
    },
    show(...content) {
      element.removeAttribute("aria-busy");
      element.replaceChildren(...content.filter(Boolean));
    },
    /** Shows an error above the previous content, which stays. */
    showError(error, retry) {
      element.removeAttribute("aria-busy");
      const content = [...element.children].filter((child) => !child.matches(".message, .streaming"));
      element.replaceChildren(errorMessage(error, retry, content.length > 0 && "The previous result is still shown below."), ...content);
    },
    /** Removes an error message. */
    clearError() {
      element.querySelector(":scope > .error")?.remove();
    },
  };
}
