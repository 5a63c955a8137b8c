// Every state has a link: #/view?name=value, kept while people type and read when they come.

/** The view and its settings that the address names. */
export function read() {
  const [, view, query = ""] = location.hash.match(/^#\/?([^?]*)\??(.*)$/s) ?? ["", ""];
  return { view, settings: Object.fromEntries(new URLSearchParams(query)) };
}

export function format(view, settings = {}) {
  const kept = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** Without a new entry in the history: it is the same thing, a little changed. */
export function keep(view, settings) {
  history.replaceState(null, "", format(view, settings));
}
