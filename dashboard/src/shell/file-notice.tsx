import type { FileInfo } from "~/api/schema";
import { useServer } from "~/api/use-server";
import { Time } from "~/ui/time";
import styles from "./file-notice.module.css";

/** Says that the pages show a file and no server, where that is so, and what is missing in it. */
export function FileNotice() {
  const file = useServer().data?.file ?? null;
  if (file === null) return null;
  return (
    <section className={styles["file"]} aria-label="File">
      <strong>{file.name}</strong>: a file{file.saved_at !== null && <>, saved <Time at={file.saved_at} look="both" /></>}. {partOf(file)} {missing(file)}
    </section>
  );
}

function partOf({ client, call, filtered }: FileInfo): string {
  if (call !== null) return `It has the entries of call ${call}.`;
  if (client !== null) return `It has the entries of ${client}.`;
  return filtered ? "It has a part of the log." : "It has the whole log.";
}

function missing({ cut_off, gaps }: FileInfo): string {
  const lost = gaps.reduce((sum, gap) => sum + gap.last - gap.first + 1, 0);
  const said = [cut_off ? "its end is missing" : "", lost > 0 ? `${lost.toLocaleString("en")} entries are missing` : ""].filter(Boolean).join(", and ");
  return said === "" ? "Nothing of that is missing." : `It is incomplete: ${said}.`;
}
