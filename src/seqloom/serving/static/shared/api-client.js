// Requests to the server. Every failure becomes an ApiError with a message for the user.

import { make } from "../components/dom.js";

const STORED_KEY = "seqloom-key";
/** Maximum number of retries of a request, by the kind of error. */
const RETRIES = { busy: 2, starting: 30 };

export class ApiError extends Error {
  constructor(message, status = 0, kind = "unreachable") {
    super(message);
    this.status = status;
    this.kind = kind;
  }

  /** True if the same request can succeed later: the server did not respond, was busy, or failed. */
  get isTemporary() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function errorFrom(response) {
  const content = await response.json().catch(() => ({}));
  const message = content.error ?? `The server returned status ${response.status} without a message.`;
  return new ApiError(message, response.status, content.kind ?? "unknown");
}

function headers(key, type) {
  return { ...(type && { "Content-Type": type }), ...(key && { Authorization: `Bearer ${key}` }) };
}

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function send(path, body, { signal, type = "application/json" } = {}, attempt = 0) {
  const key = sessionStorage.getItem(STORED_KEY);
  const raw = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  const options = raw === undefined
    ? { headers: headers(key), signal }
    : { method: "POST", headers: headers(key, type), body: raw, signal };
  let response;
  try {
    response = await fetch(path.slice(1), options); // relative, because a proxy may add a path
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not respond. Check that “seqloom serve” is still running.");
  }
  if (response.ok) return response;
  if (response.status === 401 || response.status === 403) {
    // Another request may have asked for the key while this one was under way: use the new key first.
    if (sessionStorage.getItem(STORED_KEY) === key) await promptForKey(response.status === 403);
    return send(path, body, { signal, type }, attempt);
  }
  const error = await errorFrom(response);
  if (attempt < (RETRIES[error.kind] ?? 0)) {
    await sleep(Number(response.headers.get("Retry-After") ?? 1));
    return send(path, body, { signal, type }, attempt + 1);
  }
  throw error;
}

/** The fields of a request for the search settings of a link: beam width, length penalty, and whether END counts. */
export function searchFields({ beam, exponent, end }, { limits }) {
  return {
    ...(beam && { beam: Math.min(Number(beam), limits.beam) }),
    ...(exponent !== undefined && exponent !== null && { length_penalty: Number(exponent) }),
    ...(end && { length_counts_end: end === "yes" }),
  };
}

/** Returns the JSON response: request("/api/runs"), or request("/api/translate", { texts }, { signal }). */
export async function request(path, body, options) {
  return (await send(path, body, options)).json();
}

/** Yields server-sent events: for await (const { name, content } of streamEvents(…)) */
export async function* streamEvents(path, body, options) {
  const response = await send(path, body, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const events = buffer.split("\n\n");
    buffer = events.pop();
    for (const event of events) yield parseEvent(event);
  }
}

function parseEvent(event) {
  const lines = event.split("\n");
  const field = (prefix) => lines.find((line) => line.startsWith(`${prefix}: `))?.slice(prefix.length + 2) ?? "";
  const name = field("event"), content = JSON.parse(field("data") || "{}");
  if (name === "error") throw new ApiError(content.error, 500, content.kind);
  return { name, content };
}

let prompt = null;

/** Asks for an API key. Concurrent requests share one dialog. */
function promptForKey(isWrong) {
  prompt ??= new Promise((resolve) => {
    const field = make("input", { type: "password", id: "key", autocomplete: "off", required: true });
    const message = isWrong ? "The server does not accept this key. Check its spelling." : "This server requires an API key.";
    const dialog = make("dialog", { class: "card", "aria-labelledby": "key-title" },
      make("form", { method: "dialog" },
        make("h2", { id: "key-title" }, "API key required"),
        make("p", {}, message),
        make("label", { for: "key" }, "Key"), field,
        make("button", { class: "primary" }, "Continue")));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(STORED_KEY, field.value);
      dialog.remove();
      prompt = null;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return prompt;
}
