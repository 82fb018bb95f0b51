// Exports contain the host's bytes unchanged, with its redactions.

/** Returns the raw texts of the documents in the array `events` of a response. */
export function rawEvents(answer: string): string[] {
  const start = /"events"\s*:\s*\[/.exec(answer);
  if (!start) return [];
  const out: string[] = [];
  let depth = 0;
  let from = -1;
  let quoted = false;
  for (let i = start.index + start[0].length; i < answer.length; i++) {
    const c = answer.charCodeAt(i);
    if (quoted) {
      if (c === 0x5c) i++;
      else if (c === 0x22) quoted = false;
    } else if (c === 0x22) quoted = true;
    else if (c === 0x7b || c === 0x5b) {
      if (depth++ === 0) from = i;
    } else if (c === 0x7d || c === 0x5d) {
      if (depth === 0) return out;
      if (--depth === 0) out.push(answer.slice(from, i + 1));
    }
  }
  return out;
}

/** Starts a download. */
export function save(name: string, type: string, content: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(content, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
