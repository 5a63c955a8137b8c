// The view and its settings live in the URL fragment, #/view?name=value, so that every state has a link.

/** Reads the view and its settings from the URL. */
export function readUrl() {
  const [, view, query = ""] = location.hash.match(/^#\/?([^?]*)\??(.*)$/s) ?? ["", ""];
  return { view, settings: Object.fromEntries(new URLSearchParams(query)) };
}

/** Formats a link to a view. Leaves out settings that are undefined, null or empty. */
export function formatLink(view, settings = {}) {
  const present = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** Writes the settings to the URL without adding an entry to the browser history. */
export function replaceUrl(view, settings) {
  history.replaceState(null, "", formatLink(view, settings));
}
