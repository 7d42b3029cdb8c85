import type { Tone } from "~/ui/badge";

/** The colours and the typeface of a drawing. */
export interface Palette {
  surface: string;
  hover: string;
  chosen: string;
  text: string;
  quiet: string;
  line: string;
  accent: string;
  tones: Readonly<Record<Tone, string>>;
  font: string;
}

const TONES: readonly Tone[] = ["neutral", "info", "good", "warn", "bad", "violet"];

function paletteOf(colour: (token: string) => string, font: string): Palette {
  const tones = Object.fromEntries(TONES.map((tone) => [tone, colour(tone)])) as Record<Tone, string>;
  const [surface, hover, chosen, text, quiet, line, accent] = ["surface", "hover", "chosen", "text", "text-quiet", "line-strong", "accent"].map(colour) as [string, string, string, string, string, string, string];
  return { surface, hover, chosen, text, quiet, line, accent, tones, font };
}

/** The tokens of the page, whichever its theme is. */
export const SCREEN: Palette = paletteOf((token) => `var(--${token})`, "var(--mono)");

/** The colours of the light theme as they are, for a drawing that leaves the page. */
export function paper(): Palette {
  const probe = document.createElement("span");
  probe.style.colorScheme = "light";
  document.body.append(probe);
  const colour = (token: string) => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const palette = paletteOf(colour, "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace");
  probe.remove();
  return palette;
}
