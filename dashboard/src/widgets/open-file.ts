import { createContext, use } from "react";

/** Opens a session file; what comes of it is shown below the header. */
export const OpenFileContext = createContext<(file: File) => void>(() => undefined);

export function useOpenFile(): (file: File) => void {
  return use(OpenFileContext);
}
