import { Check, Copy, type IconNode, X } from "lucide";
import { type ComponentProps, type MouseEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { Icon } from "./badge";
import styles from "./buttons.module.css";

interface Looks {
  look?: "plain" | "quiet" | "primary";
  small?: boolean;
}

/** The class of what looks like a button. */
export function buttonClass({ look = "plain", small = false }: Looks, more = ""): string {
  return [styles["button"], look !== "plain" && styles[look], small && styles["small"], more].filter(Boolean).join(" ");
}

/** A button; everything of the HTML element can be passed, `aria-pressed` for one that stays down. */
export function Button({ look, small, className, ...rest }: ComponentProps<"button"> & Looks) {
  return <button type="button" {...rest} className={buttonClass({ ...(look && { look }), ...(small && { small }) }, className)} />;
}

interface ValueButtonProps {
  title: string;
  onClick: (event: MouseEvent) => void;
  children: ReactNode;
}

/** A value in a row that does something when it is clicked, and not what a click on its row does. It is not in the tab order, where a row has one stop. */
export function ValueButton({ title, onClick, children }: ValueButtonProps) {
  const press = (event: MouseEvent) => {
    event.stopPropagation();
    onClick(event);
  };
  return (
    <button type="button" tabIndex={-1} className={styles["value"]} title={title} onClick={press}>
      {children}
    </button>
  );
}

interface Named {
  icon: IconNode;
  children: string;
}

const LOOK = buttonClass({ look: "quiet", small: true }, `${styles["action"]} unprinted`);

/** An action that leads to another view. */
export function ActionLink({ icon, to, children }: Named & { to: string }) {
  return (
    <Link href={to} className={LOOK}>
      <Icon of={icon} /> {children}
    </Link>
  );
}

/** An action that leads to something of the server that is no view; `download` has the browser save it. */
export function ActionFile({ icon, href, download = false, children }: Named & { href: string; download?: boolean }) {
  return (
    <a href={href} className={LOOK} download={download}>
      <Icon of={icon} /> {children}
    </a>
  );
}

/** An action that does something here. Another name that it gets is announced. */
function ActionButton({ icon, onClick, children }: Named & { onClick: () => void }) {
  return (
    <Button look="quiet" small className={styles["action"]} onClick={onClick}>
      <Icon of={icon} /> <span aria-live="polite">{children}</span>
    </Button>
  );
}

/** Actions side by side: all of one look, an icon and a name. */
export function Actions({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div role="group" aria-label={label} className={styles["actions"]}>
      {children}
    </div>
  );
}

interface CopyButtonProps {
  /** What is copied; a function is asked when the button is pressed, for what is costly to make. */
  text: string | (() => string);
  label?: string;
}

const COPIED = "Copied";
// without HTTPS and away from localhost, browsers have no clipboard
const REFUSED = "The browser refused";

/** Copies to the clipboard and says so. */
export function CopyButton({ text, label = "Copy" }: CopyButtonProps) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = setTimeout(() => setSaid(null), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setSaid(COPIED);
    } catch {
      setSaid(REFUSED);
    }
  };
  return (
    <ActionButton icon={said === COPIED ? Check : said === REFUSED ? X : Copy} onClick={() => void copy()}>
      {said ?? label}
    </ActionButton>
  );
}

interface FileButtonProps {
  label: string;
  /** What the browser offers to choose: `.json,application/json`. */
  accept: string;
  onFile: (file: File) => void;
}

/** Has a file chosen; the same file can be chosen again. */
export function FileButton({ label, accept, onFile }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = (element: HTMLInputElement) => {
    const file = element.files?.[0];
    // choosing what is chosen already would be no change
    element.value = "";
    if (file !== undefined) onFile(file);
  };
  return (
    <>
      <input ref={input} type="file" accept={accept} hidden aria-label={label} onChange={(event) => chosen(event.target)} />
      <Button onClick={() => input.current?.click()}>{label}</Button>
    </>
  );
}
