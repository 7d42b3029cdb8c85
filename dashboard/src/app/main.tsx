import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Feed } from "~/trace/feed";
import "~/ui/base.css";
import { App } from "./app";
import { applyTheme } from "./header";

applyTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App feed={new Feed()} />
  </StrictMode>,
);
