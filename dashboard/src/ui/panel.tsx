import { type ReactNode, useId } from "react";
import styles from "./panel.module.css";

interface PanelProps {
  title: string;
  /** Buttons and links at the end of the title's line. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A part of a page that scrolls as a document, under its own heading. */
export function Panel({ title, actions, children }: PanelProps) {
  const heading = useId();
  return (
    <section className={styles["panel"]} aria-labelledby={heading}>
      <div className={styles["head"]}>
        <h2 id={heading}>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** Panels side by side, as many as there is room for. */
export function Panels({ children }: { children: ReactNode }) {
  return <div className={styles["panels"]}>{children}</div>;
}

/** Panels one below the other. */
export function Stack({ children }: { children: ReactNode }) {
  return <div className={styles["stack"]}>{children}</div>;
}
