// Renders /openapi.json as a page: every route with its fields, a curl command, and a form that sends a request.

import { make } from "./components/dom.js";
import { fieldTable, Types, typeName } from "./reference/types.js";
import { requestForm } from "./reference/request-form.js";

const GROUPS = { predict: "Predictions", stream: "Streams", inspect: "Analysis", LibreTranslate: "LibreTranslate", OpenAI: "OpenAI", runs: "Runs", page: "Training logs and reports", health: "Health" };

/** The fields of a request or response body. */
function bodyFields(title, contentType, body, types) {
  const schema = types.resolve(body.schema);
  return [make("h4", {}, `${title}: `, make("code", {}, contentType)),
    schema.description && make("p", {}, schema.description),
    schema.properties ? fieldTable(schema, types, { isRequest: title === "Request" }) : make("p", {}, make("code", {}, typeName(body.schema)))];
}

function parameterTable(parameters, types) {
  if (!parameters?.length) return null;
  const properties = Object.fromEntries(parameters.map(({ name, schema, description, in: place }) => [name, { ...schema, description: `${description} (${place})` }]));
  return [make("h4", {}, "Parameters"), fieldTable({ properties, required: parameters.filter((each) => each.required).map((each) => each.name) }, types, { isRequest: true })];
}

function errorTable(responses) {
  const errors = Object.entries(responses ?? {}).filter(([status]) => status !== "200");
  if (!errors.length) return null;
  return make("details", {}, make("summary", {}, `Errors: ${errors.map(([status]) => status).join(", ")}`),
    make("p", {}, "The body is ", make("code", {}, '{"error": message, "kind": name, "problems": […]}'), ". The routes under /v1 use the format of OpenAI."),
    make("table", {}, make("tbody", {}, errors.map(([status, { description }]) => make("tr", {}, make("th", { scope: "row" }, status), make("td", {}, description))))));
}

function routeSection(path, method, route, types) {
  const [requestBody] = Object.entries(route.requestBody?.content ?? {});
  const others = Object.keys(route.requestBody?.content ?? {}).slice(1);
  const key = `${method}${path}`.replace(/\W+/g, "-");
  const section = make("details", { class: "route", id: key },
    make("summary", {}, make("h3", {}, make("span", { class: "method" }, method.toUpperCase()), path), make("span", { class: "route-summary" }, route.summary)));
  // The content is created when the route is opened for the first time: the page has about forty routes.
  section.addEventListener("toggle", () => {
    if (section.querySelector(".route-body")) return;
    section.append(make("div", { class: "route-body" },
      make("p", {}, route.description),
      route.security?.some((each) => Object.keys(each).length) && make("p", { class: "note" }, "If the server requires API keys, send one: ", make("code", {}, "Authorization: Bearer KEY"), route.security.some((each) => !Object.keys(each).length) ? ", or in the field api_key." : "."),
      parameterTable(route.parameters, types),
      requestBody && bodyFields("Request", ...requestBody, types),
      others.length > 0 && make("p", { class: "note" }, `Also accepted: ${others.join(", ")}.`),
      Object.entries(route.responses?.["200"]?.content ?? {}).map(([type, body]) => bodyFields("Response", type, body, types)),
      errorTable(route.responses),
      requestForm(path, method, route, types)));
  });
  return section;
}

async function start() {
  const api = await (await fetch("openapi.json")).json();
  const types = new Types(api.components?.schemas ?? {});
  const routes = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => ({ path, method, route })));
  const groupOf = ({ route }) => GROUPS[route.tags?.[0]] ?? "Other";
  const groups = [...Object.values(GROUPS), "Other"].map((title) => [title, routes.filter((each) => groupOf(each) === title)]);
  document.getElementById("routes").replaceChildren(...groups.filter(([, members]) => members.length).map(([title, members]) =>
    make("section", {}, make("h2", {}, title), members.map(({ path, method, route }) => routeSection(path, method, route, types)))));
  const linked = location.hash && document.getElementById(location.hash.slice(1));
  if (linked) {
    linked.open = true;
    linked.scrollIntoView();
  }
}

start();
