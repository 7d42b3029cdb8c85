import { Segmented } from "~/ui/choice";
import styles from "./server.module.css";

interface ChoicesProps {
  which: string;
  onChoose: (which: string) => void;
  all: number;
  shown: number;
}

const OPTIONS = [
  { value: "open", label: "Open" },
  { value: "all", label: "All" },
];

/** Which streams are listed, and how many there are. */
export function Choices({ which, onChoose, all, shown }: ChoicesProps) {
  return (
    <p className={styles["quiet"]}>
      <Segmented label="Streams listed" options={OPTIONS} value={which} onChange={onChoose} /> {shown} shown of {all}
    </p>
  );
}
