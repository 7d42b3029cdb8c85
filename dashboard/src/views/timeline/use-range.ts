import { type PointerEvent, useRef, useState } from "react";

interface Range {
  start: number;
  end: number;
  /** Which pointer selects; what others do meanwhile does not matter. */
  pointer: number;
}

interface RangeSelect {
  /** What is being selected, in pixels from the left of the picture. */
  range: Range | null;
  handlers: {
    onPointerDown: (event: PointerEvent<HTMLElement>) => void;
    onPointerMove: (event: PointerEvent<HTMLElement>) => void;
    onPointerUp: (event: PointerEvent<HTMLElement>) => void;
    onPointerCancel: () => void;
  };
}

// less than this is a click
const LEAST_PX = 5;

/** Selecting a range of the picture with the pointer; the picture begins `left` pixels into the element. */
export function useRange(left: number, onSelect: (start: number, end: number) => void): RangeSelect {
  // the next event may come before what this one changes is drawn
  const held = useRef<Range | null>(null);
  const [range, setRange] = useState<Range | null>(null);
  const hold = (next: Range | null) => {
    held.current = next;
    setRange(next);
  };
  const place = (event: PointerEvent<HTMLElement>) => event.clientX - event.currentTarget.getBoundingClientRect().left - left;
  return {
    range: range !== null && Math.abs(range.end - range.start) >= LEAST_PX ? range : null,
    handlers: {
      onPointerDown: (event) => {
        const start = place(event);
        if (event.button === 0 && event.pointerType !== "touch" && start >= 0) hold({ start, end: start, pointer: event.pointerId });
      },
      onPointerMove: (event) => {
        const before = held.current;
        if (before?.pointer !== event.pointerId) return;
        if (event.buttons === 0) return hold(null);
        const end = place(event);
        // only now, as a captured pointer makes no click on what lies under it
        if (Math.abs(end - before.start) >= LEAST_PX) event.currentTarget.setPointerCapture(event.pointerId);
        hold({ ...before, end: Math.max(0, end) });
      },
      onPointerUp: (event) => {
        const before = held.current;
        if (before?.pointer !== event.pointerId) return;
        hold(null);
        const end = Math.max(0, place(event));
        if (Math.abs(end - before.start) >= LEAST_PX) onSelect(Math.min(before.start, end), Math.max(before.start, end));
      },
      onPointerCancel: () => hold(null),
    },
  };
}
