// A matrix whose entries the user can edit, and its form in links: 5,1;4,3.

import { make } from "../components/dom.js";

/** A number, or the text itself if it is not a number. The server reports such texts. */
const parseEntry = (text) => (text.trim() !== "" && Number.isFinite(Number(text.replace("−", "-"))) ? Number(text.replace("−", "-")) : text);

export const packMatrix = (rows) => rows.map((row) => row.join(",")).join(";");
export const unpackMatrix = (text) => text.split(";").map((row) => row.split(",").map(parseEntry));

/** The matrix with other numbers of rows and columns. New entries are 0. */
export function resizeMatrix(rows, rowCount, columnCount) {
  return Array.from({ length: rowCount }, (_, row) => Array.from({ length: columnCount }, (_, column) => rows[row]?.[column] ?? 0));
}

/**
 * rows: numbers; rowNames: names of the rows, or null
 * onChange(rows): called after each edit; an entry that is not a number is passed on as text
 */
export function editableMatrix(symbol, rows, { rowNames, onChange }) {
  const entryName = (row, column) => (rowNames ? `${rowNames[row]}, column ${column + 1}` : `${symbol}, row ${row + 1}, column ${column + 1}`);
  const cell = (value, row, column) => {
    const input = make("input", { type: "text", class: "entry-field", inputmode: "decimal", autocomplete: "off", value: String(value), "aria-label": entryName(row, column) });
    const markInvalid = (entry) => input.setAttribute("aria-invalid", String(typeof entry !== "number"));
    input.addEventListener("input", () => {
      const entry = parseEntry(input.value);
      markInvalid(entry);
      rows = rows.map((each, at) => (at === row ? each.with(column, entry) : each));
      onChange(rows);
    });
    markInvalid(value);
    return make("td", {}, input);
  };
  return make("div", { class: "named-matrix" }, make("b", {}, symbol),
    make("table", { class: "matrix" }, make("tbody", {}, rows.map((values, row) => make("tr", {},
      rowNames && make("th", { scope: "row" }, rowNames[row]),
      values.map((value, column) => cell(value, row, column)))))));
}
