import { Link } from "wouter";
import { NothingYet } from "~/feed/nothing-yet";

/** What stands where no call was made. */
export function NoCalls() {
  return (
    <NothingYet title="No calls since the server started">
      Each tool call appears here when it starts, and says in the end what came of it. Call <code>progress</code> for one with
      steps, and cancel it to see who stopped it and how long that took. Calls from before the start are in
      the <Link href="/calls?mode=audit">audit</Link>, where the server writes it to a file.
    </NothingYet>
  );
}
