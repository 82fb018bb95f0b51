// Characters that are invisible or reorder text: controls, direction marks, zero-width spaces, tags. Line breaks, tabs
// and the emoji style selector are harmless.
export const hiddenChars = /(?!\t|\n|\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Formats a character as its code point. */
export const codePoint = (char: string): string => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Replaces hidden characters by their code points, for places without markup: titles, options, ARIA labels. */
export const escapeHidden = (text: string): string => text.replace(hiddenChars, codePoint);
