import { useParams } from "wouter";
import { TaskList } from "./task-list";
import { TaskPage } from "./task-page";

export default function TasksView() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <TaskList /> : <TaskPage key={id} id={id} />;
}
