import type { LimitInfo, SettingInfo } from "~/protocol/schema";
import { Panel, Stack } from "~/ui/panel";
import { type PlainColumn, PlainTable } from "~/ui/plain-table";
import { ServerPage } from "./server-view";
import styles from "./server.module.css";

/** Every limit and every other setting, each with its reason. */
export default function LimitsView() {
  return (
    <ServerPage part="Limits">
      {({ limits, settings }) => (
        <Stack>
          <Limits limits={limits} />
          <Settings settings={settings} />
        </Stack>
      )}
    </ServerPage>
  );
}

const number = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 3 });

const LIMIT_COLUMNS: readonly PlainColumn<LimitInfo>[] = [
  { key: "name", head: "Limit", width: 22, cell: (limit) => <code>{limit.name}</code> },
  { key: "used", head: "In use", width: 15, cell: (limit) => <Use limit={limit} /> },
  { key: "value", head: "Maximum", align: "end", width: 10, cell: (limit) => number(limit.value) },
  { key: "reason", head: "Unit and reason", cell: (limit) => <Why {...limit} /> },
];

/** `sessions: an idle session costs a few kB`. */
function Why({ unit, reason }: { unit: string; reason: string }) {
  return (
    <>
      <span className="quiet">{unit}:</span> {reason}
    </>
  );
}

/** Every limit with its reason; those that all clients share show how much of them is taken now. */
function Limits({ limits }: { limits: readonly LimitInfo[] }) {
  // what can run out comes first
  const sorted = limits.toSorted((a, b) => Number(b.used !== null) - Number(a.used !== null));
  return (
    <Panel title="Limits">
      <PlainTable
        caption="Limits"
        hidden
        columns={LIMIT_COLUMNS}
        rows={sorted}
        rowKey={(limit) => limit.name}
      />
    </Panel>
  );
}

function Use({ limit: { name, used, value } }: { limit: LimitInfo }) {
  if (used === null) return <span className="quiet">per client or request</span>;
  const share = value > 0 ? Math.min(1, used / value) : 1;
  return (
    <span className={styles["use"]}>
      <span
        className="track"
        role="meter"
        aria-label={`${name} in use`}
        aria-valuemin={0}
        aria-valuemax={value}
        aria-valuenow={Math.min(used, value)}
        aria-valuetext={`${number(used)} of ${number(value)}`}
      >
        <span data-tone={share >= 1 ? "bad" : share >= 0.8 ? "warn" : "info"} style={{ width: `${share * 100}%` }} />
      </span>
      <span>
        {number(used)}
        {share >= 1 ? ", full" : ""}
      </span>
    </span>
  );
}

const SETTING_COLUMNS: readonly PlainColumn<SettingInfo>[] = [
  { key: "name", head: "Setting", width: 22, cell: (setting) => <code>{setting.name}</code> },
  { key: "value", head: "Value", width: 25, cell: (setting) => (setting.value === "" ? <Empty /> : String(setting.value)) },
  { key: "reason", head: "Unit and reason", cell: (setting) => <Why {...setting} /> },
];

/** Every setting that is no limit. */
function Settings({ settings }: { settings: readonly SettingInfo[] }) {
  return (
    <Panel title="Settings">
      <PlainTable
        caption="Settings"
        hidden
        columns={SETTING_COLUMNS}
        rows={settings}
        rowKey={(setting) => setting.name}
      />
    </Panel>
  );
}

function Empty() {
  return <span className="quiet">empty</span>;
}
