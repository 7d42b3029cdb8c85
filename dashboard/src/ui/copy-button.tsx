import { useEffect, useState } from "react";
import { Button } from "./button";

interface CopyButtonProps {
  /** What is copied; a function is asked when the button is pressed, for what is costly to make. */
  text: string | (() => string);
  label?: string;
}

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
      setSaid("Copied");
    } catch {
      // without HTTPS and away from localhost, browsers have no clipboard
      setSaid("The browser refused");
    }
  };
  return (
    <Button look="quiet" small onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </Button>
  );
}
