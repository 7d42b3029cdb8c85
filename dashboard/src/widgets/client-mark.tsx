import type { CSSProperties } from "react";
import { clientColour } from "./client-colour";
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
