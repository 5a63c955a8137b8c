// Ask a run, and show what it says: enough to see that all is well.

const run = document.getElementById("run");
const text = document.getElementById("text");
const answer = document.getElementById("answer");
const facts = document.getElementById("facts");

const asking = {
  translation: (name, given) => ["/api/translate", { run: name, texts: [given] }],
  labels: (name, given) => ["/api/label", { run: name, texts: [given] }],
  "language-model": (name, given) => ["/api/complete", { run: name, prompts: [given] }],
};
const reading = {
  translation: (found) => found.translations[0].text,
  labels: (found) => found.labels[0].map((one) => one.label).join(", "),
  "language-model": (found) => found.completions[0].outputs[0].text,
};

let known = [];

async function fetched(path, body) {
  const how = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, how);
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

function describe() {
  const one = known.find((each) => each.name === run.value);
  if (!one) return;
  const pairs = one.languages.map((pair) => `${pair.source} → ${pair.target}`).join(", ");
  const size = `${(one.parameters / 1e6).toFixed(1)} million parameters, ${one.engine}`;
  facts.textContent = [one.kind, pairs, size].filter(Boolean).join(" · ");
}

async function ask(event) {
  event.preventDefault();
  const kind = known.find((each) => each.name === run.value).kind;
  answer.className = "";
  answer.textContent = "…";
  try {
    answer.textContent = reading[kind](await fetched(...asking[kind](run.value, text.value)));
  } catch (error) {
    answer.className = "error";
    answer.textContent = error.message;
  }
}

async function open() {
  const found = await fetched("/api/runs");
  known = found.runs.filter((one) => one.kind in asking);
  run.replaceChildren(...known.map((one) => new Option(one.name)));
  describe();
  if (!known.length) facts.textContent = found.runs.map((one) => `${one.name}: ${one.kind}`).join(", ");
}

run.addEventListener("change", describe);
document.getElementById("ask").addEventListener("submit", ask);
open();
