// The page: which views there are, and which of them the address names.

import { format, keep, read } from "./shared/address.js";
import { make, say } from "./shared/dom.js";
import { icon } from "./shared/icons.js";
import { Catalogue } from "./shared/runs.js";
import { failure, loading } from "./shared/states.js";
import { themeSwitch } from "./shared/themes.js";
import { attention } from "./views/attention.js";
import { caption } from "./views/caption.js";
import { compare } from "./views/compare.js";
import { complete } from "./views/complete.js";
import { forecast } from "./views/forecast.js";
import { inside } from "./views/inside.js";
import { lab } from "./views/lab.js";
import { label } from "./views/label.js";
import { search } from "./views/search.js";
import { train } from "./views/train.js";
import { translate } from "./views/translate.js";

const GROUPS = [
  ["Use", [translate, complete, caption, forecast, label]],
  ["Look inside", [attention, search, inside, compare]],
  ["Workshop", [train, lab]],
];
const main = document.getElementById("main");
const navigation = document.getElementById("views");
/** What is carried from view to view: the text, and who is asked. */
const CARRIED = ["text", "run", "target"];

let catalogue, views, leaving;
let carried = {};

function offer() {
  const groups = GROUPS.map(([title, all]) => [title, all.filter((one) => one.available(catalogue))]);
  views = groups.flatMap(([, some]) => some);
  navigation.replaceChildren(...groups.filter(([, some]) => some.length).map(([title, some]) =>
    make("div", { class: "group" },
      make("h2", {}, title),
      make("ul", {}, some.map((view) =>
        make("li", {}, make("a", { href: format(view.name), "data-view": view.name }, icon(view.name), view.title)))))));
  document.getElementById("version").textContent = `· ${catalogue.version}`;
}

/** Links lead to the same text; the run goes along where it can do what the view is for. */
function relink(view, settings) {
  carried = { ...carried, ...Object.fromEntries(CARRIED.map((name) => [name, settings[name]])) };
  for (const link of navigation.querySelectorAll("a")) {
    const other = views.find((one) => one.name === link.dataset.view);
    const fits = other.takes?.(catalogue).some((run) => run.name === carried.run);
    link.href = format(other.name, other.takes ? { ...carried, run: fits ? carried.run : null, text: fits ? carried.text : null } : {});
    if (other === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** On narrow screens the views stand in a row that is scrolled. */
function reveal() {
  const link = navigation.querySelector("[aria-current]"), row = navigation;
  if (link && row.scrollWidth > row.clientWidth) row.scrollTo({ left: link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2 });
}

function show({ moved = true } = {}) {
  const { view: wanted, settings } = read();
  const view = views.find((one) => one.name === wanted) ?? views[0];
  leaving?.abort();
  leaving = new AbortController();
  const place = make("section", { class: `view ${view.name}` });
  main.replaceChildren(place);
  document.title = `${view.title} · seqloom`;
  const kept = { ...settings };
  const context = {
    catalogue,
    settings: kept,
    unasked: !wanted, // nobody asked for anything yet
    signal: leaving.signal,
    link: (name, changes) => format(name, changes),
    offers: (name) => views.some((one) => one.name === name),
    keep(changes) {
      Object.assign(kept, changes);
      keep(view.name, kept);
      relink(view, kept);
    },
  };
  relink(view, kept);
  reveal();
  view.show(place, context);
  if (!moved) return;
  scrollTo(0, 0);
  place.querySelector("h1")?.focus({ preventScroll: true });
  say(view.title);
}

async function open() {
  main.replaceChildren(loading("Loading the models …"));
  try {
    catalogue = await Catalogue.load();
  } catch (error) {
    main.replaceChildren(failure(error, open));
    return;
  }
  offer();
  addEventListener("hashchange", () => show());
  show({ moved: false });
}

document.getElementById("theme").append(...themeSwitch());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is for views
  main.focus();
});
open();
