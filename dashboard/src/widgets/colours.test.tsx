import { expect, test } from "vitest";
import "~/ui/tokens.css";
import { clientColour } from "./badges";

/** Red, green and blue, linear, from 0 to 1. */
type Light = readonly [number, number, number];

const GROUNDS = ["--ground", "--surface", "--raised", "--hover", "--chosen"];
const CLIENTS = [1, 2, 3, 4, 5, 6].map((number) => `--client-${number}`);
const TONES = ["neutral", "info", "good", "warn", "bad", "violet"];
const THEMES = ["light", "dark"];

/** A colour of tokens.css as the browser shows it in a theme. */
function shown(name: string, theme: string): Light {
  const probe = document.createElement("i");
  document.documentElement.dataset["theme"] = theme;
  document.body.append(probe);
  probe.style.color = `var(${name})`;
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g)?.map((part) => Number(part) / 255) ?? [];
  probe.remove();
  delete document.documentElement.dataset["theme"];
  const [red = 0, green = 0, blue = 0] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return [red, green, blue];
}

// WCAG 2.2, "relative luminance" and "contrast ratio"
const luminance = ([red, green, blue]: Light) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
function contrast(one: Light, other: Light): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const times = (rows: readonly Light[], [red, green, blue]: Light) => rows.map(([a, b, c]) => a * red + b * green + c * blue) as unknown as Light;

// how colours look without one kind of cone: Machado, Oliveira, Fernandes 2009, severity 1
const EYES: Readonly<Record<string, readonly Light[]>> = {
  "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** Oklab, in which equal distances look equally far apart: https://bottosson.github.io/posts/oklab/ */
function oklab(light: Light): Light {
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], light);
  const roots = cones.map((cone) => Math.cbrt(Math.max(0, cone))) as unknown as Light;
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], roots);
}

const apart = (one: Light, other: Light) => Math.hypot(...oklab(one).map((part, index) => part - (oklab(other)[index] ?? 0)));

test.each(THEMES)("text has a contrast of 4.5 and marks have one of 3 on every ground in the %s theme", (theme) => {
  const texts = ["--text", "--text-quiet", "--accent", ...CLIENTS, ...TONES.map((tone) => `--${tone}`)];
  const low: string[] = [];
  for (const ground of GROUNDS) {
    for (const text of texts) if (contrast(shown(text, theme), shown(ground, theme)) < 4.5) low.push(`${text} on ${ground}`);
    if (contrast(shown("--line-strong", theme), shown(ground, theme)) < 3) low.push(`--line-strong on ${ground}`);
  }
  for (const tone of TONES) if (contrast(shown(`--${tone}`, theme), shown(`--${tone}-soft`, theme)) < 4.5) low.push(tone);
  if (contrast(shown("--on-accent", theme), shown("--accent", theme)) < 4.5) low.push("--on-accent");
  expect(low).toEqual([]);
});

test.each(THEMES)("the colours of the clients stay apart for everybody in the %s theme", (theme) => {
  const near: string[] = [];
  for (const [eye, seen] of Object.entries(EYES)) {
    const colours = CLIENTS.map((name) => times(seen, shown(name, theme)));
    for (const [index, one] of colours.entries()) {
      // 0.02 is the least that is seen side by side
      for (const other of colours.slice(index + 1)) if (apart(one, other) < 0.1) near.push(`${CLIENTS[index]} with ${eye}`);
    }
  }
  expect(near).toEqual([]);
});

test("the first six of both kinds of clients have marks of their own, which never change", () => {
  const labels = ["s", "m"].flatMap((kind) => [1, 2, 3, 4, 5, 6].map((number) => `${kind}${number}`));
  expect(new Set(labels.map((label) => JSON.stringify(clientColour(label)))).size).toBe(labels.length);
  expect(clientColour("s1")).toEqual({ colour: "var(--client-1)", ring: false });
  expect(clientColour("m1")).toEqual({ colour: "var(--client-6)", ring: true });
  expect(clientColour("s13")).toEqual(clientColour("s1"));
  expect(clientColour("no client").colour).toMatch(/^var\(--client-[1-6]\)$/);
});
