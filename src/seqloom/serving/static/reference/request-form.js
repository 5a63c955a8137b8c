// A form that sends a request to a route, and the same request as a curl command.

import { make } from "../components/dom.js";
import { labelledField } from "../components/controls.js";
import { copyButton } from "../shared/fields.js";

const STORED_KEY = "seqloom-key"; // the key of the other pages
const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const storedKey = () => sessionStorage.getItem(STORED_KEY) ?? "";
const isFile = (schema) => schema?.format === "binary";

/** The type of the body, its example and its file field. The form sends the first type that the route accepts. */
function describeBody(route, types) {
  const [entry] = Object.entries(route.requestBody?.content ?? {});
  if (!entry) return { type: null };
  const schema = types.resolve(entry[1].schema);
  if (isFile(schema)) return { type: entry[0], wholeBody: true };
  const fileField = Object.entries(schema.properties ?? {}).find(([, field]) => isFile(field))?.[0];
  const { [fileField]: _, ...example } = schema.examples?.[0] ?? {};
  return { type: entry[0], fileField, example };
}

export function requestForm(path, method, route, types) {
  const body = describeBody(route, types), inputs = new Map();
  const bodyField = body.example && make("textarea", { rows: Math.min(14, JSON.stringify(body.example, null, 2).split("\n").length + 1), class: "code-field", spellcheck: "false", value: JSON.stringify(body.example, null, 2) });
  const fileInput = (body.wholeBody || body.fileField) && make("input", { type: "file" });
  const keyField = route.security && make("input", { type: "password", autocomplete: "off", value: storedKey() });
  for (const parameter of route.parameters ?? []) inputs.set(parameter, make("input", { type: "text", autocomplete: "off", value: String(parameter.schema?.examples?.[0] ?? parameter.examples?.[0] ?? "") }));
  const command = make("pre", { tabindex: "0", "aria-label": "curl command" }), result = make("div", { class: "response", role: "status" });

  /** The address with the values of the parameters. Relative, because a proxy may add a path. */
  function address() {
    let filled = path.slice(1);
    const query = new URLSearchParams();
    for (const [parameter, input] of inputs) {
      if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (parameter.in === "query" && input.value) query.set(parameter.name, input.value);
    }
    return new URL(filled + (query.size ? `?${query}` : ""), document.baseURI);
  }

  function curl() {
    const key = keyField?.value, parts = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${shellQuote(address().href)}`];
    if (key) parts.push(`-H ${shellQuote(`Authorization: Bearer ${key}`)}`);
    if (body.wholeBody) parts.push("-H 'Content-Type: image/png'", "--data-binary @image.png");
    else if (body.fileField) parts.push(`-F ${body.fileField}=@letter.txt`, ...Object.entries(parseFields() ?? body.example).map(([name, value]) => `-F ${shellQuote(`${name}=${value}`)}`));
    else if (bodyField) parts.push("-H 'Content-Type: application/json'", `-d ${shellQuote(compact(bodyField.value))}`);
    return parts.join(" \\\n  ");
  }

  const parseFields = () => {
    try {
      return JSON.parse(bodyField.value);
    } catch {
      return null;
    }
  };

  function requestBody() {
    if (body.wholeBody) return fileInput.files[0] ?? new Blob();
    if (!body.fileField) return bodyField?.value;
    const form = new FormData();
    Object.entries(parseFields() ?? {}).forEach(([name, value]) => form.set(name, value));
    if (fileInput.files[0]) form.set(body.fileField, fileInput.files[0]);
    return form;
  }

  async function send() {
    if (keyField) sessionStorage.setItem(STORED_KEY, keyField.value);
    // The browser sets the type of a form with a file itself, because it contains the boundary of the parts.
    const type = body.wholeBody ? fileInput.files[0]?.type : body.fileField ? null : body.type;
    const headers = { ...(type && { "Content-Type": type }), ...(keyField?.value && { Authorization: `Bearer ${keyField.value}` }) };
    result.replaceChildren(make("p", {}, "Waiting for the response …"));
    const started = performance.now();
    try {
      const response = await fetch(address(), { method: method.toUpperCase(), headers, body: requestBody() });
      const text = await response.text(), milliseconds = Math.round(performance.now() - started);
      result.replaceChildren(
        make("p", {}, make("b", {}, `Status ${response.status}`), ` · ${milliseconds} ms · ${response.headers.get("Content-Type") ?? "no content"}`),
        make("pre", { tabindex: "0", "aria-label": "Response" }, indent(text)));
    } catch {
      result.replaceChildren(make("p", { role: "alert" }, "The server does not respond. Check that “seqloom serve” is still running."));
    }
  }

  const update = () => (command.textContent = curl());
  const form = make("form", { class: "try", on: { input: update, submit(event) {
    event.preventDefault();
    send();
  } } },
  make("h4", {}, "Try it"),
  [...inputs].map(([parameter, input]) => labelledField(`${parameter.name}${parameter.required ? "" : " (optional)"}`, input)),
  bodyField && labelledField(body.fileField ? "Fields" : "Body", bodyField),
  fileInput && labelledField("File", fileInput),
  keyField && labelledField("API key (optional)", keyField),
  make("div", { class: "tools" }, make("button", { type: "submit", class: "primary" }, "Send"), copyButton("Copy curl command", curl, { iconName: "copy", onFailure: () => "Select the command and copy it" })),
  command, result);
  update();
  return form;
}

/** JSON on one line; other text unchanged. */
function compact(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

/** JSON with indentation; other text unchanged. */
function indent(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
