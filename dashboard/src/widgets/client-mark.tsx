import type { CSSProperties } from "react";
import styles from "./client-mark.module.css";

/** The label of a client behind a mark in its colour. */
export function ClientMark({ label }: { label: string }) {
  const { colour, ring } = clientColour(label);
  return (
    <span className={`${styles["mark"]} ${ring ? styles["ring"] : ""}`} style={{ "--of": colour } as CSSProperties}>
      {label}
    </span>
  );
}

/** How a client is marked wherever it appears, beside its label. */
interface ClientColour {
  /** A CSS colour, for text, lines and marks in both themes. */
  colour: string;
  /** Whether its mark is a ring and not a dot: two clients of one colour may be told apart by it. */
  ring: boolean;
}

// as many as stay apart for people who see only two of three primary colours; see --client-1 in tokens.css
const COLOURS = 6;

/**
 * The colour of a client by its label (`s1`, `m3`), the same on each page and after a reload.
 *
 * Sessions take the colours from the first on, as dots, and modern clients from the last on, as rings, so that the
 * first few of both are different. The label always stands beside the colour, which says nothing alone.
 */
export function clientColour(label: string): ClientColour {
  const number = Number(/\d+$/.exec(label)?.[0] ?? 1) - 1;
  const place = label.startsWith("m") ? 2 * COLOURS - 1 - (number % (2 * COLOURS)) : number % (2 * COLOURS);
  return { colour: `var(--client-${(place % COLOURS) + 1})`, ring: place >= COLOURS };
}
