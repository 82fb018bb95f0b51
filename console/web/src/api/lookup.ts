/** What a table says of a name from outside; undefined where it has none, also of names that every object has. */
export const lookup = <T>(table: { readonly [name: string]: T }, name: string): T | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);
