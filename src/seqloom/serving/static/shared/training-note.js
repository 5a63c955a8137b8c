// A note about runs of small models that were trained for minutes, such as the run of `seqloom demo`.

import { make } from "../components/dom.js";
import { compactNumber } from "./runs.js";
import { request } from "./api-client.js";

/** Smaller models that were trained for a shorter time get the note. */
const SMALL = 20_000_000, SHORT_SECONDS = 3600;

/** The note, or null if the run is larger, was trained for longer, or has no event log. */
export async function trainingNote(catalogue, run, signal) {
  const status = catalogue.trainings.find((each) => each.run === run.name);
  if (!status || run.parameters >= SMALL) return null;
  try {
    const { events } = await request(`/api/trainings/${encodeURIComponent(run.name)}?after=0`, undefined, { signal });
    const start = events.find((event) => event.event === "start");
    const seconds = status.time - start?.time;
    if (!(seconds < SHORT_SECONDS)) return null;
    const duration = seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} minutes`;
    const examples = start.examples ? ` on ${compactNumber(start.examples)} examples` : "";
    return make("p", { class: "training-note" },
      `${run.name} is a small model (${compactNumber(run.parameters)} parameters), trained for ${duration}${examples}. Expect mistakes.`);
  } catch {
    return null; // the note is not worth an error message
  }
}
