// Exports are the bytes that the host sends: what it has taken out is not in them, and nothing is put in.

/** The raw texts of the documents in the array `events` of an answer, as they stand in it. */
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

/** Hands a file to the browser. */
export function save(name: string, type: string, content: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(content, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
