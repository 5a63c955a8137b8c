// The page that `seqloom search --out` writes: a search, step by step.

import { make } from "./dom.js";
import { showPage } from "./exported-page.js";
import { searchPlayer } from "./search-player.js";

const key = (name) => make("kbd", {}, name);

showPage((search) => [
  make("p", { class: "facts" }, key("←"), " ", key("→"), " step · ", key("space"), " play · ", key("Home"), " ", key("End")),
  searchPlayer(search, { keys: document }),
]);
