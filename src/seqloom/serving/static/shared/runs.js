// The served runs and their descriptions.

import { request } from "./api-client.js";

let displayNames;
try {
  displayNames = new Intl.DisplayNames(["en"], { type: "language" });
} catch {
  displayNames = null;
}

/** "de" -> "German"; a code that is not a language is returned unchanged. */
export function languageName(code) {
  try {
    return displayNames?.of(code) ?? code;
  } catch {
    return code;
  }
}

/** 1234567 -> "1.2M" */
export const compactNumber = (number) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);

/** What the server offers: runs, training logs and lab reports. */
export class Catalogue {
  constructor({ version, limits, runs, controls }, trainings, reports) {
    Object.assign(this, { version, limits, runs, controls, trainings, reports });
  }

  static async load() {
    const [served, { trainings }, { reports }] = await Promise.all(
      ["/api/runs", "/api/trainings", "/api/lab"].map((path) => request(path)));
    return new Catalogue(served, trainings, reports);
  }

  /** The runs of these kinds. */
  ofKind(...kinds) {
    return this.runs.filter((run) => kinds.includes(run.kind));
  }

  /** The run with this name, or the first one. */
  findRun(runs, name) {
    return runs.find((run) => run.name === name) ?? runs[0];
  }
}

/** "German → English" */
function languagePairs(run) {
  if (run.languages.length > 3) return `${run.languages.length} language pairs`;
  return run.languages.map((pair) => `${languageName(pair.source)} → ${languageName(pair.target)}`).join(", ");
}

/** The source languages of a run. */
export const sourceLanguages = (run) => [...new Set(run.languages.map((pair) => pair.source))];

/** The target languages of a run; with a source language, those that the run can translate it to. */
export function targetLanguages(run, source) {
  const reachable = run.targets.filter((target) => run.languages.some((pair) => pair.source === source && pair.target === target));
  return source && reachable.length ? reachable : run.targets;
}

/** The settings { run, source, target } for the opposite direction, of the same run if possible; undefined if no run has it. */
export function findReverse(runs, run, source, target) {
  const found = [run, ...runs].find((each) => each.languages.some((pair) => pair.source === target && pair.target === source));
  return source && target && found ? { run: found.name, source: target, target: source } : undefined;
}

/** One line about a run: languages, size, attention heads, engine. */
export function runSummary(run) {
  const heads = run.layers * run.heads > 1 ? `${run.layers} × ${run.heads} heads` : run.attention ? "attention" : "";
  return [languagePairs(run), `${compactNumber(run.parameters)} parameters`, heads, run.engine].filter(Boolean).join(" · ");
}
