// The types of /openapi.json as tables of fields. Nested types can be expanded.

import { make } from "../components/dom.js";

const referenceName = (schema) => schema?.$ref?.split("/").pop();

/** The named types of /openapi.json. */
export class Types {
  constructor(schemas) {
    this.schemas = schemas;
  }

  /** The schema itself, or the named type to which it refers. */
  resolve(schema = {}) {
    return schema.$ref ? this.schemas[referenceName(schema)] : schema;
  }

  /** The named types with fields that a schema contains, without those of their own fields. */
  nested(schema = {}) {
    if (schema.$ref) return this.resolve(schema).properties ? [referenceName(schema)] : [];
    return [...(schema.anyOf ?? []), ...(schema.allOf ?? []), ...[schema.items ?? []].flat(), ...(typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [])].flatMap((each) => this.nested(each));
  }
}

/** A type in a few words: "list of text or null". */
export function typeName(schema) {
  if (!schema) return "any";
  if (schema.$ref) return referenceName(schema);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeName))].join(" or ");
  if (schema.allOf) return schema.allOf.map(typeName).join(" and ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.prefixItems) return `(${schema.prefixItems.map(typeName).join(", ")})`;
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  if (schema.format === "binary") return "file";
  return { string: "text", integer: "whole number", number: "number", boolean: "true or false", object: "object", null: "null" }[schema.type] ?? "any";
}

/** Limits and default of a field, as text. */
function constraints(schema) {
  const parts = [schema, ...(schema.anyOf ?? [])];
  const find = (name) => parts.map((part) => part[name]).find((value) => value !== undefined);
  const limits = [["minimum", "at least"], ["exclusiveMinimum", "more than"], ["maximum", "at most"], ["exclusiveMaximum", "less than"], ["minItems", "number of items at least"], ["maxItems", "number of items at most"]];
  const texts = limits.filter(([name]) => find(name) !== undefined).map(([name, words]) => `${words} ${find(name)}`);
  const hasDefault = schema.default !== undefined && schema.default !== null && schema.default !== "";
  return [...texts, ...(hasDefault ? [`default ${JSON.stringify(schema.default)}`] : [])].join(", ");
}

/**
 * A row for each field. A field with a nested type has a further row, which can be opened.
 * parents: names of the types that contain this one; isRequest: true if the table marks required fields
 */
export function fieldTable(schema, types, { parents = [], isRequest }) {
  return make("div", { class: "scroll" }, make("table", { class: "fields" }, make("tbody", {}, Object.entries(schema.properties).flatMap(([name, field]) => {
    const limits = constraints(field);
    const nested = [...new Set(types.nested(field))].filter((each) => !parents.includes(each));
    return [
      make("tr", {},
        make("th", { scope: "row" }, make("code", {}, name)),
        make("td", {}, typeName(field), isRequest && schema.required?.includes(name) && make("b", {}, ", required"), limits && make("small", {}, limits)),
        make("td", {}, field.description ?? "")),
      ...nested.map((each) => make("tr", { class: "nested" }, make("td", { colspan: "3" }, nestedType(each, types, { parents: [...parents, each], isRequest })))),
    ];
  }))));
}

function nestedType(name, types, options) {
  const details = make("details", {}, make("summary", {}, `Fields of ${name}`));
  // Filled when it is opened, because types can be nested deeply.
  details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(fieldTable(types.schemas[name], types, options)));
  return details;
}
