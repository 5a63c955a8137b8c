// Saves a drawing as an SVG file, or as a PNG file of twice its resolution.

const PNG_SCALE = 2;

function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The drawing as a standalone SVG file. It must not depend on the style sheet. */
function svgBlob(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

/** The properties that the style sheet sets for drawings. */
const STYLE_PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

/** A copy of a drawing that does not depend on the style sheet. Hidden elements are left out. */
export function withComputedStyle(svg) {
  const copy = svg.cloneNode(true);
  const originals = [...svg.querySelectorAll("*")], hidden = [];
  [...copy.querySelectorAll("*")].forEach((element, index) => {
    const style = getComputedStyle(originals[index]);
    if (style.visibility === "hidden") hidden.push(element);
    for (const name of STYLE_PROPERTIES) element.setAttribute(name, style.getPropertyValue(name));
  });
  for (const element of hidden) element.remove();
  copy.removeAttribute("style");
  return copy;
}

export function saveSvg(svg, name) {
  saveBlob(svgBlob(svg), `${name}.svg`);
}

export async function savePng(svg, name, background) {
  const image = new Image();
  const url = URL.createObjectURL(svgBlob(svg));
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = svg.getAttribute("width") * PNG_SCALE;
  canvas.height = svg.getAttribute("height") * PNG_SCALE;
  const context = canvas.getContext("2d");
  context.fillStyle = background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  saveBlob(await new Promise((resolve) => canvas.toBlob(resolve, "image/png")), `${name}.png`);
}

/** Turns a text into a file name without special characters. */
export function fileName(text) {
  const name = text.toLowerCase().normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return name.slice(0, 40) || "seqloom";
}
