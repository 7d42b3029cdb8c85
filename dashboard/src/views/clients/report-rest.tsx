import { writeJson } from "~/protocol/json";
import type { JudgeReport, JudgedSubject } from "~/protocol/schema";
import { KeyValues } from "~/ui/key-values";
import { Panel } from "~/ui/panel";
import styles from "./report.module.css";

/** The rules of which every opportunity was taken. */
export function Passed({ subject, fresh }: { subject: JudgedSubject; fresh: ReadonlySet<string> }) {
  const passed = subject.verdicts.filter(({ verdict }) => verdict === "PASS");
  if (passed.length === 0) return null;
  return (
    <Panel title={`Passed: ${passed.length}`}>
      <ul className={styles["passed"]}>
        {passed.map((rule) => (
          <li key={rule.rule} className={fresh.has(rule.rule) ? styles["fresh"] : undefined}>
            {rule.title} <span className={styles["quiet"]}>{rule.count}×{fresh.has(rule.rule) && ", decided just now"}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** What was measured without a verdict. */
export function Measured({ subject: { measured } }: { subject: JudgedSubject }) {
  const values = Object.entries(measured);
  if (values.length === 0) return null;
  return (
    <Panel title="Measured">
      <KeyValues items={values.map(([name, value]) => [name, typeof value === "string" ? value : writeJson(value, 0)])} />
    </Panel>
  );
}

/** What no server can see, so that nobody takes a report without findings for a proof. */
export function NotVisible({ report }: { report: JudgeReport }) {
  return (
    <Panel title="Not visible from a server">
      <ul className={styles["titles"]}>
        {report.not_visible.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </Panel>
  );
}
