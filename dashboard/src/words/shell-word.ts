/** One word of a POSIX shell, whatever the text has in it. */
export const shellWord = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
