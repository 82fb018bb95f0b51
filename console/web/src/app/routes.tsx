import type { ComponentType, LazyExoticComponent } from "react";
import { loaded } from "../ui/load";

type Page = LazyExoticComponent<ComponentType>;

/** The pages by path, relative to the console. The first match is shown. */
export const routes: readonly { path: string; page: Page }[] = [
  { path: "/", page: loaded(() => import("../pages/runs/RunsPage")) },
  { path: "/runs/:runId", page: loaded(() => import("../pages/run/RunPage")) },
  { path: "/runs/:runId/envelopes/:envelope?", page: loaded(() => import("../pages/envelope/EnvelopePage")) },
  { path: "/runs/:runId/diff/:against", page: loaded(() => import("../pages/diff/DiffPage")) },
  { path: "/runs/:runId/nodes/:nodeId/play", page: loaded(() => import("../pages/play/PlayPage")) },
  { path: "/runs/:runId/report", page: loaded(() => import("../pages/report/ReportPage")) },
  { path: "/diff", page: loaded(() => import("../pages/diff/DiffPage")) },
  { path: "/bundle", page: loaded(() => import("../pages/bundle/BundlePage")) },
  { path: "/try", page: loaded(() => import("../pages/try/TryPage")) },
  { path: "/workflows", page: loaded(() => import("../pages/workflows/WorkflowsPage")) },
  { path: "/workflows-new", page: loaded(() => import("../pages/workflows/EditPage")) },
  { path: "/workflows/:workflowId", page: loaded(() => import("../pages/workflows/WorkflowPage")) },
  { path: "/workflows/:workflowId/start", page: loaded(() => import("../pages/workflows/StartPage")) },
  { path: "/workflows/:workflowId/edit", page: loaded(() => import("../pages/workflows/EditPage")) },
  { path: "/dashboard", page: loaded(() => import("../pages/dashboard/DashboardPage")) },
  { path: "/inbox", page: loaded(() => import("../pages/inbox/InboxPage")) },
  { path: "/answer", page: loaded(() => import("../pages/answer/AnswerPage")) },
  { path: "/capabilities", page: loaded(() => import("../pages/capabilities/CapabilitiesPage")) },
  { path: "/system", page: loaded(() => import("../pages/system/SystemPage")) },
  { path: "/system/webhooks", page: loaded(() => import("../pages/system/WebhooksPage")) },
  { path: "/system/audit", page: loaded(() => import("../pages/system/AuditPage")) },
  { path: "/system/data", page: loaded(() => import("../pages/system/DataPage")) },
  { path: "/system/access", page: loaded(() => import("../pages/system/AccessPage")) },
  { path: "/system/about", page: loaded(() => import("../pages/system/AboutPage")) },
  { path: "/api", page: loaded(() => import("../pages/api/ApiPage")) },
];

/** Pages that need no session, because a token or a file identifies their content. */
export const openPaths = ["/answer"];

export const navigation = [
  { path: "/", name: "Runs", key: "g r", icon: "list" },
  { path: "/workflows", name: "Workflows", key: "g w", icon: "flow" },
  { path: "/inbox", name: "Inbox", key: "g i", icon: "inbox" },
  { path: "/dashboard", name: "Dashboard", key: "g d", icon: "chart" },
  { path: "/capabilities", name: "Capabilities", key: "g c", icon: "checks" },
  { path: "/system", name: "System", key: "g s", icon: "server" },
  { path: "/api", name: "API", key: "g a", icon: "code" },
] as const;
