import { useState } from "react";
import { Link } from "wouter";
import type { GatewayFinding, GatewayReport } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { CopyButton } from "~/ui/buttons";
import { Fact, Facts } from "~/ui/panel";
import { Time } from "~/ui/time";
import { formatDuration } from "~/ui/time-format";
import { usePrinting } from "~/ui/window";
import styles from "./gateway.module.css";
import { countsOf, forMaker, harmOf, type Pair, pairsOf, type Seen, sentenceOf, type Trace, VERDICTS, type Way, WAY_NAMES } from "./run";

/** What a run says of the gateway: a sentence, then each check, the worst first and open. */
export function Findings({ report }: { report: GatewayReport }) {
  const sorted = report.findings.toSorted((a, b) => a.severity.localeCompare(b.severity));
  const worst = VERDICTS.filter(({ open }) => open).flatMap(({ verdict }) => sorted.filter((each) => each.verdict === verdict && !each.allowed))[0];
  return (
    <div className={`${styles["run"]} column`}>
      <section aria-label="Conclusion">
        <p className="answer">{sentenceOf(report)}</p>
        {report.partial !== "" && (
          <p>
            <Badge tone="warn">partial</Badge> {report.partial}
          </p>
        )}
        <p className="quiet">
          {countsOf(report.findings)} · <code>{report.through}</code> against <code>{report.direct}</code> · profile {report.profile} ·{" "}
          <Time at={report.started_at} look="both" />
        </p>
      </section>
      {VERDICTS.map((looks) => {
        const findings = sorted.filter(({ verdict }) => verdict === looks.verdict);
        return findings.length > 0 && <Group key={looks.verdict} {...looks} findings={findings} worst={worst} report={report} />;
      })}
    </div>
  );
}

type GroupProps = (typeof VERDICTS)[number] & { findings: readonly GatewayFinding[]; worst: GatewayFinding | undefined; report: GatewayReport };

/** The checks of one verdict. */
function Group({ verdict, tone, meaning, open, findings, worst, report }: GroupProps) {
  return (
    <details className={`${styles["group"]} panel`} open={open}>
      <summary>
        <h2>
          <Badge tone={tone}>{verdict}</Badge> {findings.length}
        </h2>
        <span className="quiet">{meaning}</span>
      </summary>
      <ul>
        {findings.map((finding) => (
          <li key={finding.name}>
            <Finding finding={finding} report={report} opened={finding === worst} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** One check: what was measured on both ways in its line, and behind it the evidence and what to set. */
function Finding({ finding, report, opened }: { finding: GatewayFinding; report: GatewayReport; opened: boolean }) {
  const [open, setOpen] = useState(opened);
  const printing = usePrinting();
  const { name, title, direct, through, evidence, hints, allowed, verdict } = finding;
  const pairs = pairsOf(finding, report);
  return (
    <details
      className={styles["finding"]}
      id={name}
      open={open || printing}
      onToggle={(event) => {
        if (!printing) setOpen(event.currentTarget.open);
      }}
    >
      <summary>
        <code className={`${styles["name"]} fold quiet`}>{name}</code>
        <span className={styles["title"]}>
          {title} {allowed && <Badge title="accepted with --allow">accepted</Badge>}
        </span>
        <span>
          {direct} <span className="quiet">direct</span>
        </span>
        <span>
          <strong>{through}</strong> <span className="quiet">through</span>
        </span>
      </summary>
      <div className={`${styles["inside"]} column`}>
        {evidence !== "" && <p>{evidence}</p>}
        {hints.length > 0 && <Hints hints={hints} />}
        {pairs.length > 0 && <Pairs pairs={pairs} />}
        <p className="row">
          {verdict !== "same" && verdict !== "n/a" && <span className="quiet">Harm: {harmOf(finding)}</span>}
          <CopyButton text={() => forMaker(finding, report)} label="Copy for the maker" />
        </p>
      </div>
    </details>
  );
}

/** What to do, and what to set at which product. */
function Hints({ hints }: { hints: GatewayFinding["hints"] }) {
  return (
    <div className={`${styles["hint"]} column`}>
      <p>
        <strong>Remedy:</strong> {hints.filter(({ product }) => product === null).map(({ lines }) => lines.join(" "))}
      </p>
      <Facts>
        {hints.map(
          ({ product, lines }) =>
            product !== null && (
              <Fact key={`${product} ${lines[0]}`} name={product}>
                <code>{lines.join("\n")}</code>
              </Fact>
            ),
        )}
      </Facts>
    </div>
  );
}

/** The requests that a finding rests on, made on both ways. */
function Pairs({ pairs }: { pairs: readonly Pair[] }) {
  return (
    <p className={`${styles["pairs"]} row links`}>
      <span className="quiet">Both requests side by side:</span>
      {pairs.map(({ step, turn, direct, through }) => (
        <Link key={`${step} ${turn}`} href={`/gateway?step=${encodeURIComponent(step)}&turn=${turn}`}>
          {step}
          {pairs.some((each) => each.step === step && each.turn !== turn) && `, turn ${turn}`}
          {(direct ?? through)?.skipped !== "" && " (skipped)"}
        </Link>
      ))}
    </p>
  );
}

interface StripProps {
  traces: readonly (readonly [way: Way, trace: Trace | undefined])[];
  /** The end of the scale, in milliseconds. */
  last: number;
}

const ENDS = [
  ["probe", "sent by the probe"],
  ["client", "arrived at the client"],
] as const;

/** When the messages of both ways left the probe and came to the client, on one scale: what is late or held back is seen at once. */
export function Strip({ traces, last }: StripProps) {
  const drawn = traces.filter((each): each is readonly [Way, Trace] => each[1] !== undefined);
  return (
    <div className={`${styles["strip"]} column`}>
      {drawn.map(([way, { seen }]) => (
        <div key={way} role="group" aria-label={WAY_NAMES[way]}>
          <h3>{WAY_NAMES[way]}</h3>
          {ENDS.map(([end, name]) => (
            <Lane key={end} name={name} at={seen.filter((each) => each.end === end && each.isMessage)} last={last} />
          ))}
        </div>
      ))}
      <p className={styles["scale"]}>
        <span>0 ms</span>
        <span>{formatDuration(last)}</span>
      </p>
    </div>
  );
}

function Lane({ name, at, last }: { name: string; at: readonly Seen[]; last: number }) {
  const times = at.length === 0 ? "none" : `${at.length}, from ${formatDuration(at[0]?.offset ?? 0)} to ${formatDuration(at.at(-1)?.offset ?? 0)}`;
  return (
    <div className={styles["lane"]}>
      <span>{name}</span>
      <svg role="img" aria-label={`${name}: ${times}`}>
        <line x1="0" x2="100%" y1="50%" y2="50%" />
        {at.map(({ key, offset, what }) => (
          <circle key={key} cx={`${1 + (98 * Math.max(0, offset)) / last}%`} cy="50%" r="4">
            <title>{`${what}, ${formatDuration(offset)}`}</title>
          </circle>
        ))}
      </svg>
    </div>
  );
}
