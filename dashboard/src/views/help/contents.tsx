import type { Tool } from "~/protocol/schema";
import styles from "./help.module.css";

/** What is on the page, with a link to each tool; it stays in view. */
export function Contents({ tools }: { tools: readonly Tool[] }) {
  const sets = [...new Set(tools.map((tool) => tool.toolset))];
  return (
    // what scrolls must be reachable by keyboard, which its links are
    <nav className={styles["contents"]} aria-label="On this page">
      <a href="#connect">Connect a client</a>
      {sets.map((set) => (
        <div key={set}>
          <h2>{set}</h2>
          <ul>
            {tools
              .filter((tool) => tool.toolset === set)
              .map((tool) => (
                <li key={tool.name}>
                  <a href={`#${tool.name}`}>{tool.name}</a>
                </li>
              ))}
          </ul>
        </div>
      ))}
      <a href="#words">Words</a>
    </nav>
  );
}
