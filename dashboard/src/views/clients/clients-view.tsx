import { useQuery } from "@tanstack/react-query";
import { FileDown, List, Printer, Wrench } from "lucide";
import { useMemo } from "react";
import { Redirect, useParams } from "wouter";
import { ApiError, apiUrl, get, traceHref, useRefresh } from "~/protocol/client";
import type { JudgeReport, RuleInfo, RuleList } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { clientHref, idle, PACE, useJudged, useLogEnd } from "~/trace/findings";
import { ActionFile, ActionLink, Actions } from "~/ui/buttons";
import { Page } from "~/ui/page";
import { EmptyState, Skeleton, Stack } from "~/ui/panel";
import { JudgeOff } from "~/widgets/findings";
import { UNATTRIBUTED } from "~/words/text";
import { ClientCards } from "./client-cards";
import { type Client, clientsOf, titleOf } from "./clients";
import { Headline, Report } from "./report";
import { Sessions } from "./sessions";

/** All clients, or one of them with its report and its sessions. */
export default function ClientsView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <ClientCards /> : <ClientPage key={id} name={id} />;
}

const UP = ["/clients", "Clients"] as const;

/** Everything that is known of one client: what the judge says, and what it has done. `name` may be that of one of its sessions. */
function ClientPage({ name }: { name: string }) {
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
  const { state, answered } = useJudged();
  const none = answered ? <p>The judge has no verdict on this client yet, or has forgotten it for newer ones.</p> : <Skeleton label="Loading the verdicts" />;
  return (
    <Stack>
      {state === "off" && <JudgeOff />}
      {state !== "off" && (client.subject === null ? none : <Judged client={client} />)}
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
    return (
      <>
        {client.subject !== null && <Headline client={client} subject={client.subject} />}
        <Skeleton label="Loading the verdicts" />
      </>
    );
  }
  return <Report client={client} report={report.data} subject={subject} rules={rules.data} />;
}

/** The whole report on one client, asked for again while the client works and the page is in view. */
function useReport(client: string) {
  const { state, run } = useJudged();
  useRefresh(["report"], useLogEnd(), PACE);
  return useQuery({
    queryKey: ["report", run, client],
    queryFn: ({ signal }) => get<JudgeReport>(`/judge/${encodeURIComponent(client)}`, {}, signal),
    enabled: state === "on",
    refetchInterval: idle,
  });
}

/** The catalogue by the ids of its rules; it never changes while the server runs. */
function useRules() {
  const { run } = useJudged();
  return useQuery({
    queryKey: ["rules", run],
    queryFn: ({ signal }) => get<RuleList>("/judge/rules", {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
    select: byId,
  });
}

function byId({ rules }: RuleList): ReadonlyMap<string, RuleInfo> {
  return new Map(rules.map((rule) => [rule.rule, rule]));
}
