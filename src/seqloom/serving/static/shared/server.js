// Asking the service. Everything that goes wrong becomes a Refusal with a sentence.

import { make } from "./dom.js";

const KEY = "seqloom-key";
const PATIENCE = { busy: 2, starting: 30 };

export class Refusal extends Error {
  constructor(message, status = 0, kind = "unreachable") {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

async function refusal(response) {
  const found = await response.json().catch(() => ({}));
  const words = found.error ?? `The service answered ${response.status}, and nothing else.`;
  return new Refusal(words, response.status, found.kind ?? "unknown");
}

function headers(type) {
  const key = sessionStorage.getItem(KEY);
  return { ...(type && { "Content-Type": type }), ...(key && { Authorization: `Bearer ${key}` }) };
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function send(path, body, { signal, type = "application/json" } = {}, tries = 0) {
  const raw = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  const how = raw === undefined
    ? { headers: headers(), signal }
    : { method: "POST", headers: headers(type), body: raw, signal };
  let response;
  try {
    response = await fetch(path, how);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The service does not answer. Is “seqloom serve” still running?");
  }
  if (response.ok) return response;
  if (response.status === 401 || response.status === 403) {
    await askForKey(response.status === 403);
    return send(path, body, { signal, type }, tries);
  }
  const problem = await refusal(response);
  if (tries < (PATIENCE[problem.kind] ?? 0)) {
    await pause(Number(response.headers.get("Retry-After") ?? 1));
    return send(path, body, { signal, type }, tries + 1);
  }
  throw problem;
}

/** What a route answers: ask("/api/runs"), or ask("/api/translate", { texts }, { signal }). */
export async function ask(path, body, options) {
  return (await send(path, body, options)).json();
}

/** Server-sent events, one by one: for await (const { name, content } of listen(…)) */
export async function* listen(path, body, options) {
  const response = await send(path, body, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const whole = waiting.split("\n\n");
    waiting = whole.pop();
    for (const each of whole) yield parsed(each);
  }
}

function parsed(event) {
  const lines = event.split("\n");
  const of = (field) => lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2) ?? "";
  const name = of("event"), content = JSON.parse(of("data") || "{}");
  if (name === "error") throw new Refusal(content.error, 0, content.kind);
  return { name, content };
}

let asking = null;

/** Whoever asks at the same time waits for the same answer. */
function askForKey(wrong) {
  asking ??= new Promise((resolve) => {
    const field = make("input", { type: "password", id: "key", autocomplete: "off", required: true });
    const words = wrong ? "This key is not known here. Check its spelling." : "Whoever runs this service has given out keys.";
    const dialog = make("dialog", { class: "card", "aria-labelledby": "key-title" },
      make("form", { method: "dialog" },
        make("h2", { id: "key-title" }, "A key is needed"),
        make("p", {}, words),
        make("label", { for: "key" }, "Key"), field,
        make("button", { class: "first" }, "Go on")));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEY, field.value);
      dialog.remove();
      asking = null;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
