// Entry point: loads the catalogue of runs, lists the available views, and shows the view that the URL names.

import { formatLink, readUrl, replaceUrl } from "./shared/url-state.js";
import { announce, make } from "./components/dom.js";
import { icon } from "./components/icons.js";
import { Catalogue } from "./shared/runs.js";
import { errorMessage, loadingMessage } from "./shared/panels.js";
import { themeButtons } from "./shared/theme-switch.js";
import { attention } from "./views/attention.js";
import { beamSearch } from "./views/beam-search.js";
import { caption } from "./views/caption.js";
import { compare } from "./views/compare.js";
import { complete } from "./views/complete.js";
import { decoderStep } from "./views/decoder-step.js";
import { forecast } from "./views/forecast.js";
import { lab } from "./views/lab.js";
import { label } from "./views/label.js";
import { training } from "./views/training.js";
import { translate } from "./views/translate.js";

/**
 * A view is an object with
 *   name       its name in links and icons
 *   title      its title in the navigation
 *   isAvailable(catalogue)       true if the server offers what it needs
 *   runs(catalogue)              the runs it can use; undefined if it takes no text
 *   render(container, context)   fills the container
 */
const VIEW_GROUPS = [
  ["Predict", [translate, complete, caption, forecast, label]],
  ["Analyse", [attention, beamSearch, decoderStep, compare]],
  ["Experiments", [training, lab]],
];
const main = document.getElementById("main");
const navigation = document.getElementById("views");
/** Settings that links in the navigation pass on to the next view. */
const SHARED_SETTINGS = ["text", "run", "target"];

let catalogue, views, currentView;
let shared = {};

function listViews() {
  const groups = VIEW_GROUPS.map(([title, all]) => [title, all.filter((view) => view.isAvailable(catalogue))]);
  views = groups.flatMap(([, available]) => available);
  navigation.replaceChildren(...groups.filter(([, available]) => available.length).map(([title, available]) =>
    make("div", { class: "group" },
      make("h2", {}, title),
      make("ul", {}, available.map((view) =>
        make("li", {}, make("a", { href: formatLink(view.name), "data-view": view.name }, icon(view.name), view.title)))))));
  document.getElementById("version").textContent = `· ${catalogue.version}`;
}

/** Updates the navigation links, so that they keep the text, and the run if the view can use it. */
function updateLinks(view, settings) {
  shared = { ...shared, ...Object.fromEntries(SHARED_SETTINGS.map((name) => [name, settings[name]])) };
  for (const link of navigation.querySelectorAll("a")) {
    const target = views.find((each) => each.name === link.dataset.view);
    const canUseRun = target.runs?.(catalogue).some((run) => run.name === shared.run);
    link.href = formatLink(target.name, target.runs ? { ...shared, run: canUseRun ? shared.run : null, text: canUseRun ? shared.text : null } : {});
    if (target === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** On narrow screens the navigation is a row that scrolls. */
function scrollToCurrentLink() {
  const link = navigation.querySelector("[aria-current]"), row = navigation;
  if (link && row.scrollWidth > row.clientWidth) row.scrollTo({ left: link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2 });
}

/** Messages about runs that the link names but that the view cannot use. */
function missingRuns(view, { run, with: second, training }) {
  const names = [...(view.runs ? [run, second] : []), view.name === "train" ? training : null].filter(Boolean);
  const served = view.runs?.(catalogue).map((each) => each.name) ?? catalogue.trainings.map((each) => each.run);
  return names.filter((name) => !served.includes(name)).map((name) =>
    `The link names the run “${name}”, which this server does not offer for this view. The view shows another run instead.`);
}

function showView({ moveFocus = true } = {}) {
  const { view: requested, settings } = readUrl();
  const view = views.find((each) => each.name === requested) ?? views[0];
  currentView?.abort();
  currentView = new AbortController();
  const container = make("section", { class: `view ${view.name}` });
  main.replaceChildren(container);
  document.title = `${view.title} · seqloom`;
  const current = { ...settings };
  const context = {
    catalogue,
    settings: current,
    isFirstVisit: !requested,
    signal: currentView.signal, // aborts when the user leaves the view
    link: (name, changes) => formatLink(name, changes),
    hasView: (name) => views.some((each) => each.name === name),
    update(changes) {
      Object.assign(current, changes);
      replaceUrl(view.name, current);
      updateLinks(view, current);
    },
  };
  updateLinks(view, current);
  scrollToCurrentLink();
  view.render(container, context);
  const missing = missingRuns(view, settings);
  if (missing.length) container.prepend(make("div", { class: "warning", role: "alert" }, missing.map((text) => make("p", {}, text))));
  if (!moveFocus) return;
  scrollTo(0, 0);
  container.querySelector("h1")?.focus({ preventScroll: true });
  announce(view.title);
}

async function start() {
  main.replaceChildren(loadingMessage("Loading the models …"));
  try {
    catalogue = await Catalogue.load();
  } catch (error) {
    main.replaceChildren(errorMessage(error, start));
    return;
  }
  listViews();
  addEventListener("hashchange", () => showView());
  showView({ moveFocus: false });
}

document.getElementById("theme").append(...themeButtons());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the URL fragment names the view
  main.focus();
});
start();
