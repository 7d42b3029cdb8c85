import "~/ui/base.css";
import { countRenders } from "./renders";

countRenders();
