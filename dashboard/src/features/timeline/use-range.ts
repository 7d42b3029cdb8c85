import { type PointerEvent, useState } from "react";

interface Range {
  start: number;
  end: number;
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
  const [range, setRange] = useState<Range | null>(null);
  const place = (event: PointerEvent<HTMLElement>) => event.clientX - event.currentTarget.getBoundingClientRect().left - left;
  return {
    range: range !== null && Math.abs(range.end - range.start) >= LEAST_PX ? range : null,
    handlers: {
      onPointerDown: (event) => {
        const start = place(event);
        if (event.button === 0 && event.pointerType !== "touch" && start >= 0) setRange({ start, end: start });
      },
      onPointerMove: (event) => {
        if (range === null) return;
        if (event.buttons === 0) return setRange(null);
        const end = place(event);
        // only now, as a captured pointer makes no click on what lies under it
        if (Math.abs(end - range.start) >= LEAST_PX) event.currentTarget.setPointerCapture(event.pointerId);
        setRange({ ...range, end: Math.max(0, end) });
      },
      onPointerUp: (event) => {
        setRange(null);
        if (range === null) return;
        const end = Math.max(0, place(event));
        if (Math.abs(end - range.start) >= LEAST_PX) onSelect(Math.min(range.start, end), Math.max(range.start, end));
      },
      onPointerCancel: () => setRange(null),
    },
  };
}
