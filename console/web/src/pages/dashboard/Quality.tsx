import { useId, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { Name } from "../../ui/Text";
import { Chart } from "./Chart";
import type { Refusal, Statistics, Usage } from "./host";
import { compact, countGroups, dollars, groupings, groupsOf, reasonWords, share, stepsOf, type Grouping } from "./series";
import { Dataset } from "./Dataset";
import { Figures, Table, type Column } from "./Table";
import { runsURL, type View } from "./view";

const tones = ["t-1", "t-2", "t-3", "t-4", "t-5"];

const givenUp = (u: Usage): number => Number(u.answers) - Number(u.acceptedFirst) - Number(u.corrected);

/** Why answers were not accepted, what corrections achieved, and what fallback models saved. */
export function Quality({ data, view }: { data: Statistics; view: View }): ReactNode {
  const id = useId();
  const [by, setBy] = useState<Grouping>("reason");
  const { usage } = data;
  const answers = Number(usage.answers);
  const groups = groupsOf(data.refusals, by);
  const failures = data.refusals.reduce((n, r) => n + Number(r.count), 0);
  return (
    <>
      <Figures
        label="Figures of the span"
        figures={[
          ["Answers", compact(answers)],
          ["Accepted first", share(Number(usage.acceptedFirst), answers)],
          ["After a correction", share(Number(usage.corrected), answers)],
          ["Given up", share(givenUp(usage), answers)],
          ["Cost of retries", usage.priced > 0 ? dollars(Number(usage.retryCostUsd)) : "–"],
          ["Saved by a fallback", compact(Number(usage.fallbacksAccepted))],
        ]}
      />
      <div className="dash-choices">
        <label htmlFor={id}>Refusals by</label>
        <select id={id} value={by} onChange={({ target }) => setBy(target.value as Grouping)}>
          {groupings.map((g) => (
            <option key={g}>{g}</option>
          ))}
        </select>
      </div>
      <div className="charts">
        <Chart
          title={`Refused answers by ${by}`}
          format={compact}
          steps={stepsOf(data, (p) => countGroups(p, groups, by))}
          series={groups.map((name, i) => ({ name, tone: tones[i] ?? "t-idle" }))}
        />
        <Chart
          title="Answers"
          format={compact}
          steps={stepsOf(data, (p) => (p ? [Number(p.usage.acceptedFirst), Number(p.usage.corrected), givenUp(p.usage)] : [0, 0, 0]))}
          series={[
            { name: "accepted first", tone: "t-good" },
            { name: "after a correction", tone: "t-ask" },
            { name: "given up", tone: "t-bad" },
          ]}
        />
      </div>
      <Table
        title="Why answers were refused"
        none="Every answer was accepted as it came."
        rows={data.refusals}
        id={(r) => [r.reason, r.gate, r.code, r.kind, r.provider, r.model].join("\n")}
        columns={refusalColumns(view, failures)}
      />
      <Table
        title="Answers by model"
        none="No model answered."
        rows={data.models.filter((m) => Number(m.usage.answers) > 0)}
        id={(m) => `${m.provider}\n${m.model}`}
        columns={answerColumns()}
      />
      <Dataset view={view} />
    </>
  );
}

function refusalColumns(view: View, failures: number): Column<Refusal>[] {
  return [
    { name: "Reason", of: (r) => reasonWords(r.reason) },
    { name: "Gate", of: (r) => r.gate ?? "no document" },
    {
      name: "Kind",
      of: (r) =>
        r.kind ? (
          <Link href={runsURL(view, "kind", r.kind)}>
            <Name text={r.kind} />
          </Link>
        ) : (
          "–"
        ),
    },
    {
      name: "Model",
      of: (r) => (
        <Link href={runsURL(view, "model", r.model)}>
          <Name text={`${r.provider}·${r.model}`} />
        </Link>
      ),
    },
    { name: "Answers", num: true, of: (r) => compact(Number(r.count)) },
    { name: "Share", num: true, of: (r) => share(Number(r.count), failures) },
  ];
}

function answerColumns(): Column<Statistics["models"][number]>[] {
  return [
    { name: "Model", of: (m) => <Name text={`${m.provider}·${m.model}`} /> },
    { name: "Answers", num: true, of: (m) => compact(Number(m.usage.answers)) },
    { name: "Accepted first", num: true, of: (m) => share(Number(m.usage.acceptedFirst), Number(m.usage.answers)) },
    { name: "After a correction", num: true, of: (m) => share(Number(m.usage.corrected), Number(m.usage.answers)) },
    { name: "Given up", num: true, of: (m) => share(givenUp(m.usage), Number(m.usage.answers)) },
    { name: "As a fallback", num: true, of: (m) => compact(Number(m.usage.fallbacks)) },
    { name: "Of them accepted", num: true, of: (m) => share(Number(m.usage.fallbacksAccepted), Number(m.usage.fallbacks)) },
    { name: "Cost of retries", num: true, of: (m) => (m.usage.priced > 0 ? dollars(Number(m.usage.retryCostUsd)) : "–") },
  ];
}
