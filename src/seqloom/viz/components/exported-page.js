// What the exported pages have in common. Their data is a JSON element of the page.

import { make } from "./dom.js";

/** Fills the page with its title and the nodes that render(data) returns. */
export function showPage(render) {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("main").replaceChildren(make("h1", { dir: "auto" }, document.title), ...render(data));
}
