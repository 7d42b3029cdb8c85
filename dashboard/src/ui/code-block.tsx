import styles from "./code-block.module.css";
import { CopyButton } from "./copy-button";

interface CodeBlockProps {
  code: string;
  /** What it is: a language, a file name. It names the block for a screen reader too. */
  title: string;
  wrap?: boolean;
}

/** Text to copy, exactly as it is. */
export function CodeBlock({ code, title, wrap = false }: CodeBlockProps) {
  return (
    <div className={styles["block"]}>
      <div className={styles["head"]}>
        <span>{title}</span>
        <CopyButton text={code} />
      </div>
      {/* what scrolls must be reachable by keyboard */}
      <pre className={`${styles["code"]} ${wrap ? styles["wrap"] : ""}`} role="group" tabIndex={0} aria-label={title}>
        <code>{code}</code>
      </pre>
    </div>
  );
}
