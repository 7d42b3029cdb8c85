import { useParams } from "wouter";
import { CallList } from "./call-list";
import { CallPage } from "./call-page";

export default function CallsView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <CallList /> : <CallPage key={id} id={id} />;
}
