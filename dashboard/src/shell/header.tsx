import { Link, useLocation } from "wouter";
import { useFeed } from "~/feed/use-feed";
import icon from "~/icon.svg";
import { Segmented } from "~/ui/choice";
import { ConnectionPill } from "~/ui/connection-pill";
import styles from "./shell.module.css";
import { THEMES, useTheme } from "./theme";

const VIEWS = [
  ["/live", "Live"],
  ["/tasks", "Tasks"],
  ["/calls", "Calls"],
  ["/sessions", "Sessions"],
  ["/report", "Reports"],
  ["/hosts", "Tool hosts"],
  ["/timeline", "Timeline"],
  ["/server", "Server"],
  ["/help", "Help"],
] as const;

export function Header() {
  const [location] = useLocation();
  const status = useFeed((snapshot) => snapshot.status);
  const [theme, setTheme] = useTheme();
  return (
    <header className={styles["header"]}>
      <Link href="/live" className={styles["name"] ?? ""}>
        <img src={icon} alt="" width={20} height={20} />
        MCP Probe
      </Link>
      <nav className={styles["nav"]} aria-label="Views">
        {VIEWS.map(([path, label]) => {
          const here = location === path || location.startsWith(`${path}/`);
          return (
            <Link key={path} href={path} aria-current={here ? "page" : undefined}>
              {label}
            </Link>
          );
        })}
      </nav>
      <ConnectionPill status={status} />
      <Segmented
        label="Theme"
        options={THEMES.map((value) => ({ value, label: value[0]?.toUpperCase() + value.slice(1) }))}
        value={theme}
        onChange={setTheme}
      />
    </header>
  );
}
