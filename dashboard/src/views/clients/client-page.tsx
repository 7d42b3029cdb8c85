import { FileDown, List, Printer, Wrench } from "lucide";
import { useMemo } from "react";
import { Redirect } from "wouter";
import { traceHref } from "~/protocol/address";
import { ApiError, apiUrl } from "~/protocol/client";
import { clientHref } from "~/trace/findings";
import { useFeed } from "~/trace/use-feed";
import { useJudged } from "~/trace/use-judged";
import { ActionFile, ActionLink, Actions } from "~/ui/action";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Stack } from "~/ui/panel";
import { Skeleton } from "~/ui/skeleton";
import { JudgeOff } from "~/widgets/judge-off";
import { UNATTRIBUTED } from "~/words/client-name";
import { type Client, clientsOf, titleOf } from "./clients";
import { Report } from "./report";
import { Headline } from "./report-headline";
import { Sessions } from "./sessions";
import { useReport, useRules } from "./use-report";

const UP = ["/clients", "Clients"] as const;

/** Everything that is known of one client: what the judge says, and what it has done. `name` may be that of one of its sessions. */
export function ClientPage({ name }: { name: string }) {
  const rows = useFeed(({ tables }) => tables.sessions);
  const waiting = useFeed(({ hello }) => hello === null);
  const { subjects } = useJudged();
  const client = useMemo(() => clientsOf(rows, subjects).find((each) => each.name === name), [rows, subjects, name]);
  const owner = rows.find(({ id }) => id === name)?.subject;
  // a session of a client that has another name is a part of that one's page
  if (client === undefined && owner !== undefined) return <Redirect to={`${clientHref(owner)}?session=${name}`} replace />;
  const { title } = client === undefined ? { title: name } : titleOf(client);
  return (
    <Page title={title} up={UP} tools={client !== undefined && <Tools client={client} />} scroll>
      {client === undefined ? <Unknown name={name} waiting={waiting} /> : <Known client={client} />}
    </Page>
  );
}

function Tools({ client: { name, rows, subject } }: { client: Client }) {
  const run = useFeed(({ hello }) => hello?.run ?? "");
  const report = `/judge/${encodeURIComponent(name)}`;
  const [newest] = rows;
  const session = name === UNATTRIBUTED ? undefined : newest?.id;
  return (
    <Actions label="Client">
      {session !== undefined && (
        <>
          <ActionLink icon={List} to={traceHref({ filter: `client:${session}` })}>Trace</ActionLink>
          {/* another run of the server gave the same label to another client */}
          <ActionLink icon={Wrench} to={`/calls?session=${session}&run=${run}`}>Calls</ActionLink>
          <ActionLink icon={FileDown} to={`/export?client=${session}`}>Save as a file</ActionLink>
        </>
      )}
      {subject !== null && (
        <>
          <ActionFile icon={Printer} href={apiUrl(`${report}/card`)}>Card</ActionFile>
          <ActionFile icon={FileDown} href={apiUrl(`${report}/junit`)}>JUnit</ActionFile>
          <ActionFile icon={FileDown} href={apiUrl(report)}>JSON</ActionFile>
        </>
      )}
    </Actions>
  );
}

function Unknown({ name, waiting }: { name: string; waiting: boolean }) {
  const { state, answered } = useJudged();
  if (waiting || (state === "on" && !answered)) return <Skeleton label="Loading" />;
  return (
    <EmptyState title="No such client">
      <p role="alert">
        This run of the server knows no client <code>{name}</code>. It made room for newer ones, or belongs to an earlier run.
      </p>
      <p>
        To give a client this name, connect it to <code>/mcp?client={name}</code>. This page then shows its verdicts as they come.
      </p>
    </EmptyState>
  );
}

function Known({ client }: { client: Client }) {
  const { state } = useJudged();
  return (
    <Stack>
      {state === "off" && <JudgeOff />}
      {state !== "off" && (client.subject === null ? <p>The judge has no verdict on this client yet, or has forgotten it for newer ones.</p> : <Judged client={client} />)}
      <Sessions client={client} />
    </Stack>
  );
}

function Judged({ client }: { client: Client }) {
  const report = useReport(client.name);
  const rules = useRules();
  const subject = report.data?.subjects[0];
  const error = report.error ?? rules.error;
  if (error !== null && !(error instanceof ApiError && error.status === 404)) return <p role="alert">The verdicts could not be loaded: {error.message}</p>;
  if (report.data === undefined || subject === undefined || rules.data === undefined) {
    // the summary is here before the whole
    return client.subject === null ? <Skeleton label="Loading the verdicts" /> : <Headline client={client} subject={client.subject} />;
  }
  return <Report client={client} report={report.data} subject={subject} rules={rules.data} />;
}
