import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { Feed } from "~/trace/feed";
import { applyTheme } from "./theme";
import "~/ui/base.css";

applyTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App feed={new Feed()} />
  </StrictMode>,
);
