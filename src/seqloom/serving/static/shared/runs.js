// The runs that are served, and what there is to say about them.

import { ask } from "./server.js";

let names;
try {
  names = new Intl.DisplayNames(["en"], { type: "language" });
} catch {
  names = null;
}

/** "de" -> "German"; what is no language stays as it is. */
export function language(code) {
  try {
    return names?.of(code) ?? code;
  } catch {
    return code;
  }
}

export const short = (number) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);

export class Catalogue {
  constructor({ version, limits, runs }, trainings, reports) {
    Object.assign(this, { version, limits, runs, trainings, reports });
  }

  static async load() {
    const [served, { trainings }, { reports }] = await Promise.all(
      ["/api/runs", "/api/trainings", "/api/lab"].map((path) => ask(path)));
    return new Catalogue(served, trainings, reports);
  }

  of(...kinds) {
    return this.runs.filter((one) => kinds.includes(one.kind));
  }

  /** The one of this name, else the first. */
  named(runs, name) {
    return runs.find((one) => one.name === name) ?? runs[0];
  }
}

/** "German → English" */
export function direction(run) {
  if (run.languages.length > 3) return `${run.languages.length} pairs of languages`;
  return run.languages.map((pair) => `${language(pair.source)} → ${language(pair.target)}`).join(", ");
}

/** What is worth knowing, in a line. */
export function facts(run) {
  const heads = run.layers * run.heads > 1 ? `${run.layers} × ${run.heads} heads` : run.attention ? "attention" : "";
  return [direction(run), `${short(run.parameters)} parameters`, heads, run.engine].filter(Boolean).join(" · ");
}
