const fields = ":is(input, textarea, select):enabled";

// By preference. A surface under review has buttons and fields too: those are never meant.
const controls = {
  accept: [".decisions [data-action=accept]", "[type=submit]"],
  reject: [".decisions [data-action=reject]"],
  "edit-accept": [".decisions [data-action=edit-accept]:enabled"],
  edit: [`.value-form ${fields}`],
  comment: [`[data-comment]${fields}`, fields],
} as const;

const unreachable = "[hidden], .artifact, details:not([open]) > :not(summary)";

/** Returns a control of the opened question that can be seen. A closed panel stays in the document with what was typed. */
export function control(name: keyof typeof controls | "claim"): HTMLElement | undefined {
  if (name === "claim") return document.querySelector<HTMLElement>(".assignee [data-claim]:enabled") ?? undefined;
  const [card] = document.getElementsByClassName("question");
  for (const selector of controls[name]) {
    const found = [...(card?.querySelectorAll<HTMLElement>(selector) ?? [])].find((e) => e.closest(unreachable) === null);
    if (found) return found;
  }
  return undefined;
}
