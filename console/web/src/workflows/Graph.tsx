import { useMemo, type ReactNode } from "react";
import { Icon } from "../ui/Icon";
import { lookOf } from "../ui/Status";
import { Name } from "../ui/Text";
import { escapeHidden } from "../ui/escape";
import { edgesOf, kindLook, kindOf, nodesOf, type Definition, type WorkflowEdge, type WorkflowNode } from "./definition";
import { layOut, maxLabel, nodeHeight, nodeWidth } from "./layout";
import "./graph.css";

/** What a run has made of a node. */
export type NodeRun = { status: string; note?: string | undefined };

type Props = {
  definition: Definition;
  selected?: string | undefined;
  onSelect?: ((nodeId: string) => void) | undefined;
  /** The states of a run's nodes; undefined without a run. */
  states?: { [nodeId: string]: NodeRun } | undefined;
};

// Above this number, the layout takes longer than a person waits.
const maxNodes = 600;

/** The graph of a workflow, laid out here. With states it shows how far a run is. */
export default function Graph({ definition, selected, onSelect, states }: Props): ReactNode {
  const nodes = useMemo(() => nodesOf(definition), [definition]);
  const edges = useMemo(() => edgesOf(definition), [definition]);
  const shape = useMemo(() => (nodes.length > maxNodes ? undefined : layOut(nodes, edges)), [nodes, edges]);
  if (!shape) return <p className="empty">The graph has {nodes.length.toLocaleString("en")} nodes; at most {maxNodes} are drawn. The definition lists all.</p>;
  const places = new Map(shape.nodes.map((n) => [n.id, n]));
  return (
    // The region scrolls, so it needs focus for the keyboard.
    <div className="graph" role="region" aria-label="Graph" tabIndex={0}>
      <div className="graph-sheet" style={{ width: shape.width, height: shape.height }}>
        <svg width={shape.width} height={shape.height} aria-hidden="true">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
              <path d="M0 0.5L7.5 4L0 7.5z" />
            </marker>
          </defs>
          {shape.edges.map((e) => (
            <path key={e.id} d={e.path} className={taken(states, e) ? "taken" : undefined} markerEnd="url(#arrow)" />
          ))}
        </svg>
        {shape.edges.map(
          (e) =>
            e.label && (
              <span key={e.id} className="graph-label" title={escapeHidden(e.label)} style={{ left: e.labelX, top: e.labelY }}>
                <Name text={e.label.length > maxLabel ? `${e.label.slice(0, maxLabel - 1)}…` : e.label} />
              </span>
            ),
        )}
        <ol>
          {nodes.map((n) => {
            const at = places.get(n.id);
            return (
              <li key={n.id} style={{ left: at?.x, top: at?.y, width: nodeWidth, height: nodeHeight }}>
                <NodeBox node={n} edges={edges} run={states && (states[n.id] ?? { status: "" })} selected={selected === n.id} onSelect={onSelect} />
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

type BoxProps = { node: WorkflowNode; edges: WorkflowEdge[]; run: NodeRun | undefined; selected: boolean; onSelect: ((nodeId: string) => void) | undefined };

function NodeBox({ node, edges, run, selected, onSelect }: BoxProps): ReactNode {
  const kind = kindOf(node.typeId);
  const next = edges.filter((e) => e.from === node.id);
  const look = run?.status ? lookOf(run.status) : undefined;
  const className = `graph-node kind-${kind}${look ? ` state ${look.tone}` : run ? " not-yet" : ""}${node.disabled ? " disabled" : ""}`;
  const inside = (
    <>
      <span className="graph-icon" title={kindLook[kind].word}>
        <Icon name={kindLook[kind].icon} />
      </span>
      <span className="graph-words">
        <strong>
          <Name text={node.name} />
        </strong>
        <span className="graph-type">
          <Name text={node.typeId} />
        </span>
      </span>
      {look && (
        <span className="graph-state">
          <Icon name={look.icon} /> {look.word}
          {run?.note && <> · {run.note}</>}
        </span>
      )}
      {node.disabled && <span className="graph-state">disabled</span>}
      <span className="unseen">{next.length > 0 ? `, leads to ${escapeHidden(next.map((e) => (e.label ? `${e.to} (${e.label})` : e.to)).join(", "))}` : ", leads nowhere"}</span>
    </>
  );
  if (!onSelect) return <div className={className}>{inside}</div>;
  return (
    <button type="button" className={className} aria-pressed={selected} title={escapeHidden(`${node.name}: ${node.typeId}`)} onClick={() => onSelect(node.id)}>
      {inside}
    </button>
  );
}

// An edge was taken if its source has ended and its target has begun.
function taken(states: Props["states"], e: { from: string; to: string }): boolean {
  const from = states?.[e.from]?.status;
  const to = states?.[e.to]?.status;
  return (from === "completed" || from === "failed") && to !== undefined && to !== "" && to !== "skipped" && to !== "pending";
}
