import { lazy, type ComponentType, type LazyExoticComponent } from "react";

type Page = LazyExoticComponent<ComponentType>;

/** The pages, by the path below the console's own. The first that fits is shown. */
export const routes: readonly { path: string; page: Page }[] = [
  { path: "/", page: lazy(() => import("../pages/runs/RunsPage")) },
  { path: "/runs/:runId", page: lazy(() => import("../pages/run/RunPage")) },
  { path: "/runs/:runId/envelopes/:envelope?", page: lazy(() => import("../pages/envelope/EnvelopePage")) },
  { path: "/runs/:runId/diff/:against", page: lazy(() => import("../pages/diff/DiffPage")) },
  { path: "/runs/:runId/report", page: lazy(() => import("../pages/report/ReportPage")) },
  { path: "/diff", page: lazy(() => import("../pages/diff/DiffPage")) },
  { path: "/bundle", page: lazy(() => import("../pages/bundle/BundlePage")) },
  { path: "/try", page: lazy(() => import("../pages/try/TryPage")) },
  { path: "/inbox", page: lazy(() => import("../pages/inbox/InboxPage")) },
  { path: "/answer", page: lazy(() => import("../pages/answer/AnswerPage")) },
  { path: "/capabilities", page: lazy(() => import("../pages/capabilities/CapabilitiesPage")) },
  { path: "/system", page: lazy(() => import("../pages/system/SystemPage")) },
  { path: "/api", page: lazy(() => import("../pages/api/ApiPage")) },
];

/** The pages that need nobody signed in: what they show is named by a token of its own. */
export const openPaths = ["/answer"];

export const navigation = [
  { path: "/", name: "Runs", key: "g r" },
  { path: "/inbox", name: "Inbox", key: "g i" },
  { path: "/capabilities", name: "Capabilities", key: "g c" },
  { path: "/system", name: "System", key: "g s" },
  { path: "/api", name: "API", key: "g a" },
] as const;
