import { useId, type ReactNode } from "react";
import { edgeTime, duration, minute } from "../../ui/time";
import type { Step } from "./series";

/** A series of a chart. The tone is a class that sets its colour. */
export type Series = { name: string; tone: string };

type Props = { title: string; steps: readonly Step[]; series: readonly Series[]; format: (n: number) => string; lines?: boolean };

const width = 600;
const height = 120;

/** A chart of values over time: stacked bars, or lines. A table has the same values. */
export function Chart({ title, steps, series, format, lines }: Props): ReactNode {
  const id = useId();
  const stacked = (step: Step): number => (lines ? Math.max(0, ...step.values) : step.values.reduce((a, b) => a + b, 0));
  const most = Math.max(0, ...steps.map(stacked));
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption id={id}>
        <h2>{title}</h2>
        <ul className="legend">
          {series.map((s) => (
            <li key={s.name}>
              <span className={`swatch ${s.tone}`} aria-hidden="true" />
              {s.name}
            </li>
          ))}
        </ul>
      </figcaption>
      {most === 0 ? (
        <p className="dim small chart-none">Nothing in this span.</p>
      ) : (
        <>
          <div className="plot">
            <span className="most dim">{format(most)}</span>
            <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
              {lines ? <Lines steps={steps} series={series} most={most} /> : <Bars steps={steps} series={series} most={most} format={format} />}
            </svg>
            <span className="from dim">{edge(steps[0])}</span>
            <span className="to dim">{edge(steps.at(-1))}</span>
          </div>
          <details className="small">
            <summary>Show the values</summary>
            <Values title={title} steps={steps} series={series} format={format} />
          </details>
        </>
      )}
    </figure>
  );
}

const edge = (step: Step | undefined): string => (step ? edgeTime(step.at) : "");

type Drawn = { steps: readonly Step[]; series: readonly Series[]; most: number };

function Bars({ steps, series, most, format }: Drawn & { format: (n: number) => string }): ReactNode {
  const slot = width / steps.length;
  return steps.map((step, i) => {
    let top = height;
    return (
      <g key={step.at}>
        <title>{[minute(step.at), ...series.map((s, at) => `${s.name}: ${format(step.values[at] ?? 0)}`)].join("\n")}</title>
        <rect className="hit" x={i * slot} y={0} width={slot} height={height} />
        {series.map((s, at) => {
          const tall = ((step.values[at] ?? 0) / most) * height;
          top -= tall;
          return tall > 0 && <rect key={s.name} className={s.tone} x={i * slot + slot * 0.1} y={top} width={slot * 0.8} height={tall} />;
        })}
      </g>
    );
  });
}

/** Lines have gaps where there is no value (0). */
function Lines({ steps, series, most }: Drawn): ReactNode {
  const slot = width / steps.length;
  return series.map((s, at) => {
    let path = "";
    let open = false;
    steps.forEach((step, i) => {
      const value = step.values[at] ?? 0;
      const y = height - (value / most) * (height - 4) - 2;
      // A point is a short line, so that it shows without neighbours.
      if (value > 0) path += open ? `L${(i + 0.5) * slot} ${y}` : `M${(i + 0.3) * slot} ${y}L${(i + 0.7) * slot} ${y}`;
      open = value > 0;
    });
    return <path key={s.name} className={`line ${s.tone}`} d={path} vectorEffect="non-scaling-stroke" />;
  });
}

function Values({ title, steps, series, format }: Omit<Props, "lines">): ReactNode {
  const shown = steps.filter((step) => step.values.some((v) => v > 0));
  return (
    <div className="scroll chart-values" role="region" aria-label={`Values: ${title}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">from</th>
            {series.map((s) => (
              <th key={s.name} scope="col" className="num">
                {s.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((step) => (
            <tr key={step.at}>
              <th scope="row">{minute(step.at)}</th>
              {series.map((s, at) => (
                <td key={s.name} className="num">
                  {format(step.values[at] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Formats milliseconds of a chart. */
export const ms = (n: number): string => (n === 0 ? "–" : duration(n));
