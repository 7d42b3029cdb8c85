import type { IconNode } from "lucide";
import type { ReactNode } from "react";
import { Link } from "wouter";
import styles from "./action.module.css";
import { Button, buttonClass } from "./button";
import { Icon } from "./icon";

interface Named {
  icon: IconNode;
  children: string;
}

const LOOK = buttonClass({ look: "quiet", small: true }, styles["action"]);

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
export function ActionButton({ icon, onClick, children }: Named & { onClick: () => void }) {
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
