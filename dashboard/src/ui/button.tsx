import type { ComponentProps } from "react";
import styles from "./button.module.css";

interface ButtonProps extends ComponentProps<"button"> {
  look?: "plain" | "quiet" | "primary";
  small?: boolean;
}

/** A button; everything of the HTML element can be passed, `aria-pressed` for one that stays down. */
export function Button({ look = "plain", small = false, className, ...rest }: ButtonProps) {
  const names = [styles["button"], look !== "plain" && styles[look], small && styles["small"], className];
  return <button type="button" {...rest} className={names.filter(Boolean).join(" ")} />;
}
