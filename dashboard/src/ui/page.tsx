import type { ReactNode } from "react";
import styles from "./page.module.css";
import { useTitle } from "./title";

interface PageProps {
  title: string;
  /** Filters and buttons, in the line of the title. */
  tools?: ReactNode;
  /** A Drawer beside the content. */
  drawer?: ReactNode;
  /** The content scrolls as a document, with padding; without it, a table fills the page and scrolls itself. */
  scroll?: boolean;
  children: ReactNode;
}

/** The frame of one view: its heading, which is the title of the browser's tab too, its tools, the content, and a drawer at its side. */
export function Page({ title, tools, drawer, scroll = false, children }: PageProps) {
  useTitle(title);
  return (
    <div className={styles["page"]}>
      <div className={styles["head"]}>
        <h1>{title}</h1>
        <div className={styles["tools"]}>{tools}</div>
      </div>
      <div className={styles["body"]}>
        {/* what scrolls must be reachable by keyboard */}
        <div
          className={`${styles["main"]} ${scroll ? styles["scroll"] : ""}`}
          {...(scroll && { tabIndex: 0, role: "group", "aria-label": title })}
        >
          {children}
        </div>
        {drawer}
      </div>
    </div>
  );
}
