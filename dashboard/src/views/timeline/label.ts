// at 11 px, the widest letters of the usual typefaces aside
const LETTER = 6.2;
const APART = 8;

/**
 * Where a text of so many characters stands beside a bar, never over it: behind the bar, else before it.
 *
 * Null where there is room for neither; the facts of the lane have the text then. All lengths are in pixels.
 */
export function labelPlace(bar: { from: number; to: number }, width: number, characters: number): { x: number; anchor: "start" | "end" } | null {
  const room = characters * LETTER;
  const [before, behind] = [bar.from - APART, bar.to + APART];
  // a bar that ends before the picture begins, or begins behind it, has no label in it
  if (bar.to < 0 || bar.from > width) return null;
  if (behind + room <= width) return { x: behind, anchor: "start" };
  return before - room >= 0 ? { x: before, anchor: "end" } : null;
}
