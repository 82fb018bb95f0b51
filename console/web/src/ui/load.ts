import { lazy, type ComponentType, type LazyExoticComponent } from "react";

/** A lazy part of the console failed to load: the host is unreachable or runs another build. */
export class NotLoadedError extends Error {
  constructor(cause: unknown) {
    super("This part of the console could not be loaded.", { cause });
    this.name = "NotLoadedError";
  }
}

/** Loads a component when it is first rendered. */
// oxlint-disable-next-line typescript/no-explicit-any -- same signature as React.lazy
export function loaded<T extends ComponentType<any>>(part: () => Promise<{ default: T }>): LazyExoticComponent<T> {
  return lazy(() =>
    part().catch((cause: unknown) => {
      throw new NotLoadedError(cause);
    }),
  );
}
