import { useRef } from "react";
import { Button } from "./button";

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
