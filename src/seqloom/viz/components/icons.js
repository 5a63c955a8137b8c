// Icons, as SVG paths of one stroke width.

import { makeSvg } from "./dom.js";

const PATHS = {
  translate: "M4 6h9M8.5 4v2M6 6c1 4 3.5 6.5 7 8M11 6c-1 4-3.5 6.5-7 8M13 20l4-9 4 9M14.5 17h5",
  complete: "M4 7h16M4 12h10M4 17h6M14 17h.01M17 17h.01M20 17h.01",
  caption: "M4 5h16v11H4zM4 13l4-4 4 4 3-3 5 5M7 20h10",
  forecast: "M4 19h16M4 15l4-5 4 3M12 13l3-4M16.5 7.5l1-1M19 5l.5-.5",
  label: "M4 5h8l8 8-7 7-9-9zM8 9h.01",
  attention: "M4 4h4v4H4zM10 10h4v4h-4zM16 16h4v4h-4zM16 4h4v4h-4zM4 16h4v4H4z",
  search: "M4 12h4M8 12c3 0 3-7 6-7h6M8 12h12M8 12c3 0 3 7 6 7h3",
  inside: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 4v5M12 15v5M4 12h5M15 12h5",
  compare: "M4 5h6v14H4zM14 5h6v14h-6zM6.5 9h1M6.5 12h1M16.5 9h1M16.5 12h1",
  train: "M4 4v16h16M7 8c2 7 6 8 13 8.5",
  lab: "M9 4h6M10 4v6l-5 8.5c-.5.9 0 1.5 1 1.5h12c1 0 1.5-.6 1-1.5L14 10V4M8 15h8",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4",
  dark: "M19 14.5A7.5 7.5 0 0 1 9.5 5 7.5 7.5 0 1 0 19 14.5z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  play: "M8 5v14l11-7z",
  pause: "M8 5v14M16 5v14",
  undo: "M9 7 5 11l4 4M5 11h9a5 5 0 0 1 0 10h-2",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  close: "M6 6l12 12M18 6 6 18",
  save: "M12 4v11M8 11l4 4 4-4M5 20h14",
  swap: "M4 8h14M15 5l3 3-3 3M20 16H6M9 13l-3 3 3 3",
};

export function icon(name, size = 20) {
  return makeSvg("svg", { class: "icon", viewBox: "0 0 24 24", width: size, height: size, "aria-hidden": "true" },
    makeSvg("path", { d: PATHS[name] }));
}
