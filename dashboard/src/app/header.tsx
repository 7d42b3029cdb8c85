import { Menu, Monitor, Moon, Sun } from "lucide";
import { type KeyboardEvent, useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { useFeed } from "~/trace/use-feed";
import { Button } from "~/ui/button";
import { Icon } from "~/ui/icon";
import { ConnectionPill } from "~/widgets/connection-pill";
import icon from "./icon.svg";
import styles from "./shell.module.css";
import { THEMES, useTheme } from "./theme";

const VIEWS = [
  ["/live", "Live"],
  ["/calls", "Calls"],
  ["/ladder", "Ladder"],
  ["/timeline", "Timeline"],
  ["/tasks", "Tasks"],
  ["/sessions", "Sessions"],
  ["/report", "Reports"],
  ["/hosts", "Tool hosts"],
  ["/gateway", "Gateway"],
  ["/server", "Server"],
  ["/help", "Help"],
] as const;

const isHere = (path: string, location: string) => location === path || location.startsWith(`${path}/`);

export function Header() {
  const [location] = useLocation();
  const status = useFeed((snapshot) => snapshot.status);
  // the menu is open until another view is shown
  const [openAt, setOpenAt] = useState<string | null>(null);
  const open = openAt === location;
  const views = useId();
  const close = (event: KeyboardEvent) => {
    if (event.key === "Escape") setOpenAt(null);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- Escape from anywhere inside
    <header className={styles["header"]} onKeyDown={close}>
      <Link href="/live" className={styles["name"] ?? ""}>
        <img src={icon} alt="" width={20} height={20} />
        MCP Probe
      </Link>
      {/* where the views have no room in a line; style sheets show it */}
      <Button className={styles["menu"]} aria-expanded={open} aria-controls={views} onClick={() => setOpenAt(open ? null : location)}>
        <Icon of={Menu} /> {VIEWS.find(([path]) => isHere(path, location))?.[1] ?? "Views"}
      </Button>
      <nav id={views} className={`${styles["nav"]} ${open ? styles["open"] : ""}`} aria-label="Views">
        {VIEWS.map(([path, label]) => (
          <Link key={path} href={path} aria-current={isHere(path, location) ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <ConnectionPill status={status} />
      <ThemeButton />
    </header>
  );
}

const DRAWINGS = { system: Monitor, light: Sun, dark: Moon };

/** Goes through the themes. */
function ThemeButton() {
  const [theme, setTheme] = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  return (
    <Button look="quiet" aria-label={`Theme: ${theme}`} title={`Theme: ${theme}. Press for ${next}`} onClick={() => setTheme(next)}>
      <Icon of={DRAWINGS[theme]} />
    </Button>
  );
}
