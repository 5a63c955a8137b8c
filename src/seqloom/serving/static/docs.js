// Renders /openapi.json as a page: every route with its parameters, request body and response.

const container = document.getElementById("routes");

function make(tag, content, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...[content].flat());
  return element;
}

function typeName(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((each) => typeName(each)).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items) || "any"}`;
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  return schema.type ?? "any";
}

function fieldTable(schema, schemas) {
  const resolved = schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
  if (!resolved?.properties) return make("p", make("code", typeName(schema)));
  const rows = Object.entries(resolved.properties).map(([name, field]) =>
    make("tr", [
      make("td", make("code", name)),
      make("td", typeName(field) + (resolved.required?.includes(name) ? ", required" : "")),
      make("td", field.description ?? ""),
    ]),
  );
  return make("table", make("tbody", rows));
}

function routeSection(path, method, route, schemas) {
  const section = make("section", make("h2", [make("span", method.toUpperCase(), "method"), path]));
  section.append(make("p", route.description ?? route.summary ?? ""));
  for (const parameter of route.parameters ?? [])
    section.append(make("p", [make("code", parameter.name), ` in ${parameter.in}: ${typeName(parameter.schema)}`]));
  for (const [type, body] of Object.entries(route.requestBody?.content ?? {}).slice(0, 1))
    section.append(make("h3", `Request: ${type}`), fieldTable(body.schema, schemas));
  for (const [type, body] of Object.entries(route.responses?.["200"]?.content ?? {}))
    section.append(make("h3", `Response: ${type}`), fieldTable(body.schema, schemas));
  const errors = Object.keys(route.responses ?? {}).filter((status) => status !== "200");
  if (errors.length) section.append(make("p", `Errors ${errors.join(", ")}: {"error": message, "kind": name}`));
  return section;
}

const api = await (await fetch("openapi.json")).json();
const schemas = api.components?.schemas ?? {};
container.replaceChildren(
  ...Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => routeSection(path, method, route, schemas)),
  ),
);
