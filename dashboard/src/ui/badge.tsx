import type { IconNode } from "lucide";
import { createElement, type ReactNode } from "react";
import styles from "./badge.module.css";

interface IconProps {
  /** One of the set `lucide`, imported by its name. */
  of: IconNode;
  /** What it says where no word stands beside it; without, it is hidden from those who hear the page. */
  label?: string;
}

/** A drawing of the one set of icons, as large and of the colour as the text around it. */
export function Icon({ of, label }: IconProps) {
  const meaning = label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label };
  return (
    <svg className={styles["icon"]} viewBox="0 0 24 24" {...meaning}>
      {of.map(([tag, attributes]) => createElement(tag, { ...attributes, key: JSON.stringify(attributes) }))}
    </svg>
  );
}

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
  const names = [styles["badge"], (tone === "warn" || tone === "bad") && styles["loud"], dot && styles["dot"]].filter(Boolean).join(" ");
  return (
    <span className={names} data-tone={tone} title={title}>
      {children}
    </span>
  );
}
