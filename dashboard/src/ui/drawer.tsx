import { X } from "lucide";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { Icon } from "./badge";
import { Button } from "./buttons";
import styles from "./drawer.module.css";

interface DrawerProps {
  title: string;
  /** What it shows: when this changes, the content starts anew at its top. */
  of: string | number;
  onClose: () => void;
  /** Buttons beside the title. */
  actions?: ReactNode;
  children: ReactNode;
}

/**
 * A panel at the side for the selected thing; the list stays usable.
 *
 * It takes the focus when it opens, Escape closes it from inside, and the focus goes back to where it came from.
 */
export function Drawer({ title, of, onClose, actions, children }: DrawerProps) {
  const panel = useRef<HTMLElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus({ preventScroll: true });
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape from anywhere inside
    <aside
      ref={panel}
      className={styles["drawer"]}
      aria-labelledby={heading}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <div className={styles["head"]}>
        <h2 className="cut" id={heading}>{title}</h2>
        {actions}
        <Button look="quiet" aria-label="Close" title="Close (Escape)" onClick={onClose}>
          <Icon of={X} />
        </Button>
      </div>
      {/* what scrolls must be reachable by keyboard */}
      <div key={of} className={styles["body"]} role="group" tabIndex={0} aria-label={title}>
        {children}
      </div>
    </aside>
  );
}
