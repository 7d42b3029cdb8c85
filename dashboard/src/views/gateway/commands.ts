import { shellWord } from "~/words/curl";

const PORT = 8000;

/** A word of the shell, in quotes where it needs them. */
const word = (text: string) => (/^[\w:/.@%-]+$/.test(text) ? text : shellWord(text));

/** The check with a probe of its own, on a port beside that of the server at `origin`, which uses its own. */
export function withOwnProbe(origin: string, through: string): { port: number; command: string } {
  const port = Number(new URL(origin).port || PORT) + 1;
  return { port, command: `mcp-probe gateway --listen ${port} --through ${word(through)} --format json --out run.json` };
}

/** The check with the server of these pages as the probe, which the gateway leads to already. */
export function withThisProbe(probe: string, through: string): string {
  return `mcp-probe gateway --probe ${word(probe)} --through ${word(through)} --format json --out run.json`;
}
