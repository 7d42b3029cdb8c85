import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useMcpAddress, useServer } from "~/protocol/client";
import type { JudgedSubject } from "~/protocol/schema";
import { useFeed } from "~/trace/feed";
import { clientHref, faultOf, looksOf, useJudged } from "~/trace/findings";
import { Button } from "~/ui/buttons";
import { SearchField } from "~/ui/fields";
import { Page } from "~/ui/page";
import { CodeBlock, EmptyState, Skeleton } from "~/ui/panel";
import { Time, useNow } from "~/ui/time";
import { useUrlState } from "~/ui/window";
import { ConnectClient, oneCommand } from "~/widgets/connect-client";
import { JudgeOff } from "~/widgets/findings";
import { begun, counted, UNATTRIBUTED } from "~/words/text";
import styles from "./client-cards.module.css";
import { type Card, cardsOf, type Client, clientsOf, conclusionOf, countsOf, type Mood, moodOf, titleOf } from "./clients";
import { Dated, Figures, RuleFigures } from "./figures";

// of clients, and of the findings of one
const NAMED = 3;
// more are a click away: a public server has had thousands of clients
const SHOWN = 60;

/** Every client with what the judge says of it, the worst first; how to connect one while there is none. */
export function ClientCards() {
  const waiting = useFeed(({ hello }) => hello === null);
  const rows = useFeed(({ tables }) => tables.sessions);
  const { subjects, state, error } = useJudged();
  const file = useServer().data?.file ?? null;
  const [text, setText] = useUrlState("text");
  const clients = useMemo(() => clientsOf(rows, subjects).filter(hasDone), [rows, subjects]);
  const known = useMemo(() => clients.filter(({ name }) => name !== UNATTRIBUTED), [clients]);
  const cards = useMemo(() => cardsOf(clients.filter((client) => wordsOf(client).includes(text.toLowerCase()))), [clients, text]);
  const all = useMemo(() => cardsOf(known), [known]);
  const count = all.length;
  const first = useFirst(known, waiting);
  const tools = clients.length > 1 && (
    <>
      <SearchField label="Search clients" value={text} onChange={setText} /> <span className="aside">{`${counted(count, "client")}${count > 1 ? ": the worst first, then the newest" : ""}`}</span>
    </>
  );
  return (
    <Page title="Clients" tools={tools} scroll>
      {waiting && <Skeleton label="Waiting for the server" />}
      {!waiting && known.length === 0 && (file === null ? <Welcome /> : <EmptyState title="The file has no client" />)}
      {first !== null && <FirstRequest client={first} />}
      {clients.length > 0 && (
        <div className={`${styles["view"]} column`}>
          {state === "off" && <JudgeOff />}
          {error !== null && <p role="alert">The verdicts could not be loaded: {error.message}</p>}
          {count > 1 && <Verdict cards={all} />}
          {cards.length === 0 && <EmptyState title={`No client matches “${text}”`} />}
          <Cards cards={cards} />
        </div>
      )}
    </Page>
  );
}

/** What is unattributed is shown once something of it was refused, noted or judged. */
function hasDone({ name, rows, subject }: Client): boolean {
  return name !== UNATTRIBUTED || rows.length > 0 || (subject !== null && countsOf(subject).exercised > 0);
}

const wordsOf = (client: Client) => `${client.name} ${titleOf(client).title} ${titleOf(client).aside}`.toLowerCase();

/** What the verdicts on all clients come to; nothing while none is judged. */
function Verdict({ cards }: { cards: readonly Card[] }) {
  const of = (wanted: Mood) => cards.filter(({ client: { subject } }) => subject !== null && moodOf(subject) === wanted).map(({ client }) => titleOf(client).title);
  const [bad, warn] = [of("bad"), of("warn")];
  if (bad.length + warn.length + of("good").length === 0) return null;
  const [named, tone] = bad.length > 0 ? [bad, "bad"] : [warn, warn.length > 0 ? "warn" : "good"];
  const part = `${named.length} of ${counted(cards.length, "client")}`;
  const what = bad.length > 0 ? `${part} ${bad.length === 1 ? "breaks" : "break"} the protocol: ` : warn.length > 0 ? `No client breaks the protocol; ${part} ${warn.length === 1 ? "has" : "have"} warnings: ` : `No fault seen in ${counted(cards.length, "client")}`;
  return (
    <p className="answer" data-tone={tone} role="status" aria-label="Verdict on all clients">
      {what}
      {named.slice(0, NAMED).join(", ")}
      {named.length > NAMED && ` and ${named.length - NAMED} more`}.
    </p>
  );
}

