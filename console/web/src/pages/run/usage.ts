import { integerOf } from "../../api/json";

/** Formats an amount with enough digits to be visible. */
export function money(amount: number | undefined, currency: string | undefined): string {
  if (amount === undefined) return "–";
  const n = Number(amount); // it may be an exact number
  const digits = n === 0 || n >= 1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(n)));
  const shown = n.toFixed(Math.max(2, digits));
  return currency === undefined || currency === "" || currency === "USD" ? `$${shown}` : `${shown} ${currency}`;
}

/** Formats a count, which may exceed JavaScript numbers. An unknown one is not zero. */
export function count(n: unknown): string {
  return integerOf(n)?.toLocaleString("en") ?? "–";
}
