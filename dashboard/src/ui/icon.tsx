import type { IconNode } from "lucide";
import { createElement } from "react";
import styles from "./icon.module.css";

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
