import type { KeyboardEvent, ReactNode } from "react";
import type { RunSnapshot } from "../../../api/model";
import type { RunView } from "../../../ladder/model";
import type { RunLog } from "../../../live/runLog";
import { useIsRecorded } from "../../../live/useRunLog";
import { escapeHidden } from "../../../ui/escape";
import { Icon } from "../../../ui/Icon";
import { Name } from "../../../ui/Text";
import { duration, useNow } from "../../../ui/time";
import type { Bar } from "../timeline";
import { kindLook, kindOf } from "../../../workflows/definition";
import { barLook, factsOf } from "../barWords";
import { Feedback } from "../Feedback";
import { executionOf, type Chosen } from "./chosen";
import { Conversation } from "./Conversation";
import { useFocusAndReturn } from "./focus";
import { EditActions } from "./EditActions";
import { InputsAndOutputs, Questions } from "./Sections";
import "./panel.css";

type Props = {
  view: RunView;
  chosen: Chosen;
  log: RunLog;
  snapshot: RunSnapshot | undefined;
  /** The node was chosen by the reader, not by the page. */
  opened: boolean;
  onClose: () => void;
  onEvent: (seq: number) => void;
  onFork: (seq: number) => void;
};

/** Everything about one attempt of a node: its model calls, questions, inputs and outputs. */
export function NodePanel({ view, chosen, log, snapshot, opened, onClose, onEvent, onFork }: Props): ReactNode {
  const { lane, bar } = chosen;
  const heading = useFocusAndReturn(opened);
  const recorded = useIsRecorded();
  const execution = executionOf(view, chosen);
  const look = barLook(bar?.status ?? lane.status);
  const onKey = (key: KeyboardEvent): void => {
    if (key.key === "Escape" && opened) onClose();
  };
  return (
    <aside className={opened ? "inspector node-panel opened" : "inspector node-panel"} aria-label={escapeHidden(`Node ${lane.nodeId}`)} onKeyDown={onKey}>
      <div className="inspector-head">
        <h2 ref={heading} tabIndex={-1}>
          <Name text={lane.nodeId} />
        </h2>
        <span className={`status ${look.tone}`}>
          <Icon name={look.icon} />
          {look.word}
        </span>
        {opened && (
          <button type="button" className="quiet" aria-label="Close the node" onClick={onClose}>
            <Icon name="cross" />
          </button>
        )}
      </div>
      {lane.typeId && (
        <p className="dim small">
          <Icon name={kindLook[kindOf(lane.typeId)].icon} /> <Name text={lane.typeId} />
        </p>
      )}
      {bar && <Facts view={view} bar={bar} />}
      {execution && <Conversation key={`${execution.nodeId} ${execution.execution}`} execution={execution} log={log} snapshot={snapshot} />}
      <Questions lane={lane} log={log} />
      <InputsAndOutputs lane={lane} bar={bar} log={log} />
      {!recorded && <Feedback key={lane.nodeId} runId={view.runId} nodeId={lane.nodeId} />}
      {bar && (
        <div className="inspector-end choices">
          <button type="button" onClick={() => onEvent(bar.sequence)}>
            Show its events
          </button>
          {!recorded && (
            <button type="button" onClick={() => onFork(bar.sequence)}>
              <Icon name="fork" /> Fork before this node…
            </button>
          )}
          {!recorded && <EditActions runId={log.runId} lane={lane} bar={bar} log={log} execution={execution} />}
        </div>
      )}
    </aside>
  );
}

function Facts({ view, bar }: { view: RunView; bar: Bar }): ReactNode {
  const now = useNow() - Date.parse(view.createdAt);
  return (
    <dl className="facts">
      <div>
        <dt>Took</dt>
        <dd>{bar.to === undefined ? `${duration(Math.max(0, now - bar.from))} so far` : duration(bar.to - bar.from)}</dd>
      </div>
      {bar.attempt > 0 && (
        <div>
          <dt>Attempt</dt>
          <dd>{bar.attempt + 1}</dd>
        </div>
      )}
      {factsOf(bar).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd><Name text={value} /></dd>
        </div>
      ))}
    </dl>
  );
}
