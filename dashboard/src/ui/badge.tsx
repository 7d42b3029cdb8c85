import type { ReactNode } from "react";
import styles from "./badge.module.css";

export type Tone = "neutral" | "info" | "good" | "warn" | "bad" | "violet";

interface BadgeProps {
  children: ReactNode;
  tone?: Tone;
  /** A dot before the text, for what is a state and not a kind. */
  dot?: boolean;
  title?: string | undefined;
}

/** A short word with a colour. The word alone says everything; the colour only helps the eye. */
export function Badge({ children, tone = "neutral", dot = false, title }: BadgeProps) {
  const names = [styles["badge"], styles[tone], dot && styles["dot"]].filter(Boolean).join(" ");
  return (
    <span className={names} title={title}>
      {children}
    </span>
  );
}
