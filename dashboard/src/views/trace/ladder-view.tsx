import { useSearchParams } from "wouter";
import { CallLadder } from "./call-ladder";
import { ClientLadder } from "./client-ladder";

/** The messages of one client, or of one call, as a picture. */
export default function LadderView() {
  const [params] = useSearchParams();
  const call = params.get("call");
  return call === null ? <ClientLadder session={params.get("client") ?? params.get("session") ?? ""} /> : <CallLadder key={call} id={call} />;
}
