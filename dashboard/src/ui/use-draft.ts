import { useEffect, useEffectEvent, useState } from "react";

const RESTED_MS = 150;

/**
 * What is typed into a field, and how to change it. A `value` that comes from outside (the URL, a reset) replaces it.
 *
 * `onRest` is called when typing has rested for 150 ms, unless the text is the value already.
 */
export function useDraft(value: string, onRest?: (text: string) => void): [text: string, set: (text: string) => void] {
  const [typed, setTyped] = useState({ text: value, from: value });
  if (typed.from !== value) setTyped({ text: value, from: value });
  const rested = useEffectEvent(() => onRest?.(typed.text));
  useEffect(() => {
    if (typed.text === value) return undefined;
    const timer = setTimeout(rested, RESTED_MS);
    return () => clearTimeout(timer);
  }, [typed.text, value]);
  return [typed.text, (text) => setTyped({ text, from: value })];
}
