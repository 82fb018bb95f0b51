const units = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Formats a size in its largest unit. */
export function bytes(n: number): string {
  let unit = 0;
  let size = n;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
