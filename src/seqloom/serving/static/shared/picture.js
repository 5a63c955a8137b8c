// Pictures to take away: a drawing as an SVG file, or as a PNG twice as fine.

const FINE = 2;

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The drawing by itself. It uses no classes, so that it looks the same anywhere. */
function alone(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

export function saveSvg(svg, name) {
  save(alone(svg), `${name}.svg`);
}

export async function savePng(svg, name, ground) {
  const image = new Image();
  const address = URL.createObjectURL(alone(svg));
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = svg.getAttribute("width") * FINE;
  canvas.height = svg.getAttribute("height") * FINE;
  const pen = canvas.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  save(await new Promise((resolve) => canvas.toBlob(resolve, "image/png")), `${name}.png`);
}

/** A name for a file, from words. */
export function fileName(words) {
  const kept = words.toLowerCase().normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return kept.slice(0, 40) || "seqloom";
}
