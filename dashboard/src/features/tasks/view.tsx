import { useParams } from "wouter";
import { TaskPage } from "./task-page";
import { TaskList } from "./task-list";

export default function TasksView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <TaskList /> : <TaskPage key={id} id={id} />;
}
