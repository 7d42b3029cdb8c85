import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import styles from "./page.module.css";
import { useTitle } from "./window";

interface PageProps {
  title: string;
  /** The list that the page is one of: its name stands before the title and leads there. */
  up?: Tab | undefined;
  /** The parts of the view; the title is that of all. */
  tabs?: readonly Tab[] | undefined;
  /** The name of the part that is shown, for the tab of the browser. */
  part?: string | undefined;
  /** Filters and actions, in the line of the title. */
  tools?: ReactNode;
  /** A Drawer beside the content. */
  drawer?: ReactNode;
  /** The content scrolls as a document, with padding; without it, a table fills the page and scrolls itself. */
  scroll?: boolean;
  children: ReactNode;
}

/** The frame of one view: its heading, which is the title of the browser's tab too, its parts and tools, the content, and a drawer at its side. */
export function Page({ title, up, tabs, part, tools, drawer, scroll = false, children }: PageProps) {
  useTitle(part === undefined ? title : `${part} · ${title}`);
  return (
    <div className={styles["page"]}>
      <div className={styles["head"]}>
        <div className={styles["title"]}>
          {up !== undefined && (
            <Link href={up[0]} className={styles["up"] ?? ""}>
              {up[1]}
            </Link>
          )}
          <h1>{title}</h1>
        </div>
        {tabs !== undefined && <Tabs label={title} tabs={tabs} />}
        <div className={`${styles["tools"]} unprinted`}>{tools}</div>
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

/** Where a tab leads, and its name. */
export type Tab = readonly [href: string, name: string];

interface TabsProps {
  label: string;
  tabs: readonly Tab[];
}

/** The parts of a view, each with an address of its own. The current one is that with the longest address that begins as the present one. */
function Tabs({ label, tabs }: TabsProps) {
  const [location] = useLocation();
  const [here] = tabs.filter(([href]) => location === href || location.startsWith(`${href}/`)).toSorted(([a], [b]) => b.length - a.length);
  return (
    <nav className={`${styles["tabs"]} unprinted`} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab[0]} href={tab[0]} aria-current={tab === here ? "page" : undefined}>
          {tab[1]}
        </Link>
      ))}
    </nav>
  );
}

/** Lets the keyboard pass the header; shown when it has the focus. */
export function SkipLink({ to }: { to: string }) {
  return (
    <a className={`${styles["skip"]} unprinted`} href={`#${to}`}>
      Skip to content
    </a>
  );
}
