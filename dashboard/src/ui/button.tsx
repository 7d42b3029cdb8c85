import type { ComponentProps } from "react";
import styles from "./button.module.css";

interface Looks {
  look?: "plain" | "quiet" | "primary";
  small?: boolean;
}

/** The class of what looks like a button. */
export function buttonClass({ look = "plain", small = false }: Looks, more = ""): string {
  return [styles["button"], look !== "plain" && styles[look], small && styles["small"], more].filter(Boolean).join(" ");
}

/** A button; everything of the HTML element can be passed, `aria-pressed` for one that stays down. */
export function Button({ look, small, className, ...rest }: ComponentProps<"button"> & Looks) {
  return <button type="button" {...rest} className={buttonClass({ ...(look && { look }), ...(small && { small }) }, className)} />;
}
