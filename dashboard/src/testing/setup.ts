import "~/ui/base.css";
