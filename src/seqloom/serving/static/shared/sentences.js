// Divides texts: into sentences for the analysis views, and into parts that the server accepts.

const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });

/** After a short word, a full stop may belong to an abbreviation, so a part never ends there. */
const SAFE_END = /(?:\p{L}{4,}["”’)]*[.…]|[!?。！？])["”’)]*\s*$|\n\s*$/u;

/** The sentences of a text, without the white space between them. */
export function splitSentences(text) {
  return [...segmenter.segment(text)].map(({ segment }) => segment.trim()).filter(Boolean);
}

/** The number of characters of a text as the server counts them: Unicode code points. */
export const countCharacters = (text) => [...text].length;

/**
 * Divides a text at sentence ends into parts of about `length` characters. The joined parts are the text, except for
 * white space at its end. White space between two parts belongs to the second one.
 */
export function textParts(text, length) {
  const parts = [];
  let current = "";
  for (const { segment } of segmenter.segment(text)) {
    if (current.length + segment.length > length && SAFE_END.test(current)) {
      const part = current.trimEnd();
      parts.push(part);
      current = current.slice(part.length);
    }
    current += segment;
  }
  return [...parts, current.trimEnd()].filter(Boolean);
}
