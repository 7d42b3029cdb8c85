import { Check, Copy, X } from "lucide";
import { useEffect, useState } from "react";
import { ActionButton } from "./action";

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