function Cards({ cards }: { cards: readonly Card[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? cards : cards.slice(0, SHOWN);
  return (
    <>
      <ul className={styles["cards"]} aria-label="Clients">
        {shown.map((card) => (
          <li key={card.client.name} className={`${styles["card"]} panel`}>
            <Content {...card} />
          </li>
        ))}
      </ul>
      {shown.length < cards.length && <Button onClick={() => setAll(true)}>Show all {cards.length}</Button>}
    </>
  );
}

function Content({ client, earlier }: Card) {
  const { subject } = client;
  const { title, aside } = titleOf(client);
  return (
    <>
      <header>
        <h2>
          <Link href={clientHref(client.name)} className={styles["whole"] ?? ""}>
            {title}
          </Link>{" "}
          <span className="aside">{aside}</span>
        </h2>
        {client.lastAt > 0 && <Activity at={client.lastAt} />}
      </header>
      {subject === null ? <Unjudged client={client} /> : <Judged subject={subject} />}
      {earlier.length > 0 && <Earlier clients={earlier} />}
    </>
  );
}

// as long as a person looks for what has just been done
const ACTIVE_S = 10;

/** When its latest message came, with a mark while it works. */
function Activity({ at }: { at: number }) {
  const active = useNow() - at < ACTIVE_S;
  return (
    <span className={`aside ${active ? styles["active"] : ""}`}>
      <Time at={at} look="ago" />
    </span>
  );
}

function Judged({ subject }: { subject: JudgedSubject }) {
  return (
    <>
      <p className={styles["sentence"]} data-tone={moodOf(subject)}>
        <Dated text={begun(conclusionOf(subject))} />
      </p>
      <RuleFigures subject={subject} />
      <Worst subject={subject} />
    </>
  );
}

/** What is worst, by name. */
function Worst({ subject: { label, verdicts } }: { subject: JudgedSubject }) {
  if (verdicts.length === 0) return null;
  const sorted = verdicts.toSorted((a, b) => Number(b.verdict === "FAIL") - Number(a.verdict === "FAIL"));
  return (
    <ul className={`${styles["worst"]} column links calm`} aria-label="Findings">
      {sorted.slice(0, NAMED).map((rule) => (
        <li key={rule.rule}>
          <Link href={clientHref(label, rule.rule)} data-tone={looksOf(rule.verdict).tone}>
            {looksOf(rule.verdict).sign} {faultOf(rule)}
          </Link>
        </li>
      ))}
      {sorted.length > NAMED && <li className="aside">and {sorted.length - NAMED} more</li>}
    </ul>
  );
}

/** What is known without a judge. */
function Unjudged({ client: { rows } }: { client: Client }) {
  const { state, answered } = useJudged();
  if (state !== "off" && !answered) return <Skeleton label="Loading the verdict" />;
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
  return (
    <>
      <p className={styles["sentence"]}>{state === "off" ? "Not judged" : "No verdict yet"}</p>
      <Figures
        label="Traffic"
        figures={[
          { name: "requests", value: sum(({ requests }) => requests) },
          { name: "refused", value: sum(({ refused }) => refused), mood: "bad" },
          { name: "noted", value: sum(({ misuse }) => misuse), mood: "bad" },
        ]}
      />
    </>
  );
}

// as many as a line has room for
const EARLIER = 6;

/** Earlier sessions of a client with the same name, each with its own verdicts: those that broke rules first. */
function Earlier({ clients }: { clients: readonly Client[] }) {
  const faulty = clients.filter(({ subject }) => subject !== null && moodOf(subject) === "bad");
  const sorted = [...faulty, ...clients.filter((client) => !faulty.includes(client))];
  return (
    <p className={`${styles["earlier"]} row aside links calm`}>
      {counted(clients.length, "earlier session")}
      {faulty.length > 0 && `, ${faulty.length} with broken rules`}:{" "}
      {sorted.slice(0, EARLIER).map(({ name, subject }) => {
        const mood = subject === null ? "neutral" : moodOf(subject);
        return (
          <Link key={name} href={clientHref(name)} data-tone={mood} title={subject === null ? "not judged" : conclusionOf(subject)}>
            {name} {SIGNS[mood]}
          </Link>
        );
      })}
      {clients.length > EARLIER && "…"}
    </p>
  );
}

const SIGNS = { bad: "✗", warn: "!", good: "✓", neutral: "·" } as const;

/** What stands here until the first client comes: one command to try it, and how to connect a client. */
function Welcome() {
  const address = useMcpAddress();
  return (
    <section className={`${styles["welcome"]} column`} aria-label="Welcome">
      <p className={styles["listening"]}>
        <span className={styles["dot"]} aria-hidden="true" /> Waiting for the first request
      </p>
      <h2 className={styles["title"]}>See what your MCP client really does</h2>
      <p className="lead">
        Each client that connects appears here at its first request, with the rules of the specification that it breaks and the messages that show it.
      </p>
      {address !== null && (
        <div className="column">
          <h3>Try it now: paste this into a terminal</h3>
          <CodeBlock title="Shell" code={oneCommand(address)} wrap />
        </div>
      )}
      <div className="column">
        <h3>Connect your client</h3>
        <ConnectClient address={address} />
      </div>
    </section>
  );
}

/** The client that came first while the page was open, as long as it is the only one. */
function useFirst(clients: readonly Client[], waiting: boolean): Client | null {
  const [sawNone, setSawNone] = useState(false);
  if (!waiting && clients.length === 0 && !sawNone) setSawNone(true);
  const [first, second] = clients;
  return sawNone && first !== undefined && second === undefined ? first : null;
}

/** Says that the first request has come: for a person who has just waited for it. */
function FirstRequest({ client }: { client: Client }) {
  return (
    <p className={styles["first"]} role="status">
      <svg className={styles["sign"]} viewBox="0 0 48 48" aria-hidden="true">
        <circle className={styles["ground"]} cx="24" cy="24" r="20" />
        <path className={styles["check"]} d="M15 25 l6.5 6.5 L34 18" pathLength="1" />
      </svg>
      <span>
        <strong>It works: {titleOf(client).title} has sent its first request.</strong>
        <br />
        The verdicts below change as it goes on. <Link href="/trace">Trace</Link> has each message.
      </span>
    </p>
  );
}
