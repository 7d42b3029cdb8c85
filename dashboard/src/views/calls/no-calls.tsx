import { NothingYet } from "~/widgets/nothing-yet";

/** What stands where no call was made. */
export function NoCalls() {
  return (
    <NothingYet title="No calls yet">
      Each tool call appears here when it starts, and says in the end what came of it. Call <code>progress</code> for one with
      steps, and cancel it to see who stopped it and how long that took. A server that is started
      with <code>--audit-db FILE</code> keeps its calls over a restart.
    </NothingYet>
  );
}
