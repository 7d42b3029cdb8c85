import { useParams } from "wouter";
import { ClientCards } from "./client-cards";
import { ClientPage } from "./client-page";

/** All clients, or one of them with its report and its sessions. */
export default function ClientsView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <ClientCards /> : <ClientPage key={id} name={id} />;
}
