import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { type Drawn, Sheet } from "./sheet";

/** The whole ladder as the text of an SVG file. */
export function svgOf(drawn: Drawn): string {
  const room = document.createElement("div");
  const root = createRoot(room);
  flushSync(() => root.render(<Sheet drawn={drawn} top={0} bottom={drawn.layout.height} />));
  const svg = room.firstElementChild;
  const text = svg === null ? "" : new XMLSerializer().serializeToString(svg);
  root.unmount();
  return text;
}

/** Saves the ladder as `NAME.svg`. */
export function downloadSvg(name: string, drawn: Drawn): void {
  const url = URL.createObjectURL(new Blob([svgOf(drawn)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.svg`;
  link.click();
  URL.revokeObjectURL(url);
}
