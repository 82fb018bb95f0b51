import { lazy, type ComponentType, type LazyExoticComponent } from "react";

/** A part of the console did not come: the host is away, or it is another build than the one that is open. */
export class NotLoadedError extends Error {
  constructor(cause: unknown) {
    super("This part of the console could not be loaded.", { cause });
    this.name = "NotLoadedError";
  }
}

/** A part of the console that is loaded when it is first shown. */
// oxlint-disable-next-line typescript/no-explicit-any -- as React.lazy has it
export function loaded<T extends ComponentType<any>>(part: () => Promise<{ default: T }>): LazyExoticComponent<T> {
  return lazy(() =>
    part().catch((cause: unknown) => {
      throw new NotLoadedError(cause);
    }),
  );
}
