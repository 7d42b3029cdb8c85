import { beforeEach } from "vitest";
import { page } from "vitest/browser";
import "~/ui/base.css";
import { countRenders } from "./renders";

countRenders();
beforeEach(() => page.viewport(1280, 800));
