import { X } from "lucide";
import { useEffect, useRef } from "react";
import { Button } from "~/ui/button";
import { Icon } from "~/ui/icon";
import { KeyValues } from "~/ui/key-values";
import styles from "./shell.module.css";

const SHORTCUTS = [
  ["/", "Go to the search field"],
  ["↑ ↓ Home End", "Move in a table"],
  ["Enter", "Open the row"],
  ["Escape", "Close what is open"],
  ["?", "Show this"],
] as const;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input:not([type=radio]), select, textarea") !== null;
}

/** The keys that work everywhere, and the dialog that lists them. */
export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      if (event.key === "/" && search !== null) {
        event.preventDefault();
        search.focus();
        search.select();
      }
      if (event.key === "?" && dialog.current?.open === false) dialog.current.showModal();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <dialog ref={dialog} className={styles["help"]} aria-labelledby="shortcuts">
      <header>
        <h2 id="shortcuts">Keys</h2>
        <Button look="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon of={X} />
        </Button>
      </header>
      <KeyValues items={SHORTCUTS.map(([keys, meaning]) => [keys, meaning])} />
    </dialog>
  );
}
