/** Reads an own property of a table; undefined for missing names, including those of Object.prototype. */
export const lookup = <T>(table: { readonly [name: string]: T }, name: string): T | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);
