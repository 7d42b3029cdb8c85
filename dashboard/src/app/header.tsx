import { CircleQuestionMark, Menu, Monitor, Moon, Sun } from "lucide";
import { type KeyboardEvent, useId, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { useSavedFile } from "~/protocol/client";
import { useFeed } from "~/trace/feed";
import { Icon } from "~/ui/badge";
import { Button, buttonClass } from "~/ui/buttons";
import { useOpened } from "~/views/gateway/opened";
import { ConnectionPill } from "~/widgets/badges";
import icon from "./icon.svg";
import styles from "./shell.module.css";

interface View {
  href: string;
  name: string;
  /** Paths that belong to it, beside its own. */
  also?: readonly string[];
}

const VIEWS: readonly View[] = [
  { href: "/clients", name: "Clients" },
  { href: "/trace", name: "Trace", also: ["/export"] },
  { href: "/calls", name: "Calls" },
  { href: "/gateway", name: "Gateway" },
  { href: "/server", name: "Server" },
];

const HELP = "/server/help";

const isAt = (path: string, location: string) => location === path || location.startsWith(`${path}/`);
const isHere = ({ href, also = [] }: View, location: string) => [href, ...also].some((path) => isAt(path, location));

export function Header() {
  const [location] = useLocation();
  const status = useFeed((snapshot) => snapshot.status);
  const saved = useSavedFile();
  const run = useOpened();
  // the menu is open until another view is shown
  const [openAt, setOpenAt] = useState<string | null>(null);
  const open = openAt === location;
  const views = useId();
  const close = (event: KeyboardEvent) => {
    if (event.key === "Escape") setOpenAt(null);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- Escape from anywhere inside
    <header className={`${styles["header"]} unprinted`} onKeyDown={close}>
      <Link href="/clients" className={styles["name"] ?? ""}>
        <img src={icon} alt="" width={22} height={22} />
        <span>MCP Probe</span>
      </Link>
      {/* where the views have no room in a line; style sheets show it */}
      <Button className={styles["menu"]} aria-expanded={open} aria-controls={views} onClick={() => setOpenAt(open ? null : location)}>
        <Icon of={Menu} /> {VIEWS.find((view) => isHere(view, location))?.name ?? "Views"}
      </Button>
      <nav id={views} className={`${styles["nav"]} ${open ? styles["open"] : ""}`} aria-label="Views">
        {VIEWS.map((view) => (
          <Link key={view.href} href={view.href} aria-current={isHere(view, location) ? "page" : undefined}>
            {view.name}
          </Link>
        ))}
      </nav>
      {/* the result of a check is a file as well, and stands still */}
      <ConnectionPill status={status} saved={run !== null && isAt("/gateway", location) ? run.name : saved} />
      <Link href={HELP} className={buttonClass({ look: "quiet" })} aria-label="Help" title="Help" aria-current={isAt(HELP, location) ? "page" : undefined}>
        <Icon of={CircleQuestionMark} />
      </Link>
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

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "mcp-probe-theme";
const listeners = new Set<() => void>();

function read(): Theme {
  const stored = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

/** Shows the remembered theme; `system` leaves the choice to the browser. */
export function applyTheme(): void {
  const theme = read();
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

function set(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // another tab of the same dashboard
  const other = () => {
    applyTheme();
    listener();
  };
  addEventListener("storage", other);
  return () => {
    listeners.delete(listener);
    removeEventListener("storage", other);
  };
}

/** The chosen theme, and how to choose another; it is remembered. */
function useTheme(): [Theme, (theme: Theme) => void] {
  return [useSyncExternalStore(subscribe, read), set];
}
