import type { GatewayFinding, GatewayReport } from "~/protocol/schema";
import type { Tone } from "~/ui/badge";
import { counted } from "~/words/counted";

type Verdict = GatewayFinding["verdict"];

interface Looks {
  verdict: Verdict;
  tone: Tone;
  /** Stands over those with this verdict. */
  meaning: string;
  /** Whether they are shown without being asked for. */
  open: boolean;
}

/** The verdicts, what matters most first. */
export const VERDICTS: readonly Looks[] = [
  { verdict: "broken", tone: "bad", meaning: "Wrong results, double effects, or a part of the protocol that is lost", open: true },
  { verdict: "degraded", tone: "warn", meaning: "Late, or limited", open: true },
  { verdict: "changed", tone: "info", meaning: "A difference that a gateway is allowed", open: true },
  { verdict: "unclear", tone: "neutral", meaning: "Not decided: the direct path itself was late, or a call was not found at the probe", open: true },
  { verdict: "same", tone: "good", meaning: "The same on both paths", open: false },
  { verdict: "n/a", tone: "neutral", meaning: "The gateway does not offer what the check is about, or another fault hides it", open: false },
];

const SEVERITIES: Readonly<Record<GatewayFinding["severity"], string>> = {
  A: "wrong results or double effects",
  B: "a part of the protocol is lost",
  C: "late or limited",
  D: "for information",
};

/** How much harm a fault does, in words. */
export const harmOf = ({ severity }: GatewayFinding): string => SEVERITIES[severity] ?? severity;

/** `1 broken, 2 degraded, 36 the same`: how many findings have each verdict that any has. */
export function countsOf(findings: readonly GatewayFinding[]): string {
  const parts = VERDICTS.map(({ verdict }) => [verdict === "same" ? "the same" : verdict, findings.filter((each) => each.verdict === verdict).length] as const);
  return parts.filter(([, count]) => count > 0).map(([word, count]) => `${count} ${word}`).join(", ");
}

/** What a run says of the gateway, in one sentence. */
export function sentenceOf({ findings, product }: GatewayReport): string {
  const gateway = product ?? "The gateway";
  const of = (verdict: Verdict) => findings.filter((each) => each.verdict === verdict && !each.allowed).length;
  const [broken, degraded, unclear] = [of("broken"), of("degraded"), of("unclear")];
  if (broken > 0) return `${gateway} breaks ${counted(broken, "part")} of the protocol${degraded > 0 ? ` and limits ${degraded}` : ""}.`;
  if (degraded > 0) return `${gateway} breaks nothing, and limits ${counted(degraded, "part")} of the protocol.`;
  if (unclear > 0) return `${gateway} breaks nothing that could be judged; ${counted(unclear, "part")} could not.`;
  return findings.length === 0 ? "No check was made." : `${gateway} passes on all of the protocol that was checked.`;
}

/** A finding as Markdown, for the maker of the gateway. */
export function forMaker(finding: GatewayFinding, { through, product, profile, program }: GatewayReport): string {
  const lines = [
    `### ${finding.name}: ${finding.title}`,
    "",
    `${product ?? "The gateway"} at ${through}, checked with mcp-probe ${program} (profile ${profile}). Verdict: ${finding.verdict}.`,
    "",
    "| way | measured |",
    "|---|---|",
    `| without the gateway | ${cell(finding.direct)} |`,
    `| through the gateway | ${cell(finding.through)} |`,
    ...(finding.evidence === "" ? [] : ["", `Evidence: ${finding.evidence}`]),
    ...(finding.hints.length === 0 ? [] : ["", "Remedy:", "", ...finding.hints.map(itemOf)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** A hint as an item of a list, what to set as code. */
function itemOf({ product, lines }: GatewayFinding["hints"][number]): string {
  return product === null ? `- ${lines.join(" ")}` : `- ${product}: ${lines.map((line) => `\`${line}\``).join(" ")}`;
}

const cell = (text: string) => text.replaceAll("|", String.raw`\|`).replaceAll("\n", " ");
