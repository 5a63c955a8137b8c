// Example sentences by source language.

const SENTENCES = {
  de: ["Ich habe ihn gestern gesehen.", "Das gefällt mir.", "Wo ist der Bahnhof?", "Ein Mann mit einem Hut liest ein Buch."],
  en: ["I saw him yesterday.", "I like it.", "Where is the station?", "A man with a hat is reading a book."],
  fr: ["Je l'ai vu hier.", "Ça me plaît.", "Où est la gare ?", "Un homme avec un chapeau lit un livre."],
  es: ["Lo vi ayer.", "Me gusta.", "¿Dónde está la estación?"],
};

/** Example sentences in the source language of a run. */
export function exampleSentences(run) {
  return SENTENCES[run.languages[0]?.source] ?? [];
}
