import { type ReactNode, useState } from "react";
import { Button } from "~/ui/buttons";
import { useNarrow } from "~/ui/window";

/** Whether controls are hidden, and the button that shows and hides them; without it there is room for all. */
export interface Controls {
  hidden: boolean;
  button: ReactNode;
}

/** On a phone what changes the list stands behind one button: it would take half of the window. */
export function useControls(): Controls {
  const narrow = useNarrow();
  const [open, setOpen] = useState(false);
  if (!narrow) return { hidden: false, button: null };
  const button = (
    <Button aria-expanded={open} onClick={() => setOpen(!open)}>
      Controls
    </Button>
  );
  return { hidden: !open, button };
}
