import { Component, lazy, type ReactNode, Suspense } from "react";
import { Link, Redirect, Route, Switch, useLocation, useParams, useSearch } from "wouter";
import { Button } from "~/ui/buttons";
import { Page } from "~/ui/page";
import { EmptyState, Skeleton } from "~/ui/panel";

const Clients = lazy(() => import("~/views/clients/clients-view"));
const Calls = lazy(() => import("~/views/calls/calls-view"));
const Tasks = lazy(() => import("~/views/calls/tasks-view"));
const Trace = lazy(() => import("~/views/trace/trace-view"));
const Gateway = lazy(() => import("~/views/gateway/gateway-view"));
const Server = lazy(() => import("~/views/server/server-view"));
const Streams = lazy(() => import("~/views/server/streams-view"));
const Limits = lazy(() => import("~/views/server/limits-view"));
const Hosts = lazy(() => import("~/views/server/hosts-view"));
const Help = lazy(() => import("~/views/server/help-view"));
const ExportView = lazy(() => import("~/views/trace/saving"));

/** Addresses of earlier versions, which links in reports and notes still have, and where each leads. */
const MOVED: readonly (readonly [from: string, to: string])[] = [
  ["/", "/clients"],
  ["/sessions/:id?", "/clients"],
  ["/report/:id?", "/clients"],
  ["/tasks/:id?", "/calls/tasks"],
  ["/hosts/:id?", "/server/hosts"],
  ["/help/:id?", "/server/help"],
  ["/live", "/trace"],
  ["/ladder", "/trace?view=ladder"],
  ["/timeline", "/trace"],
];

/** Which view an address shows. Views read what is selected with `useParams` and their filters with `useUrlState`. */
export function Routes() {
  const [location] = useLocation();
  return (
    <ErrorBoundary key={location.split("/")[1]}>
      <Suspense fallback={<Loading />}>
        <Switch>
          {MOVED.map(([from, to]) => (
            <Route key={from} path={from}>
              <Moved to={to} />
            </Route>
          ))}
          <Route path="/clients/:id?" component={Clients} />
          <Route path="/calls/tasks/:id?" component={Tasks} />
          <Route path="/calls/:id?" component={Calls} />
          <Route path="/trace" component={Trace} />
          <Route path="/gateway" component={Gateway} />
          <Route path="/server" component={Server} />
          <Route path="/server/streams" component={Streams} />
          <Route path="/server/limits" component={Limits} />
          <Route path="/server/hosts/:id?" component={Hosts} />
          <Route path="/server/help/:tool?" component={Help} />
          <Route path="/export" component={ExportView} />
          <Route>
            <Page title="There is no such page">
              <EmptyState title="The address leads to nothing">
                The views are in the menu at the top, such as <Link href="/clients">Clients</Link>.
              </EmptyState>
            </Page>
          </Route>
        </Switch>
      </Suspense>
    </ErrorBoundary>
  );
}

/** Leads on, with the id, the query and the anchor of the address. */
function Moved({ to }: { to: string }) {
  const { id } = useParams<{ id?: string }>();
  const [path = "", more = ""] = to.split("?");
  const query = [more, useSearch()].filter((part) => part !== "").join("&");
  return <Redirect to={`${path}${id === undefined ? "" : `/${id}`}${query === "" ? "" : `?${query}`}${location.hash}`} replace />;
}

/** A view whose script is on its way. */
function Loading() {
  return (
    <Page title="MCP Probe" scroll>
      <Skeleton label="Loading the view" />
    </Page>
  );
}

interface Props {
  children: ReactNode;
}

/** A view that fails leaves the header and the other views usable. Give it a `key` that changes with the view. */
class ErrorBoundary extends Component<Props, { error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error: error ?? new Error("unknown") };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <EmptyState title="This view failed">
        <p>{String(this.state.error)}</p>
        <Button onClick={() => location.reload()}>Load the page again</Button>
      </EmptyState>
    );
  }
}
