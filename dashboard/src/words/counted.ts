/** `2 messages`, `1 message`, `1,200 entries`. `many` where that is not the word with an s. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}
