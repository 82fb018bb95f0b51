// What a reader would not see, or would see in another order: controls, marks of direction, spaces without width, tags.
// Line ends and tabs do what they say, and the selector of an emoji's style does no harm.
export const hiddenChars = /(?!\t|\n|\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A hidden character by its number. */
export const codePoint = (char: string): string => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** A text from outside for places that take no markup: titles, options, labels that are only heard. Nothing in it is hidden. */
export const escapeHidden = (text: string): string => text.replace(hiddenChars, codePoint);
