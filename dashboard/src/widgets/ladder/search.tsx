import { Button } from "~/ui/button";
import styles from "./ladder.module.css";

interface SearchProps {
  /** The places of the rows that have what is searched. */
  found: readonly number[];
  /** Where one is, -1 for nowhere. */
  current: number;
  onShow: (index: number) => void;
}

/** How many rows were found, and the way from one to the next. */
export function Search({ found, current, onShow }: SearchProps) {
  const place = found.indexOf(current);
  const next = found.find((index) => index > current) ?? found[0];
  const before = found.findLast((index) => index < current) ?? found.at(-1);
  return (
    <div className={styles["found"]} role="group" aria-label="What was found">
      <span role="status">{found.length === 0 ? "nothing found" : place === -1 ? `${found.length} found` : `${place + 1} of ${found.length}`}</span>
      <Button small aria-label="Previous one found" disabled={before === undefined} onClick={() => before !== undefined && onShow(before)}>
        ↑
      </Button>
      <Button small aria-label="Next one found" disabled={next === undefined} onClick={() => next !== undefined && onShow(next)}>
        ↓
      </Button>
    </div>
  );
}
