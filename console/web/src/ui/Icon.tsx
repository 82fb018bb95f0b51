import type { ReactNode } from "react";

// Icons drawn in a 16 × 16 grid, because fonts differ in the glyphs they contain.
const paths = {
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  play: "M5 3.5l7.5 4.5L5 12.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  dot: "M8 7.9v.2",
  question: "M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.9M8 12.4v.1",
  shield: "M8 1.8l5 1.9v3.8c0 3.2-2.1 5.5-5 6.7-2.9-1.2-5-3.5-5-6.7V3.7zM6.7 6.2a1.4 1.4 0 1 1 2 1.3c-.5.3-.7.5-.7 1.1M8 10.5v.1",
  swap: "M2.5 5.5h10M10 3l2.5 2.5L10 8M13.5 10.5h-10M6 8l-2.5 2.5L6 13",
  ban: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 4.2l7.6 7.6",
  bang: "M8 3v6M8 12.3v.1",
  skip: "M3 9a5 5 0 0 1 9.5-1.5M12.8 4v3.7H9",
  copy: "M6 6h7v7.5H6zM10 6V2.5H3V10h3",
  link: "M6.5 9.5l3-3M7.5 5l1.4-1.4a2.5 2.5 0 0 1 3.5 3.5L11 8.5M8.5 11l-1.4 1.4a2.5 2.5 0 0 1-3.5-3.5L5 7.5",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 4l-4 4 4 4",
  right: "M6 4l4 4-4 4",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  fit: "M2.5 5v6M13.5 5v6M4.5 8h7M6 6.2L4.3 8 6 9.8M10 6.2L11.7 8 10 9.8",
  fork: "M5 3v4.5c0 1.5 1 2 3 2s3-.5 3-2V3M8 9.5V13",
  model: "M8 2l1.5 4.5L14 8l-4.5 1.5L8 14l-1.5-4.5L2 8l4.5-1.5z",
  tool: "M10.5 2.5a3 3 0 0 0-3 4L2.8 11.2a1.4 1.4 0 0 0 2 2L9.5 8.5a3 3 0 0 0 4-3.7L11.6 6.7 9.3 4.4l1.9-1.8",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2 1.3",
  child: "M3 2.5h6v4H3zM7 9.5h6v4H7zM5 6.5v5h2",
  flow: "M3 8h4M7 8l3-3.5h3M7 8l3 3.5h3M11.5 3L13 4.5 11.5 6M11.5 10l1.5 1.5-1.5 1.5",
  data: "M3 4.5c0-2.5 10-2.5 10 0v7c0 2.5-10 2.5-10 0zM3 4.5c0 2.5 10 2.5 10 0M3 8c0 2.5 10 2.5 10 0",
  list: "M3 4.5h10M3 8h10M3 11.5h10",
  inbox: "M2.5 9.5l2-6h7l2 6V13h-11zM2.5 9.5H6l1 1.5h2l1-1.5h3.5",
  chart: "M3 13V8.5M8 13V3M13 13V6",
  checks: "M2.5 4.5L4 6l2.5-3M9 5h4.5M2.5 10.5L4 12l2.5-3M9 11h4.5",
  server: "M3 3h10v4H3zM3 9h10v4H3zM5.5 5v.1M5.5 11v.1",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  person: "M8 2.5a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2zM3 13.5c.4-2.8 2.3-4.2 5-4.2s4.6 1.4 5 4.2",
  save: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
} as const;

export type IconName = keyof typeof paths;

/** A decorative icon next to a text or in a labelled button. */
export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
