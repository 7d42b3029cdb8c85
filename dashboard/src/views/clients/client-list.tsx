import { useMemo } from "react";
import { Link } from "wouter";
import type { JudgedSubject } from "~/protocol/schema";
import { reportHref } from "~/trace/findings";
import { useJudged } from "~/trace/use-judged";
import { Badge } from "~/ui/badge";
import { EmptyState } from "~/ui/empty-state";
import { Page } from "~/ui/page";
import { Stack } from "~/ui/panel";
import { Counts } from "~/widgets/finding-counts";
import { NothingYet } from "~/widgets/nothing-yet";
import { UNATTRIBUTED } from "~/words/client-name";
import styles from "./report.module.css";
import { placeOf, whoIs } from "./rule-words";

/** All judged clients, those with the most failed rules first. */
export function ClientList() {
  const { subjects, answered, error } = useJudged();
  const sorted = useMemo(() => subjects.toSorted((a, b) => badness(b) - badness(a)), [subjects]);
  return (
    <Page title="Reports" scroll>
      {error !== null && <EmptyState title="The verdicts could not be loaded">{error.message}</EmptyState>}
      {answered && sorted.length === 0 && (
        <NothingYet title="No client was judged yet">Each client appears here with its first request, and its rules as they are decided.</NothingYet>
      )}
      {sorted.length > 0 && (
        <Stack>
          <p className={styles["quiet"]}>
            A rule that was not observed says nothing: no opportunity for it came. Who is one client: <code>?client=NAME</code> in the address, else a
            session, a connection, or a modern client by its name and address.
          </p>
          <ul className={styles["clients"]} aria-label="Judged clients">
            {sorted.map((subject) => (
              <li key={subject.label} className={styles["client"]}>
                <Client subject={subject} />
              </li>
            ))}
          </ul>
        </Stack>
      )}
    </Page>
  );
}

function badness({ summary }: JudgedSubject): number {
  return (summary["FAIL"] ?? 0) * 1000 + (summary["WARN"] ?? 0);
}

function Client({ subject }: { subject: JudgedSubject }) {
  return (
    <>
      <h2>
        <Link href={reportHref(subject.label)}>{subject.label}</Link> <span className={styles["quiet"]}>{subject.label === UNATTRIBUTED ? "no known client" : whoIs(subject)}</span>
      </h2>
      <p className={styles["quiet"]}>{placeOf(subject)}</p>
      <Counts subject={subject} />
      {subject.several !== null && <Badge tone="warn">several clients may be judged here</Badge>}
    </>
  );
}
