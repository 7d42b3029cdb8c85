import type { ReactNode } from "react";
import styles from "./key-values.module.css";

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
