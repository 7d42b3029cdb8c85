import { Link, useLocation } from "wouter";
import styles from "./tabs.module.css";

/** Where a tab leads, and its name. */
export type Tab = readonly [href: string, name: string];

interface TabsProps {
  label: string;
  tabs: readonly Tab[];
}

/** The parts of a view, each with an address of its own. The current one is that with the longest address that begins as the present one. */
export function Tabs({ label, tabs }: TabsProps) {
  const [location] = useLocation();
  const [here] = tabs.filter(([href]) => location === href || location.startsWith(`${href}/`)).toSorted(([a], [b]) => b.length - a.length);
  return (
    <nav className={styles["tabs"]} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab[0]} href={tab[0]} aria-current={tab === here ? "page" : undefined}>
          {tab[1]}
        </Link>
      ))}
    </nav>
  );
}
