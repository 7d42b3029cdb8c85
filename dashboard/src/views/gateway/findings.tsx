import { useState } from "react";
import { Link } from "wouter";
import type { GatewayFinding, GatewayReport } from "~/protocol/schema";
import { Badge } from "~/ui/badge";
import { CopyButton } from "~/ui/copy-button";
import { Time } from "~/ui/time";
import { usePrinting } from "~/ui/use-printing";
import styles from "./gateway.module.css";
import { type Pair, pairsOf } from "./pairs";
import { VERDICTS, countsOf, forMaker, harmOf, sentenceOf } from "./words";

/** What a run says of the gateway: a sentence, then each check, the worst first and open. */
export function Findings({ report }: { report: GatewayReport }) {
  const sorted = report.findings.toSorted((a, b) => a.severity.localeCompare(b.severity));
  const worst = VERDICTS.filter(({ open }) => open).flatMap(({ verdict }) => sorted.filter((each) => each.verdict === verdict && !each.allowed))[0];
  return (
    <div className={styles["run"]}>
      <section aria-label="Conclusion">
        <p className={styles["sentence"]}>{sentenceOf(report)}</p>
        {report.partial !== "" && (
          <p>
            <Badge tone="warn">partial</Badge> {report.partial}
          </p>
        )}
        <p className={styles["quiet"]}>
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
    <details className={styles["group"]} open={open}>
      <summary>
        <h2>
          <Badge tone={tone}>{verdict}</Badge> {findings.length}
        </h2>
        <span className={styles["quiet"]}>{meaning}</span>
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
        <code className={styles["name"]}>{name}</code>
        <span className={styles["title"]}>
          {title} {allowed && <Badge title="accepted with --allow">accepted</Badge>}
        </span>
        <span>
          {direct} <span className={styles["quiet"]}>direct</span>
        </span>
        <span>
          <strong>{through}</strong> <span className={styles["quiet"]}>through</span>
        </span>
      </summary>
      <div className={styles["inside"]}>
        {evidence !== "" && <p>{evidence}</p>}
        {hints.length > 0 && <Hints hints={hints} />}
        {pairs.length > 0 && <Pairs pairs={pairs} />}
        <p className={styles["foot"]}>
          {verdict !== "same" && verdict !== "n/a" && <span className={styles["quiet"]}>Harm: {harmOf(finding)}</span>}
          <CopyButton text={() => forMaker(finding, report)} label="Copy for the maker" />
        </p>
      </div>
    </details>
  );
}

/** What to do, and what to set at which product. */
function Hints({ hints }: { hints: GatewayFinding["hints"] }) {
  return (
    <div className={styles["hint"]}>
      <p>
        <strong>Remedy:</strong> {hints.filter(({ product }) => product === null).map(({ lines }) => lines.join(" "))}
      </p>
      <dl>
        {hints.map(
          ({ product, lines }) =>
            product !== null && (
              <div key={`${product} ${lines[0]}`}>
                <dt>{product}</dt>
                <dd>
                  <code>{lines.join("\n")}</code>
                </dd>
              </div>
            ),
        )}
      </dl>
    </div>
  );
}

/** The requests that a finding rests on, made on both ways. */
function Pairs({ pairs }: { pairs: readonly Pair[] }) {
  return (
    <p className={styles["pairs"]}>
      <span className={styles["quiet"]}>Both requests side by side:</span>
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
