// Validates recipes with ajv-errors and with the JSON service of Visual Studio Code.
//
// Usage: node json_schema_engines.cjs FOLDER SCHEMA RECIPES
//   FOLDER   folder in which npm has installed the packages
//   SCHEMA   JSON Schema
//   RECIPES  JSON file with a list of recipes
//
// Prints a list with one object per recipe: {ajv: {path: [messages]}, vscode: {path: [messages]}}

const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const [folder, schemaFile, recipesFile] = process.argv.slice(2);
const load = createRequire(path.join(folder, "index.js"));
const Ajv = load("ajv");
const service = load("vscode-json-languageservice");
const jsonc = load("jsonc-parser");
const schema = JSON.parse(fs.readFileSync(schemaFile));
const recipes = JSON.parse(fs.readFileSync(recipesFile));

const ajv = new Ajv({ allErrors: true });
load("ajv-errors")(ajv);
const validate = ajv.compile(schema);

const editor = service.getLanguageService({});
editor.configure({ schemas: [{ uri: "memory://recipe", fileMatch: ["*.json"], schema }] });

function group(problems) {
  const messages = {};
  for (const [place, message] of problems) (messages[place] ??= []).push(message);
  return messages;
}

function checkWithAjv(recipe) {
  validate(recipe);
  // The keyword `if` repeats that something inside `then` or `else` is invalid.
  const errors = (validate.errors ?? []).filter((error) => error.keyword !== "if");
  return group(errors.map((error) => [error.instancePath, error.message]));
}

async function checkWithEditor(recipe) {
  const text = JSON.stringify(recipe);
  const document = service.TextDocument.create("memory://recipe.json", "json", 1, text);
  const problems = await editor.doValidation(document, editor.parseJSONDocument(document));
  return group(
    problems.map(({ range, message }) => {
      const { path: keys } = jsonc.getLocation(text, document.offsetAt(range.start));
      return [keys.map((key) => `/${key}`).join(""), message];
    }),
  );
}

async function main() {
  const results = [];
  for (const recipe of recipes) {
    results.push({ ajv: checkWithAjv(recipe), vscode: await checkWithEditor(recipe) });
  }
  console.log(JSON.stringify(results));
}

main();
