import { type ReactNode, useId, useState } from "react";
import { Button, CopyButton } from "./buttons";
import styles from "./panel.module.css";
import { formatOffset } from "./time-format";

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
    <section className="panel" aria-labelledby={heading}>
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

/** What stands where there is nothing yet: why, and what to do about it. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles["empty"]}>
      <h2>{title}</h2>
      <div className={styles["empty-body"]}>{children}</div>
    </div>
  );
}

/** Names and values in two columns; a value of null, undefined or "" is a dash. */
export function KeyValues({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <Facts>
      {items.map(([name, value]) => (
        <Fact key={name} name={name}>
          {value}
        </Fact>
      ))}
    </Facts>
  );
}

/** The same with each pair as an element, for values that are elements themselves. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={styles["list"]}>{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children === null || children === undefined || children === "" ? "–" : children}</dd>
    </>
  );
}

interface BlockProps {
  title: string;
  /** What is copied. */
  text: string | (() => string);
  actions?: ReactNode;
  children: ReactNode;
}

/** Something to read and to copy, below its name. */
export function Block({ title, text, actions, children }: BlockProps) {
  return (
    <div className={styles["block"]}>
      <div className={styles["code-head"]}>
        <span>{title}</span>
        {actions}
        <CopyButton text={text} />
      </div>
      {children}
    </div>
  );
}

interface CodeBlockProps {
  code: string;
  /** What it is: a language, a file name. It names the block for a screen reader too. */
  title: string;
  wrap?: boolean;
}

/** Text to copy, exactly as it is. */
export function CodeBlock({ code, title, wrap = false }: CodeBlockProps) {
  return (
    <Block title={title} text={code}>
      {/* what scrolls must be reachable by keyboard */}
      <pre className={`${styles["code"]} ${wrap ? styles["wrap"] : ""}`} role="group" tabIndex={0} aria-label={title}>
        <code>{code}</code>
      </pre>
    </Block>
  );
}

export interface Moment {
  key: string | number;
  /** Milliseconds since the moment that the list counts from. */
  offset: number;
  /** What happened, in a few words or badges. */
  what: ReactNode;
  detail?: ReactNode;
}

interface MomentsProps {
  label: string;
  moments: readonly Moment[];
}

// enough for nearly every call; thousands of rows would make opening one slow
const SHOWN = 300;

/** What happened one after the other, each with its distance from the beginning. */
export function Moments({ label, moments }: MomentsProps) {
  const [all, setAll] = useState(false);
  const shown = all ? moments : moments.slice(0, SHOWN);
  return (
    <>
      <ol className={styles["moments"]} aria-label={label}>
        {shown.map(({ key, offset, what, detail }) => (
          <li key={key} className={styles["moment"]}>
            <span className={styles["offset"]}>{formatOffset(offset)}</span>
            <span className={styles["what"]}>{what}</span>
            <span className={styles["detail"]}>{detail}</span>
          </li>
        ))}
      </ol>
      {shown.length < moments.length && (
        <Button small onClick={() => setAll(true)}>
          {moments.length - shown.length} more
        </Button>
      )}
    </>
  );
}

// as many rows of a table as the server keeps, and this page
const MOST = 2_000;

/** How many rows pass the filters, of how many that the page has. */
export function ShownOf({ shown, all }: { shown: number; all: number }) {
  return (
    <span className="quiet">
      {shown} of {all < MOST ? all : `the newest ${all}`}
    </span>
  );
}

interface SkeletonProps {
  /** What is waited for. */
  label: string;
  /** How many bars stand for it. */
  bars?: number;
}

/** What stands for a part of a page while its data is on the way. It shows after a fifth of a second, so that what comes sooner does not flash. */
export function Skeleton({ label, bars = 6 }: SkeletonProps) {
  return (
    <div role="status" className={styles["skeleton"]}>
      <span className="unseen">{label}</span>
      {Array.from({ length: bars }, (_, at) => (
        // the bars of a skeleton never move
        // oxlint-disable-next-line react/no-array-index-key
        <span key={at} className={styles["bar"]} aria-hidden="true" />
      ))}
    </div>
  );
}
