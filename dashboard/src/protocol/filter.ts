/**
 * A filter line as far as chips and cells write into it, such as `client:m1 tool:progress -kind:dispatch "step 3"`. The server
 * reads the lines: docs/dashboard.md.
 */

// words end at spaces outside of quotes, values at commas; a backslash keeps a quote
const WORD = /(?:"(?:\\.|[^"\\])*"?|[^\s"])+/g;
const VALUE = /(?:"(?:\\.|[^"\\])*"?|[^,"])+/g;
const KEYED = /^(-?)([A-Za-z_]+):(.*)$/s;

interface Word {
  text: string;
  key: string;
  negated: boolean;
  values: readonly string[];
}

function read(line: string): readonly Word[] {
  return [...line.matchAll(WORD)].map(([text]) => {
    const [, sign = "", key = "", values = ""] = KEYED.exec(text) ?? [];
    return { text, key: key.toLowerCase(), negated: sign === "-", values: [...values.matchAll(VALUE)].map(([value]) => plain(value)) };
  });
}

const plain = (value: string) => (value.startsWith('"') ? value.slice(1, value.endsWith('"') ? -1 : undefined).replaceAll(/\\(["\\])/g, "$1") : value);

/** A value as it stands in a line: in quotes where it has to. */
export function quoted(value: string): string {
  return value === "" || /[\s",]|^-|^\w+:/.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value;
}

/** Whether a line asks for a value of a key. */
export function has(line: string, key: string, value: string): boolean {
  return read(line).some((word) => word.key === key && !word.negated && word.values.some((each) => each.toLowerCase() === value.toLowerCase()));
}

/** The line with a value of a key, or without it where it has it. */
export function toggled(line: string, key: string, value: string): string {
  if (!has(line, key, value)) return `${line.trim()} ${key}:${quoted(value)}`.trim();
  const words = read(line).flatMap((word) => {
    if (word.key !== key || word.negated) return [word.text];
    const left = word.values.filter((each) => each.toLowerCase() !== value.toLowerCase());
    return left.length === 0 ? [] : [`${key}:${left.map(quoted).join(",")}`];
  });
  return words.join(" ");
}

/** The one value that a line asks for of a key; null where that is none or several. */
export function only(line: string, key: string): string | null {
  const words = read(line).filter((word) => word.key === key);
  const [value] = words[0]?.values ?? [];
  return words.length === 1 && words[0]?.negated === false && words[0].values.length === 1 && value !== undefined ? value : null;
}

/** The line that asks for one value of a key and no other of it. */
export function withOnly(line: string, key: string, value: string): string {
  return [...read(line).flatMap((word) => (word.key === key ? [] : [word.text])), `${key}:${quoted(value)}`].join(" ");
}
