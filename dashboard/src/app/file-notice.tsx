import { BESIDE_LIVE } from "~/protocol/address";
import { ApiError } from "~/protocol/client";
import { liveAddress } from "~/protocol/open-file";
import type { FileInfo } from "~/protocol/schema";
import { useServer } from "~/protocol/use-server";
import { Time } from "~/ui/time";
import styles from "./file-notice.module.css";

interface FileNoticeProps {
  /** Whether a server with a live log has opened the file, so that there is a way back to that. */
  besideLive?: boolean;
}

/** Says that the pages show a file and no server, where that is so, and what is missing in it. */
export function FileNotice({ besideLive = BESIDE_LIVE }: FileNoticeProps) {
  const { data, error } = useServer(besideLive ? ASKED_AGAIN : undefined);
  const closed = besideLive && error instanceof ApiError;
  const file = data?.file ?? null;
  if (file === null && !closed) return null;
  return (
    <section className={styles["file"]} aria-label="File">
      {closed || file === null ? <span role="alert">{error?.message}.</span> : <Told file={file} />}{" "}
      {besideLive && (
        <a className={styles["back"]} href={liveAddress()}>
          Back to live
        </a>
      )}
    </section>
  );
}

// the server closes a file when others were opened after it
const ASKED_AGAIN = 10_000;

function Told({ file }: { file: FileInfo }) {
  return (
    <span>
      <strong>{file.name}</strong>: a file{file.saved_at !== null && <>, saved <Time at={file.saved_at} look="both" /></>}. {partOf(file)} {missing(file)}
    </span>
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
