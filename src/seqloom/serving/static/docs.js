// Draws /openapi.json as a page: every route, what it takes, and what it answers.

const place = document.getElementById("routes");

function made(tag, content, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...[content].flat());
  return element;
}

function typeOf(schema, all) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, all)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items, all) || "anything"}`;
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  return schema.type ?? "anything";
}

function resolved(schema, all) {
  return schema?.$ref ? all[schema.$ref.split("/").pop()] : schema;
}

function fields(schema, all) {
  const whole = resolved(schema, all);
  if (!whole?.properties) return made("p", made("code", typeOf(schema, all)));
  const rows = Object.entries(whole.properties).map(([name, one]) =>
    made("tr", [
      made("td", made("code", name)),
      made("td", typeOf(one, all) + (whole.required?.includes(name) ? ", needed" : "")),
      made("td", one.description ?? ""),
    ]),
  );
  return made("table", made("tbody", rows));
}

function route(path, method, one, all) {
  const section = made("section", made("h2", [made("span", method.toUpperCase(), "method"), path]));
  section.append(made("p", one.description ?? one.summary ?? ""));
  for (const parameter of one.parameters ?? [])
    section.append(made("p", [made("code", parameter.name), ` in ${parameter.in}: ${typeOf(parameter.schema, all)}`]));
  for (const [kind, body] of Object.entries(one.requestBody?.content ?? {}).slice(0, 1))
    section.append(made("h3", `Takes ${kind}`), fields(body.schema, all));
  for (const [kind, body] of Object.entries(one.responses?.["200"]?.content ?? {}))
    section.append(made("h3", `Answers ${kind}`), fields(body.schema, all));
  const others = Object.entries(one.responses ?? {}).filter(([status]) => status !== "200");
  if (others.length)
    section.append(made("p", `Refuses with ${others.map(([status]) => status).join(", ")}: {"error": sentence, "kind": name}`));
  return section;
}

const found = await (await fetch("/openapi.json")).json();
const all = found.components?.schemas ?? {};
place.replaceChildren(
  ...Object.entries(found.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => route(path, method, one, all)),
  ),
);
