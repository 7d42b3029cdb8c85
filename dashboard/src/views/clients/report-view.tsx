import { useParams } from "wouter";
import { useJudged } from "~/trace/use-judged";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { JudgeOff } from "~/widgets/judge-off";
import { ClientList } from "./client-list";
import { ReportPage } from "./report-page";

/** What the judge says: of all clients, or of one with the evidence. */
export default function ReportView() {
  const { client } = useParams<{ client?: string }>();
  const { state } = useJudged();
  if (state === "on") return client === undefined ? <ClientList /> : <ReportPage key={client} client={client} />;
  return (
    <Page title={client === undefined ? "Reports" : `Report on ${client}`} scroll>
      {state === "off" ? (
        <EmptyState title="Nobody judges">
          <JudgeOff />
        </EmptyState>
      ) : (
        <EmptyState title="Waiting for the server">Whether it judges is not known yet.</EmptyState>
      )}
    </Page>
  );
}
