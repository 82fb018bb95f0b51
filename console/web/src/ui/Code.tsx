import { Fragment, type ReactNode } from "react";
import { Name } from "./Text";

/** A code, which a narrow column breaks after an underscore. */
export function Code({ text }: { text: string }): ReactNode {
  return text.split(/(?<=_)/).map((part, i) => (
    // oxlint-disable-next-line react/no-array-index-key -- the parts have no other identity
    <Fragment key={i}>
      {i > 0 && <wbr />}
      <Name text={part} />
    </Fragment>
  ));
}
